"""Whether outputs of a kernel agree with the reference, element by element.

An element agrees where it lies between the two ends of its tolerance, both rounded to the type of the output. So a copy
must be exact, a value beyond the largest one must be what the type makes of it, and what is not finite the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from warpwright.formulas.model import Formula
from warpwright.formulas.numpy_reference import Reference
from warpwright.formulas.numpy_types import Array, cast, held
from warpwright.formulas.tolerance import error_name, with_errors
from warpwright.formulas.types import ElementType, computed

_SMALLEST_NORMAL = {53: 2.0**-1022, 24: 2.0**-126}


@dataclass(frozen=True, slots=True)
class Agreement:
    """Of one output: how many elements are `wrong`, and how many are `unjudged`, since roundings before them leave
    nothing to compare. `place` is the element that is furthest from the reference in units of its tolerance, with
    what was found and expected there; None where there are no elements."""

    output: str
    elements: int
    wrong: int
    unjudged: int
    place: tuple[int, ...] | None = None
    got: complex = 0.0
    expected: complex = 0.0
    tolerance: float = 0.0

    @property
    def agrees(self) -> bool:
        return not self.wrong

    def __str__(self) -> str:
        if self.place is None or not self.wrong:
            return f"{self.output} agrees with the reference."
        where = f"{self.output}[{', '.join(map(str, self.place))}]" if self.place else self.output
        of = f", and {self.wrong - 1} more of {self.elements} differ" if self.wrong > 1 else ""
        return f"{where} is {_shown(self.got)}, and the reference {_shown(self.expected)} +- {self.tolerance:.2g}{of}."


def reference(
    formula: Formula,
    arrays: Mapping[str, Array],
    scalars: Mapping[str, float | complex] | None = None,
    sizes: Mapping[str, int] | None = None,
) -> dict[str, Array]:
    """The outputs as by `numpy_reference.evaluate`, and the bounds of their errors under `tolerance.error_name`."""
    return reference_of(formula)(arrays, scalars, sizes)


def reference_of(formula: Formula) -> Reference:
    """What `reference` gives, for many arrays."""
    return Reference(with_errors(formula))


def agreements(formula: Formula, got: Mapping[str, Array], expected: Mapping[str, Array]) -> tuple[Agreement, ...]:
    """How each output agrees with what `reference` gave.

    >>> from warpwright.formulas.resolve import formula_of
    >>> f = formula_of("y[r] = sum[c] x[r, c]")
    >>> expected = reference(f, {"x": np.ones((2, 3))})
    >>> for y in ([3, 3.0000001], [3, 2]): print(*agreements(f, {"y": np.array(y, np.float32)}, expected))
    y agrees with the reference.
    y[1] is 2, and the reference 3 +- 2.5e-06.
    """
    return tuple(
        agreement(each.name, got[each.name], expected[each.name], expected[error_name(each.name)],
                  formula.type_of(each.name))
        for each in formula.outputs
    )  # fmt: skip


def agreement(output: str, got: Array, expected: Array, error: Array, kind: ElementType) -> Agreement:
    """How one output agrees with its reference, given the bound of its error."""
    got, expected = held(got, kind), np.asarray(expected)
    if got.shape != expected.shape:
        raise ValueError(f"{output} has the shape {got.shape}, not {expected.shape}")
    if not got.size:
        return Agreement(output, 0, 0, 0)
    error = np.asarray(error, np.float64)
    with np.errstate(all="ignore"):
        smallest = _SMALLEST_NORMAL.get(computed(kind).digits, 0.0)
        tolerance = np.where(error > 0, error + smallest, 0.0)
        # What is not finite may be an infinity or no number, as infinities met in one order or another.
        other_kind = (np.isnan(expected) != np.isnan(got)) | (kind.kind == "complex")
        both_not = ~np.isfinite(expected) & ~np.isfinite(got) & other_kind
        unjudged = ~np.isfinite(error) & (np.isfinite(expected) | both_not)
        if kind.kind == "complex":
            tolerance = tolerance + np.abs(expected) * 2.0**-kind.digits * 1.5
            distance = np.abs(got - expected) - tolerance
            same = (got == expected) | (np.isnan(got) & np.isnan(expected))
            same |= _part_by_part(got, expected, error, kind)
        else:
            center = expected.astype(np.float64) if kind.is_float else expected
            low, high = _ends(center, tolerance, kind)
            below, above = _minus(low, got, kind), _minus(got, high, kind)
            distance = np.maximum(below, above)
            same = (got == cast(expected, kind)) | (np.isnan(got) & np.isnan(expected))
        inside = (distance <= 0) & np.isfinite(expected)
        right = same | inside | unjudged
        far = np.abs(_minus(got, expected, kind)) / (tolerance + smallest + 1e-300)
        far = np.where(right, np.where(np.isfinite(far) & ~unjudged, far, 0.0), np.inf)
        if not right.all():
            # Of those that are wrong the one that is furthest away; one that is not finite is further than any other.
            size = np.nan_to_num(np.abs(_minus(got, expected, kind)), nan=np.inf)
            far = np.where(right, -1.0, np.nan_to_num(size / (tolerance + smallest + 1e-300), nan=np.inf))
    place = tuple(int(each) for each in np.unravel_index(int(np.argmax(far)), got.shape))
    wrong, left = int((~right).sum()), int(unjudged.sum())
    values = got[place].item(), expected[place].item(), float(tolerance[place])
    return Agreement(output, int(got.size), wrong, left, place, *values)


def _part_by_part(got: Array, expected: Array, error: Array, kind: ElementType) -> Array:
    """Whether the parts of complex numbers agree, of which one is not finite."""
    agree = ~np.isfinite(expected)
    for one, other in ((got.real, expected.real), (got.imag, expected.imag)):
        within = np.abs(one - other) <= error + np.abs(other) * 2.0**-kind.digits * 1.5
        agree = agree & ((one == other) | (np.isnan(one) & np.isnan(other)) | within)
    return agree


def _ends(center: Array, tolerance: Array, kind: ElementType) -> tuple[Array, Array]:
    if kind.is_float:
        return cast(center - tolerance, kind), cast(center + tolerance, kind)
    if kind.kind == "bool":
        sure = tolerance < 0.5
        return center & sure, center | ~sure
    # Whole numbers of 64 bits are kept as they are: most have no error.
    steps = np.where(np.isfinite(tolerance), np.minimum(np.ceil(tolerance), 2.0**62), 2.0**62).astype(np.int64)
    return np.where(steps > 0, center - steps, center), np.where(steps > 0, center + steps, center)


def _minus(one: Array, other: Array, kind: ElementType) -> Array:
    if kind.kind == "complex":
        return one - other
    if kind.kind == "integer":
        return np.where(one >= other, 1.0, -1.0) * np.where(one >= other, one - other, other - one).astype(np.float64)
    return one.astype(np.float64) - other.astype(np.float64)


def _shown(value: complex) -> str:
    return f"{value:.9g}" if isinstance(value, float | complex) else str(value)
