"""The functions of a formula on tensors of 64 bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

Tensor = Any

_NEAR = 25.0
_LOW = 0xFFFFFFFF


def bessel(order: int, x: Tensor) -> Tensor:
    """J0 or J1 by Bessel's integral, and Hankel's expansion beyond 25: torch's own have 7 digits."""
    far = x.abs() > _NEAR
    near = torch.where(far, 0.0, x)
    total = torch.zeros_like(x)
    for node in range(64):
        angle = math.pi * (node + 0.5) / 64
        total += torch.cos(order * angle - near * math.sin(angle))
    size = torch.where(far, x.abs(), _NEAR)
    even, odd, term = torch.zeros_like(x), torch.zeros_like(x), torch.ones_like(x)
    for k in range(16):
        (odd if k % 2 else even).add_(term, alpha=-1 if k % 4 > 1 else 1)
        term = term * (4 * order * order - (2 * k + 1) ** 2) / ((k + 1) * 8 * size)
    phase = size - (order * 0.5 + 0.25) * math.pi
    wave = torch.sqrt(2 / (math.pi * size)) * (even * phase.cos() - odd * phase.sin())
    found = torch.where(far, torch.where(x < 0, (-1.0) ** order, 1.0) * wave, total / 64)
    return torch.where(x.isinf(), 0.0, found)


def power(base: Tensor, exponent: Tensor) -> Tensor:
    """Of whole numbers towards zero, so 2 ** -1 is 0."""
    if base.dtype.is_floating_point or base.dtype.is_complex:
        return torch.pow(base, exponent)
    whole = torch.pow(base, exponent.clamp(min=0))
    turned = torch.where(base == 1, 1, torch.where(base == -1, torch.where(exponent % 2 != 0, -1, 1), 0))
    return torch.where(exponent >= 0, whole, turned)


def floor_divide(one: Tensor, other: Tensor) -> Tensor:
    if one.dtype.is_floating_point:
        return torch.floor(one / other)
    return torch.where(other == 0, 0, torch.div(one, torch.where(other == 0, 1, other), rounding_mode="floor"))


def remainder(one: Tensor, other: Tensor) -> Tensor:
    if one.dtype.is_floating_point:
        return torch.remainder(one, other)
    return torch.where(other == 0, 0, torch.remainder(one, torch.where(other == 0, 1, other)))


def leading_zeros(x: Tensor, width: int) -> Tensor:
    found = torch.full_like(x, width)
    for bit in range(width):
        found = torch.where((x >> bit) & 1 != 0, width - 1 - bit, found)
    return found


def ones(x: Tensor, width: int) -> Tensor:
    return sum(((x >> bit) & 1 for bit in range(width)), start=torch.zeros_like(x))


def philox(seed: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """The first two words of Philox 4x32-10: the key is the seed, the counter the index, 0 and 0."""
    zero = torch.zeros_like(seed + index)
    key0, key1 = seed & _LOW, (seed >> 32) & _LOW
    c0, c1, c2, c3 = (index & _LOW) + zero, ((index >> 32) & _LOW) + zero, zero, zero
    for _ in range(10):
        one, other = c0 * 0xD2511F53, c2 * 0xCD9E8D57  # modulo 2**64, as the bits are what counts
        c0, c1, c2, c3 = ((other >> 32) & _LOW) ^ c1 ^ key0, other & _LOW, ((one >> 32) & _LOW) ^ c3 ^ key1, one & _LOW
        key0, key1 = (key0 + 0x9E3779B9) & _LOW, (key1 + 0xBB67AE85) & _LOW
    return c0, c1


def uniform(seed: Tensor, index: Tensor) -> Tensor:
    return (philox(seed, index)[0] >> 8).to(torch.float64) * 2.0**-24


def normal(seed: Tensor, index: Tensor) -> Tensor:
    first, second = philox(seed, index)
    radius = ((first >> 8).to(torch.float64) + 1) * 2.0**-24
    angle = (second >> 8).to(torch.float64) * 2.0**-24
    return torch.sqrt(-2 * torch.log(radius)) * torch.cos(2 * math.pi * angle)


def _gelu_tanh(x: Tensor) -> Tensor:
    return x * torch.sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))


OPERATORS: dict[str, Callable[..., Tensor]] = {
    "+": torch.add, "-": torch.sub, "*": torch.mul, "/": torch.div, "//": floor_divide, "%": remainder, "**": power,
    "&": torch.bitwise_and, "|": torch.bitwise_or, "^": torch.bitwise_xor, "<<": torch.bitwise_left_shift,
    ">>": torch.bitwise_right_shift, "==": torch.eq, "!=": torch.ne, "<": torch.lt, "<=": torch.le, ">": torch.gt,
    ">=": torch.ge, "neg": torch.neg, "~": torch.bitwise_not, "not": torch.logical_not,
}  # fmt: skip

FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    **{name: getattr(torch, name) for name in (
        "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
        "cosh", "tanh", "asinh", "acosh", "atanh", "sqrt", "rsqrt", "erf", "erfc", "lgamma", "sigmoid", "hypot",
        "atan2", "copysign", "floor", "ceil", "round", "trunc", "fmax", "fmin", "fmod", "square", "abs", "isnan",
        "isinf", "isfinite", "real", "relu", "sign",
    )},
    "max": torch.maximum, "min": torch.minimum, "pow": power, "fma": lambda x, y, z: x * y + z,
    "cbrt": lambda x: torch.copysign(torch.pow(x.abs(), 1 / 3), x), "rcp": torch.reciprocal,
    "gelu": lambda x: 0.5 * x * torch.erfc(-x * math.sqrt(0.5)), "gelu_tanh": _gelu_tanh,
    "silu": lambda x: x * torch.sigmoid(x), "softplus": lambda x: torch.logaddexp(x, torch.zeros_like(x)),
    "j0": lambda x: bessel(0, x), "j1": lambda x: bessel(1, x),
    "clamp": lambda x, low, high: torch.minimum(torch.maximum(x, low), high),
    "complex": lambda real, imaginary: torch.complex(*torch.broadcast_tensors(real, imaginary)),
    "imag": lambda z: z.imag, "conj": lambda z: torch.conj(z).resolve_conj(), "uniform": uniform, "normal": normal,
    "finite": lambda x: torch.where(x.isfinite(), x, torch.zeros_like(x)),
}  # fmt: skip
