"""The functions of a formula on NumPy arrays of 64 bits."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from warpwright.formulas.numpy_types import Array

_BLOCK = 1 << 16
_BESSEL_NEAR = 25.0


def _each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """A function of Python's math module, of each element."""

    def apply(values: Array) -> Array:
        flat = np.asarray(values, np.float64).reshape(-1)
        found = np.empty_like(flat)
        for start in range(0, flat.size, _BLOCK):
            found[start : start + _BLOCK] = list(map(function, flat[start : start + _BLOCK].tolist()))
        return found.reshape(np.shape(values))

    return apply


def _lgamma(x: float) -> float:
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):  # a pole, or beyond the largest number
        return math.inf


erf, erfc, lgamma = _each(math.erf), _each(math.erfc), _each(_lgamma)


def sigmoid(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


def gelu(x: Array) -> Array:
    """By erfc, which is exact to the last digits for negative x, too."""
    return 0.5 * x * erfc(-x * math.sqrt(0.5))


def gelu_tanh(x: Array) -> Array:
    return x * sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))


def bessel(order: int, x: Array) -> Array:
    """The Bessel function of the first kind, J0 or J1: Bessel's integral by the trapezoidal rule, which converges as
    fast as the rounding allows for a function that repeats itself (DLMF 10.9.2), and Hankel's expansion beyond 25
    (DLMF 10.17.3).

    >>> bessel(0, np.array([0.0, 1.0, 100.0])).round(12).tolist()
    [1.0, 0.765197686558, 0.019985850304]
    """
    x = np.asarray(x, np.float64)
    far = np.abs(x) > _BESSEL_NEAR
    near = np.where(far, 0.0, x)
    total = np.zeros_like(x)
    nodes = 64
    for node in range(nodes):
        angle = math.pi * (node + 0.5) / nodes
        total += np.cos(order * angle - near * math.sin(angle))
    size = np.where(far, np.abs(x), _BESSEL_NEAR)
    even, odd, term = np.zeros_like(x), np.zeros_like(x), np.ones_like(x)
    for k in range(16):
        sign = -1.0 if k % 4 > 1 else 1.0
        (odd if k % 2 else even)[...] += sign * term
        term = term * (4 * order * order - (2 * k + 1) ** 2) / ((k + 1) * 8 * size)
    phase = size - (order * 0.5 + 0.25) * math.pi
    wave = np.sqrt(2 / (math.pi * size)) * (even * np.cos(phase) - odd * np.sin(phase))
    found = np.where(far, np.where(x < 0, (-1.0) ** order, 1.0) * wave, total / nodes)
    return np.where(np.isinf(x), 0.0, found)


def power(base: Array, exponent: Array) -> Array:
    """`base ** exponent`; of whole numbers towards zero, so 2 ** -1 is 0."""
    if base.dtype.kind not in "iu":
        return np.power(base, exponent)
    least = np.power(base, np.maximum(exponent, 0))
    odd = np.where((base == -1) & (exponent % 2 != 0), -1, 1).astype(base.dtype)
    return np.where(exponent >= 0, least, np.where(np.isin(base, (1, -1)), odd, 0).astype(base.dtype))


def floor_divide(one: Array, other: Array) -> Array:
    """Rounded down, as Python, NumPy and torch have it (C rounds whole numbers towards zero). x // 0 of whole numbers
    is 0."""
    return np.floor(one / other) if one.dtype.kind == "f" else np.floor_divide(one, other)


def remainder(one: Array, other: Array) -> Array:
    """What `//` leaves; it has the sign of the divisor. x % 0 of whole numbers is 0."""
    return np.remainder(one, other)


def complex_of(real: Array, imaginary: Array) -> Array:
    found = np.empty(np.broadcast_shapes(np.shape(real), np.shape(imaginary)), np.complex128)
    found.real, found.imag = real, imaginary
    return found


def leading_zeros(values: Array, bits: int) -> Array:
    """Of whole numbers of that many bits.

    >>> leading_zeros(np.array([0, 1, -1]), 32).tolist()
    [32, 31, 0]
    """
    left = _bits(values, bits)
    length = np.zeros(left.shape, np.int64)
    for step in (32, 16, 8, 4, 2, 1):
        high = left >> np.uint64(step)
        large = high != 0
        length += np.where(large, step, 0)
        left = np.where(large, high, left)
    return bits - length - (left != 0)


def ones(values: Array, bits: int) -> Array:
    """How many bits are set, in whole numbers of that many bits."""
    return np.bitwise_count(_bits(values, bits)).astype(np.int64)


def _bits(values: Array, bits: int) -> Array:
    mask = np.uint64((1 << bits) - 1)
    return np.asarray(values).astype(np.uint64) & mask


def philox(seed: Array, index: Array) -> tuple[Array, Array]:
    """The first two of the four words of Philox 4x32-10 (Salmon and others, Parallel Random Numbers: As Easy as 1, 2,
    3, 2011). The key is the seed's low and high word, the counter the index's low and high word, 0 and 0.

    The published test of key 0 and counter 0:

    >>> [hex(int(each)) for each in philox(np.array(0), np.array(0))]
    ['0x6627e8d5', '0xe169c58d']
    """
    low, word = np.uint64(0xFFFFFFFF), np.uint64(32)
    seed, index = np.asarray(seed).astype(np.uint64), np.asarray(index).astype(np.uint64)
    key0, key1 = seed & low, seed >> word
    zero = np.zeros(np.broadcast_shapes(seed.shape, index.shape), np.uint64)
    c0, c1, c2, c3 = index & low, index >> word, zero, zero
    for _ in range(10):
        one, other = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (other >> word) ^ c1 ^ key0, other & low, (one >> word) ^ c3 ^ key1, one & low
        key0, key1 = (key0 + np.uint64(0x9E3779B9)) & low, (key1 + np.uint64(0xBB67AE85)) & low
    return c0, c1


def uniform(seed: Array, index: Array) -> Array:
    """The upper 24 bits of the first word times 2**-24: exact in f32, in [0, 1)."""
    first, _ = philox(seed, index)
    return (first >> np.uint64(8)).astype(np.float64) * 2.0**-24


def normal(seed: Array, index: Array) -> Array:
    """Box and Muller's cosine, of the upper 24 bits of both words; the first number lies in (0, 1]."""
    first, second = philox(seed, index)
    radius = ((first >> np.uint64(8)).astype(np.float64) + 1) * 2.0**-24
    angle = (second >> np.uint64(8)).astype(np.float64) * 2.0**-24
    return np.sqrt(-2 * np.log(radius)) * np.cos(2 * math.pi * angle)


OPERATORS: dict[str, Callable[..., Array]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "//": floor_divide, "%": remainder, "**": power,
    "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor, "<<": np.left_shift, ">>": np.right_shift,
    "==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
    "neg": np.negative, "~": np.invert, "not": np.logical_not,
}  # fmt: skip
"""By sign, of arrays of one working type."""

FUNCTIONS: dict[str, Callable[..., Array]] = {
    **{name: getattr(np, name) for name in (
        "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sqrt",
        "cbrt", "hypot", "copysign", "floor", "ceil", "trunc", "fmax", "fmin", "fmod", "square", "isnan", "isinf",
        "isfinite", "real", "imag", "conj",
    )},
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "atan2": np.arctan2, "abs": np.abs, "round": np.rint, "max": np.maximum, "min": np.minimum,
    "rsqrt": lambda x: 1 / np.sqrt(x), "rcp": lambda x: 1 / x, "erf": erf, "erfc": erfc, "lgamma": lgamma,
    "sigmoid": sigmoid, "gelu": gelu, "gelu_tanh": gelu_tanh, "silu": lambda x: x * sigmoid(x),
    "softplus": lambda x: np.logaddexp(0, x), "j0": lambda x: bessel(0, x), "j1": lambda x: bessel(1, x),
    "relu": lambda x: np.maximum(x, np.zeros((), x.dtype)), "pow": power, "fma": lambda x, y, z: x * y + z,
    "sign": lambda x: (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype),
    "clamp": lambda x, low, high: np.minimum(np.maximum(x, low), high), "complex": complex_of, "uniform": uniform,
    "normal": normal, "finite": lambda x: np.where(np.isfinite(x), x, np.zeros((), x.dtype)),
}  # fmt: skip
"""By name; `popc` and `clz` depend on the bits of a type and are not among them. As in torch, sign(NaN) is 0, and relu
and clamp hand NaN on. `finite`, which is 0 for what is not, is for bounds of errors alone."""
