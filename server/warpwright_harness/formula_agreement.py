"""Whether outputs of a kernel agree with a formula's reference, element by element: the rules of
`warpwright.formulas.numpy_agreement`, for tensors of torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from warpwright_harness.formula_types import COMPLEX, FLOATS, cast, is_float, is_whole

Tensor = Any

_SMALLEST_NORMAL = {53: 2.0**-1022, 24: 2.0**-126}
_DIGITS = {**{name: known[0] for name, known in FLOATS.items()}, "c64": 24, "c128": 53}


@dataclass(frozen=True)
class Agreement:
    """Of one output: how many elements are `wrong`, how many `unjudged`, and the one that is furthest from the
    reference."""

    wrong: int
    unjudged: int
    place: tuple[int, ...] = ()
    got: Any = None
    expected: Any = None
    tolerance: float = 0.0


def agreement(got: Tensor, expected: Tensor, error: Tensor, kind: str) -> Agreement:
    """How one output, in the working type of `kind`, agrees with its reference, given the bound of its error."""
    if not got.numel():
        return Agreement(0, 0)
    error = error.double().expand(expected.shape)
    digits = _DIGITS.get(kind, 0)
    smallest = _SMALLEST_NORMAL.get(max(24, digits), 0.0) if digits else 0.0
    tolerance = torch.where(error > 0, error + smallest, 0.0)
    is_complex = kind in COMPLEX
    finite = expected.isfinite()
    other_kind = torch.ones_like(finite) if is_complex else expected.isnan() != got.isnan()
    unjudged = ~error.isfinite() & (finite | (~finite & ~got.isfinite() & other_kind))
    if is_complex:
        tolerance = tolerance + expected.abs() * 2.0**-digits * 1.5
        distance = (got - expected).abs() - tolerance
        same = (got == expected) | (got.isnan() & expected.isnan()) | _part_by_part(got, expected, error, digits)
    else:
        low, high = _ends(expected, tolerance, kind)
        distance = torch.maximum(_minus(low, got, kind), _minus(got, high, kind))
        same = (got == cast(expected, kind)) | (got.isnan() & expected.isnan())
    right = same | ((distance <= 0) & finite) | unjudged
    wrong = int((~right).sum())
    if not wrong:
        return Agreement(0, int(unjudged.sum()))
    size = _minus(got, expected, kind).abs().nan_to_num(nan=torch.inf) / (tolerance + smallest + 1e-300)
    at = int(torch.where(right, -1.0, size.nan_to_num(nan=torch.inf)).argmax())
    place = tuple(int(each) for each in torch.unravel_index(torch.tensor(at), got.shape)) if got.dim() else ()
    values = (each.reshape(-1)[at].item() for each in (got, expected, tolerance))
    return Agreement(wrong, int(unjudged.sum()), place, *values)


def _part_by_part(got: Tensor, expected: Tensor, error: Tensor, digits: int) -> Tensor:
    """Whether the parts of complex numbers agree, of which one is not finite."""
    agree = ~expected.isfinite()
    for one, other in ((got.real, expected.real), (got.imag, expected.imag)):
        within = (one - other).abs() <= error + other.abs() * 2.0**-digits * 1.5
        agree = agree & ((one == other) | (one.isnan() & other.isnan()) | within)
    return agree


def _ends(center: Tensor, tolerance: Tensor, kind: str) -> tuple[Tensor, Tensor]:
    if is_float(kind):
        center = center.double()
        return cast(center - tolerance, kind), cast(center + tolerance, kind)
    if kind == "bool":
        sure = tolerance < 0.5
        return center & sure, center | ~sure
    steps = torch.where(tolerance.isfinite(), tolerance.ceil().clamp(max=2.0**62), 2.0**62).to(torch.int64)
    return torch.where(steps > 0, center - steps, center), torch.where(steps > 0, center + steps, center)


def _minus(one: Tensor, other: Tensor, kind: str) -> Tensor:
    if kind in COMPLEX:
        return one - other
    if is_whole(kind):
        return torch.where(one >= other, (one - other).double(), -((other - one).double()))
    return one.double() - other.double()
