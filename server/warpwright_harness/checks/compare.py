"""Is one output the same as another, as far as rounding lets it be?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from warpwright_harness.buffers import ArraySpec, bits

NOISE_FACTOR = 8
ULPS = 4
STRICT_ULPS = 16
MOST_DEGREE = 4


@dataclass(frozen=True)
class Difference:
    """How far two outputs differ. `why` is empty where they agree within the tolerance.

    `max_abs`, `max_rel` and `max_ulp` are over the elements that both wrote and that are finite in both, `rel_l2` is
    the L2 norm of their differences over that of the baseline's. `max_ulp` counts representable numbers between two
    values, 0 for whole-number types.
    """

    array: str
    max_abs: float
    max_rel: float
    tolerance: float
    why: str
    max_ulp: float = 0.0
    rel_l2: float = 0.0


def agree_quickly(candidate: torch.Tensor, baseline: torch.Tensor, tolerance: float) -> bool:
    """A quick yes, in the output's own precision; a no may still be one of rounding, for `compare` to judge."""
    same = bits(candidate) == bits(baseline)
    if bool(same.all()):
        return True
    if not baseline.is_floating_point() or tolerance < 0:
        return False
    allowed = baseline.abs() * (ULPS * torch.finfo(baseline.dtype).eps) + tolerance
    return bool((same | ((candidate - baseline).abs() <= allowed)).all())


def compare(
    spec: ArraySpec,
    candidate: torch.Tensor,
    baseline: torch.Tensor,
    written: tuple[torch.Tensor, torch.Tensor],
    tolerance: float,
) -> Difference:
    """Compare an output of the candidate with the baseline's. Whole numbers must be equal.

    `written` says which elements the candidate and the baseline wrote: both must write the same. NaN and each infinity
    must stand at the same places. Finite values may differ by `tolerance` plus ULPS units in the last place; a
    `tolerance` below zero asks for equality.
    """

    ulp, rel_l2 = 0.0, 0.0

    def differ(why: str, max_abs: float = 0.0, max_rel: float = 0.0) -> Difference:
        return Difference(spec.name, max_abs, max_rel, max(tolerance, 0.0), why, ulp, rel_l2)

    if bool((written[0] != written[1]).any()):
        place = _first(written[0] != written[1])
        which = "was not written" if bool(written[1][place]) else "was written and should not be"
        return differ(f"{spec.name}[{place // spec.components}] {which}")
    places = torch.nonzero(written[0]).flatten() if not bool(written[0].all()) else None
    if places is not None:
        candidate, baseline = candidate[places], baseline[places]
    wrong = bits(candidate) != bits(baseline)
    if not bool(wrong.any()):
        return differ("")
    if not spec.is_float:
        gap = float((candidate.double() - baseline.double()).abs().max())
        return differ(_where(spec, wrong, candidate, baseline, places), gap, gap)
    ulp, rel_l2 = largest_ulp(candidate, baseline), relative_l2(candidate, baseline)
    a, b = candidate.double(), baseline.double()
    for name, mask in (("NaN", torch.isnan), ("+inf", torch.isposinf), ("-inf", torch.isneginf)):
        wrong = mask(a) != mask(b)
        if bool(wrong.any()):
            return differ(f"{name} stands at other places: " + _where(spec, wrong, candidate, baseline, places))
    finite = torch.isfinite(b)
    gap_each = torch.where(finite, (a - b).abs(), torch.zeros_like(a)).nan_to_num(0.0)
    size = torch.where(finite, b.abs(), torch.zeros_like(b))
    max_abs = float(gap_each.max()) if gap_each.numel() else 0.0
    max_rel = float((gap_each / size.clamp_min(torch.finfo(spec.dtype).tiny)).max()) if gap_each.numel() else 0.0
    allowed = tolerance + ULPS * torch.finfo(spec.dtype).eps * size if tolerance >= 0 else torch.zeros_like(size)
    wrong = gap_each > allowed
    if bool(wrong.any()):
        return differ(_where(spec, wrong, candidate, baseline, places), max_abs, max_rel)
    return differ("", max_abs, max_rel)


def _first(mask: torch.Tensor) -> int:
    return int(torch.nonzero(mask.flatten())[0].item())


def _where(
    spec: ArraySpec,
    wrong: torch.Tensor,
    candidate: torch.Tensor,
    baseline: torch.Tensor,
    places: torch.Tensor | None,
) -> str:
    place = _first(wrong)
    at = place if places is None else int(places[place].item())
    return (
        f"{spec.name}[{at // spec.components}] is {candidate[place].item():.9g} and should be "
        f"{baseline[place].item():.9g}; {int(wrong.sum()):,} of {wrong.numel():,} values differ"
    )


def is_exact(spec: ArraySpec, baseline: torch.Tensor) -> bool:
    """Whether an output holds only whole numbers that the type represents exactly: no rounding happened on the way.

    True for a linear kernel on small whole numbers. Such outputs must be equal bit for bit.
    """
    if not spec.is_float:
        return True
    values = baseline.double()
    largest = 1.0 / torch.finfo(spec.dtype).eps
    return bool((torch.isfinite(values) & (values == values.round()) & (values.abs() < largest)).all())


def largest_ulp(a: torch.Tensor, b: torch.Tensor) -> float:
    """How many representable numbers lie between two outputs at most, at elements that are finite in both."""
    if not a.numel():
        return 0.0
    both = torch.isfinite(a) & torch.isfinite(b)
    one, other = _rank(a), _rank(b)
    far = (one.double() - other.double()).abs()  # of double precision, a difference may not fit 64 bits
    return float(torch.where(both, torch.where(far < 1 << 60, (one - other).abs().double(), far), 0.0).max())


def _rank(values: torch.Tensor) -> torch.Tensor:
    """The place of each value among the representable ones, 0 for both zeros."""
    whole = bits(values).to(torch.int64)
    but_sign = (1 << (8 * values.element_size() - 1)) - 1
    return torch.where(whole < 0, -(whole & but_sign), whole)


def relative_l2(a: torch.Tensor, b: torch.Tensor) -> float:
    """The L2 norm of the difference over that of `b`, at elements that are finite in both; 0 where both norms are."""
    both = torch.isfinite(a) & torch.isfinite(b)
    wide_a, wide_b = (torch.where(both, each.double(), 0.0) for each in (a, b))
    norm, gap = float(torch.linalg.vector_norm(wide_b)), float(torch.linalg.vector_norm(wide_a - wide_b))
    return gap / norm if norm else gap


def largest_gap(a: torch.Tensor, b: torch.Tensor) -> float:
    """The largest difference of two outputs at elements that are finite in both."""
    gap = (a.double() - b.double()).abs()
    return float(torch.where(torch.isfinite(gap), gap, 0.0).max()) if gap.numel() else 0.0


def largest_size(a: torch.Tensor) -> float:
    values = a.double().abs()
    return float(torch.where(torch.isfinite(values), values, 0.0).max()) if values.numel() else 0.0


def degree_of(baseline: torch.Tensor, halved: torch.Tensor) -> int | None:
    """The k for which an output is multiplied by 2^-k, bit for bit, where all inputs are halved: 0 to MOST_DEGREE.

    Halving rounds nothing, so a kernel of which that holds computes sums of products of k inputs, or quotients of
    such. None where it holds for no k, or where the output is zero.
    """
    a, b = baseline.double(), halved.double()
    finite = torch.isfinite(a)
    if not bool(a[finite].any()):
        return None
    degrees = range(MOST_DEGREE + 1)
    return next((k for k in degrees if torch.equal(a[finite], b[finite] * 2.0**k)), None)


def tolerance_of_scaled(baseline: torch.Tensor, scaled: Sequence[tuple[float, torch.Tensor]]) -> float:
    """The allowed absolute difference of an output that follows its inputs' scale: `scaled` are what the original wrote
    for inputs times a factor f, as (f^k, output).

    Other roundings are met on the way to the same numbers. In a long sum the last bits of an input vanish, so that
    moving them shows nothing of how far its rounding goes.
    """
    gaps = [(each.double() / factor - baseline.double()).abs() for factor, each in scaled]
    return NOISE_FACTOR * max((float(g[torch.isfinite(g)].max()) for g in gaps if torch.isfinite(g).any()), default=0.0)


def strict_tolerance(spec: ArraySpec, baseline: torch.Tensor) -> float:
    return STRICT_ULPS * float(torch.finfo(spec.dtype).eps) * largest_size(baseline) if spec.is_float else 0.0
