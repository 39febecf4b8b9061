"""Is one output the same as another, as far as rounding lets it be?

The method is the harness's: a difference may be as large as the original's own result moves when its inputs move by one
unit in the last place. Where the next lower precision of the inputs would pass that too, a stricter bound is taken. On
small whole numbers, where the original rounds nothing, results must be equal bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpwright.emulator.drawn import EPSILON, as_doubles, as_type
from warpwright.emulator.values import poisoned

NOISE_FACTOR = 8
ULPS = 4
STRICT_ULPS = 16
EQUAL = -1.0
"""The tolerance that asks for equality."""

MOST_DEGREE = 4

LEAST_ELEMENTS = 32
"""Fewer values say nothing about an output: one number is its own mean."""

_TINY = {"float64": 2.0**-1022, "float32": 2.0**-126, "float16": 2.0**-14, "bfloat16": 2.0**-126}


@dataclass(frozen=True, slots=True)
class Output:
    """One output as it is compared: elements of `components` numbers each, of one scalar type."""

    name: str
    scalar: str
    components: int

    @property
    def is_float(self) -> bool:
        return self.scalar in EPSILON


@dataclass(frozen=True, slots=True)
class Difference:
    """How far two outputs differ. `why` is empty where they agree within the tolerance.

    `max_abs`, `max_rel` and `max_ulp` are over the elements that both wrote and that are finite in both, `rel_l2` is
    the L2 norm of their differences over that of the original's. `max_ulp` counts representable numbers between two
    values, 0 for whole-number types.
    """

    max_abs: float
    max_rel: float
    tolerance: float
    why: str
    max_ulp: float = 0.0
    rel_l2: float = 0.0


def written(runs: Sequence[tuple[Any, int]]) -> Any:
    """Of each number of an "out" array, whether a kernel wrote it: `runs` are what runs left, each with its poison.

    >>> left = poisoned(np.dtype(np.uint32), 2, 7)
    >>> other = poisoned(np.dtype(np.uint32), 2, 9)
    >>> left[0] = other[0] = 5
    >>> written([(left, 7), (other, 9)]).tolist()
    [True, False]
    """
    untouched: Any = np.ones(len(runs[0][0]), dtype=bool)
    for data, poison in runs:
        untouched &= _bits(data) == _bits(poisoned(data.dtype, len(data), poison))
    return ~untouched


def everything(data: Any) -> Any:
    """As `written`, of an array that counts as written whole."""
    return np.ones(len(data), dtype=bool)


def compare(output: Output, candidate: Any, original: Any, wrote: tuple[Any, Any], tolerance: float) -> Difference:
    """Compare an output of the candidate with the original's, both flat. Whole numbers must be equal.

    `wrote` says which numbers the candidate and the original wrote: both must write the same. NaN and each infinity
    must stand at the same places. Finite values may differ by `tolerance` plus ULPS units in the last place.
    """

    ulp, rel_l2 = 0.0, 0.0

    def differ(why: str, max_abs: float = 0.0, max_rel: float = 0.0) -> Difference:
        return Difference(max_abs, max_rel, max(tolerance, 0.0), why, ulp, rel_l2)

    if (unlike := wrote[0] != wrote[1]).any():
        place = int(unlike.argmax())
        which = "was not written" if wrote[1][place] else "was written and should not be"
        return differ(f"{output.name}[{place // output.components}] {which}")
    places = np.flatnonzero(wrote[0])
    candidate, original = candidate[places], original[places]
    a, b = as_doubles(output.scalar, candidate), as_doubles(output.scalar, original)
    if not output.is_float:
        wrong = candidate != original
        if not wrong.any():
            return differ("")
        gap = float(np.abs(a - b).max())
        return differ(_where(output, wrong, a, b, places), gap, gap)
    ulp, rel_l2 = largest_ulp(output, candidate, original), _relative_l2(a, b)
    for name, mask in (("NaN", np.isnan), ("+inf", np.isposinf), ("-inf", np.isneginf)):
        wrong = mask(a) != mask(b)
        if wrong.any():
            return differ(f"{name} stands at other places: " + _where(output, wrong, a, b, places))
    finite = np.isfinite(b)
    size = np.where(finite, np.abs(b), 0.0)
    with np.errstate(invalid="ignore", over="ignore"):
        gaps = np.where(finite, np.abs(a - b), 0.0)
        ratios = gaps / np.maximum(size, _TINY[output.scalar])
    max_abs, max_rel = float(gaps.max(initial=0.0)), float(ratios.max(initial=0.0))
    wrong = gaps > (tolerance + ULPS * EPSILON[output.scalar] * size if tolerance >= 0 else 0.0)
    if wrong.any():
        return differ(_where(output, wrong, a, b, places), max_abs, max_rel)
    return differ("", max_abs, max_rel)


def is_exact(output: Output, data: Any) -> bool:
    """Whether an output holds only whole numbers that the type represents exactly: no rounding happened on the way."""
    if not output.is_float:
        return True
    values = as_doubles(output.scalar, data)
    whole = np.isfinite(values) & (values == np.rint(values)) & (np.abs(values) < 1.0 / EPSILON[output.scalar])
    return bool(whole.all())


def largest_gap(output: Output, a: Any, b: Any) -> float:
    """The largest difference of two outputs at elements that are finite in both."""
    with np.errstate(invalid="ignore"):
        gaps = np.abs(as_doubles(output.scalar, a) - as_doubles(output.scalar, b))
    return float(gaps[np.isfinite(gaps)].max(initial=0.0))


def largest_ulp(output: Output, a: Any, b: Any) -> float:
    """How many representable numbers lie between two outputs at most, at elements that are finite in both."""
    both = np.isfinite(as_doubles(output.scalar, a)) & np.isfinite(as_doubles(output.scalar, b))
    one, other = _rank(a[both]), _rank(b[both])
    far = np.abs(one.astype(np.float64) - other.astype(np.float64))  # of doubles, a difference may not fit 64 bits
    return float(np.where(far < 1 << 60, np.abs(one - other).astype(np.float64), far).max(initial=0.0))


def _rank(data: Any) -> Any:
    """The place of each value among the representable ones, 0 for both zeros."""
    whole = data.view(f"i{data.dtype.itemsize}").astype(np.int64)
    return np.where(whole < 0, -(whole & ((1 << (8 * data.dtype.itemsize - 1)) - 1)), whole)


def _relative_l2(a: Any, b: Any) -> float:
    """Of doubles: the L2 norm of the difference over that of `b`, where both are finite; 0 where both norms are."""
    both = np.isfinite(a) & np.isfinite(b)
    with np.errstate(over="ignore"):
        norm, gap = float(np.linalg.norm(b[both])), float(np.linalg.norm(a[both] - b[both]))
    return gap / norm if norm else gap


def tolerance_of(output: Output, base: Any, again: Sequence[Any], moved: Sequence[Any], rough: Any | None) -> float:
    """The allowed absolute difference of one output. All are what the original wrote, at the same places.

    `base` is its result, `again` that of more runs on the same inputs, `moved` on inputs that were perturbed, `rough`
    on coarser ones: None for small whole numbers, which are the same in every precision, so that it would say nothing.
    What the original itself differs by from run to run is never asked to be less.
    """
    restless = NOISE_FACTOR * max((largest_gap(output, each, base) for each in again), default=0.0)
    tolerance = max(restless, NOISE_FACTOR * max((largest_gap(output, each, base) for each in moved), default=0.0))
    if rough is not None and tolerance > 0 and largest_gap(output, rough, base) <= tolerance:
        return max(restless, min(tolerance, strict_tolerance(output, base)))
    return tolerance


def degree_of(output: Output, base: Any, halved: Any) -> int | None:
    """The k for which an output is multiplied by 2^-k, bit for bit, where all inputs are halved: 0 to MOST_DEGREE.

    Halving rounds nothing, so a kernel of which that holds computes sums of products of k inputs, or quotients of
    such. None where it holds for no k, or where the output is zero.
    """
    a, b = as_doubles(output.scalar, base), as_doubles(output.scalar, halved)
    finite = np.isfinite(a)
    if not a[finite].any():
        return None
    degrees = range(MOST_DEGREE + 1)
    return next((k for k in degrees if np.array_equal(a[finite], b[finite] * 2.0**k)), None)


def tolerance_of_scaled(output: Output, base: Any, scaled: Sequence[tuple[float, Any]]) -> float:
    """The allowed absolute difference of an output that follows its inputs' scale: `scaled` are what the original wrote
    for inputs times a factor f, as (f^k, output).

    Other roundings are met on the way to the same numbers. In a long sum the last bits of an input vanish, so that
    moving them shows nothing of how far its rounding goes.
    """
    a = as_doubles(output.scalar, base)
    with np.errstate(invalid="ignore", over="ignore"):
        gaps = [np.abs(as_doubles(output.scalar, each) / factor - a) for factor, each in scaled]
    return NOISE_FACTOR * max((float(gap[np.isfinite(gap)].max(initial=0.0)) for gap in gaps), default=0.0)


def tolerance_of_zeros(output: Output, base: Any, again: Sequence[Any]) -> float:
    """The same on inputs that are zero, which no perturbation moves."""
    noise = max((largest_gap(output, each, base) for each in again), default=0.0)
    return max(NOISE_FACTOR * noise, strict_tolerance(output, base))


def strict_tolerance(output: Output, base: Any) -> float:
    return STRICT_ULPS * EPSILON[output.scalar] * largest_size(output, base)


def is_spread(output: Output, data: Any) -> bool:
    """Whether an output has numbers that differ."""
    values = as_doubles(output.scalar, data)
    return len(values) > 1 and bool((values != values[0]).any())


def impostor_that_passes(
    output: Output, expected: Any, due: Any, tolerance: float, given: Any | None, shape: Mapping[str, int]
) -> str:
    """What passes without computing anything, in words such as "zero everywhere"; "" where nothing does.

    `due` says which numbers are to be written, `given` what an in-out array held before. Impostors are zeros, the
    output's own mean, its means along an axis of the shape, and what was there. One that equals the original's output
    exactly is no impostor but the answer; where the output is not finite, all hold what it holds.
    """
    if due.sum() < LEAST_ELEMENTS:
        return ""
    finite = np.isfinite(as_doubles(output.scalar, expected))
    if not (due & finite).any():
        return ""
    for words, made in _impostors(output, expected, due & finite, given, shape):
        impostor = np.where(finite, made, expected)
        is_answer = equal_bits(impostor[due], expected[due])
        if not is_answer and not compare(output, impostor, expected, (due, due), tolerance).why:
            return words
    return ""


def _impostors(
    output: Output, expected: Any, known: Any, given: Any | None, shape: Mapping[str, int]
) -> Iterator[tuple[str, Any]]:
    values = as_doubles(output.scalar, expected)
    with np.errstate(all="ignore"):
        yield "zero everywhere", as_type(output.scalar, np.zeros_like(values))
        yield "its mean everywhere", as_type(output.scalar, np.full_like(values, values[known].mean()))
        if given is not None:
            yield "what it held before", given
        for name, size in shape.items():
            if 1 < size < values.size and values.size % size == 0 and known.all():
                rows = values.reshape(-1, size)
                for axis in (0, 1):
                    means = np.broadcast_to(rows.mean(axis=axis, keepdims=True), rows.shape)
                    yield f"its mean along {name}", as_type(output.scalar, means.reshape(-1))


def is_infinite_for_nan(output: Output, own: Any, given: Any) -> bool:
    """Whether a result is infinite anywhere where the original's is NaN."""
    return bool((np.isnan(as_doubles(output.scalar, own)) & np.isinf(as_doubles(output.scalar, given))).any())


def without_infinities(output: Output, own: Any, bounded: Any, given: Any) -> Any:
    """A result with the original's NaN in the place of infinities, where the original gives a number on inputs that
    have large numbers for infinities (`bounded`): what its operations meet there is `inf - inf` or the like."""
    is_nan, is_number = np.isnan(as_doubles(output.scalar, own)), np.isfinite(as_doubles(output.scalar, bounded))
    return np.where(is_nan & is_number & np.isinf(as_doubles(output.scalar, given)), own, given)


def without_overflow(output: Output, own: Any, grown: Any, given: Any) -> Any:
    """A result with the original's in its place, where that overflows, or does on inputs that are larger (`grown`)."""
    stays = np.isfinite(as_doubles(output.scalar, own)) & np.isfinite(as_doubles(output.scalar, grown))
    return np.where(stays, given, own)


def equally_finite(output: Output, a: Any, b: Any) -> bool:
    """Whether the same numbers of both are finite."""
    return bool((np.isfinite(as_doubles(output.scalar, a)) == np.isfinite(as_doubles(output.scalar, b))).all())


def equal_bits(a: Any, b: Any) -> bool:
    return bool((_bits(a) == _bits(b)).all())


def changed_from(before: Any, after: Any) -> Any:
    """Of each number of an array, whether its bits are other ones than before."""
    return _bits(after) != _bits(before)


def largest_size(output: Output, data: Any) -> float:
    """The largest magnitude among the finite numbers of an output."""
    values = np.abs(as_doubles(output.scalar, data))
    return float(values[np.isfinite(values)].max(initial=0.0))


def _bits(data: Any) -> Any:
    return data.view(f"u{data.dtype.itemsize}")


def _where(output: Output, wrong: Any, a: Any, b: Any, places: Any) -> str:
    first = int(wrong.argmax())
    return (
        f"{output.name}[{int(places[first]) // output.components}] is {a[first]:.9g} and should be {b[first]:.9g}; "
        f"{int(wrong.sum()):,} of {wrong.size:,} values differ"
    )
