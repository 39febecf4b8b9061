"""Are a candidate's calls the same as the original's?

An output is what a call returns, and what the original writes into its inputs. Both sides are called on the same
inputs, in the same order; the tolerance is measured on one side's own results, as for kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch

from warpwright_harness.buffers import ArraySpec, bits
from warpwright_harness.checks.compare import (
    NOISE_FACTOR,
    STRICT_ULPS,
    Difference,
    agree_quickly,
    compare,
    is_exact,
    largest_gap,
    largest_size,
)
from warpwright_harness.extension.batch import Called, Output

MOST_ROUNDINGS = 128
LEAST_FINITE = 32
"""Of fewer finite elements the rounding is measured on more than one set of values."""


@dataclass(frozen=True)
class Compared:
    """Outputs of one call or of several, as far apart as the worst of them; `why` is empty where they agree."""

    max_abs: float = 0.0
    max_rel: float = 0.0
    max_ulp: float = 0.0
    rel_l2: float = 0.0
    tolerance: float = 0.0
    why: str = ""

    def figures(self) -> dict[str, float]:
        """What an event says of them."""
        names = ("max_abs", "max_rel", "max_ulp", "rel_l2", "tolerance")
        return {name: getattr(self, name) for name in names}


def worst(found: Iterable[Compared | Difference]) -> Compared:
    """The largest of each figure, and the first reason."""
    result = Compared()
    for one in found:
        result = Compared(
            max(result.max_abs, one.max_abs),
            max(result.max_rel, one.max_rel),
            max(result.max_ulp, one.max_ulp),
            max(result.rel_l2, one.rel_l2),
            max(result.tolerance, one.tolerance),
            result.why or one.why,
        )
    return result


def name_of(place: int, count: int) -> str:
    return "its result" if count == 1 else f"its result {place}"


def misbehaviour(candidate: Called, original: Called, written: frozenset[str]) -> str:
    """What a call did to memory that was not its to write, or gave that it does not own; empty for nothing.

    `written` are the inputs that the original is known to write to.
    """
    if outside := sorted(candidate.outside - original.outside):
        return f"it writes outside {outside[0]}"
    if changed := sorted(candidate.changed - written):
        return f"it changes its input {changed[0]}"
    for place, (mine, theirs) in enumerate(zip(candidate.outputs, original.outputs, strict=False)):
        if shares := sorted(set(mine.shares) - set(theirs.shares)):
            return f"{name_of(place, len(original.outputs))} shares memory with its input {shares[0]}"
    return ""


def unlike(candidate: Called, original: Called) -> str:
    """How the returned tensors differ before their values are looked at; empty where they do not."""
    mine, theirs = candidate.outputs, original.outputs
    if len(mine) != len(theirs):
        return f"it returns {len(mine)} tensors and should return {len(theirs)}"
    for place, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        name = name_of(place, len(theirs))
        if a.scalar != b.scalar:
            return f"{name} is of type {a.scalar} and should be {b.scalar}"
        if a.sizes != b.sizes:
            return f"{name} has the shape {_shape(a.sizes)} and should have {_shape(b.sizes)}"
        if a.device != b.device:
            return f"{name} lies on the {a.device} and should lie on the {b.device}"
        if _steps(a) != _steps(b):
            return f"{name} has the strides {_shape(a.strides)} and should have {_shape(b.strides)}"
    return ""


def _steps(output: Output) -> list[int]:
    """Strides that matter: of dimensions of more than one element, of a tensor that has any."""
    if 0 in output.sizes:
        return []
    return [step for step, size in zip(output.strides, output.sizes, strict=True) if size > 1]


def _shape(sizes: Sequence[int]) -> str:
    return f"({', '.join(map(str, sizes))})"


def flat(called: Called, written: frozenset[str]) -> dict[str, torch.Tensor]:
    """The outputs by name: what was returned, and those of the inputs that the original writes to."""
    outputs = {name_of(place, len(called.outputs)): o.data for place, o in enumerate(called.outputs)}
    return {**outputs, **{name: called.inputs[name] for name in sorted(written)}}


def spec_of(name: str, data: torch.Tensor) -> ArraySpec:
    scalar = str(data.dtype).removeprefix("torch.")
    return ArraySpec(name, scalar, 1, "out", data.numel(), None)


@dataclass(frozen=True)
class Sample:
    """What one output showed of its rounding on one set of values, where all gaps are absolute and of finite elements.

    `noise` is how far it moves from run to run and with inputs that are moved by one unit in the last place, `rough`
    the same with inputs in the next lower precision (None where that would say nothing), `error` how far it is from
    the reference in float64 (0 without one). `whole` says that it holds whole numbers alone, on small whole numbers.
    """

    epsilon: float
    finite: int
    largest: float
    noise: float
    rough: float | None
    error: float
    whole: bool

    @property
    def strict(self) -> float:
        return STRICT_ULPS * self.epsilon * self.largest


def sampled(
    runs: Sequence[Mapping[str, torch.Tensor]],
    moved: Sequence[Mapping[str, torch.Tensor]],
    rough: Mapping[str, torch.Tensor] | None,
    truth: Mapping[str, torch.Tensor] | None,
    *,
    exact: bool,
) -> dict[str, Sample]:
    """A sample of each floating-point output that has elements.

    `runs` are one side's outputs of the same inputs, `moved` those of inputs that were moved by one unit in the last
    place, `rough` those of inputs in the next lower precision. `exact` says that the inputs are small whole numbers.
    """
    found = {}
    for name, base in runs[0].items():
        spec = spec_of(name, base)
        if spec.is_float and base.numel():
            found[name] = Sample(
                float(torch.finfo(base.dtype).eps),
                int(torch.isfinite(base).sum()),
                largest_size(base),
                max((largest_gap(run[name], base) for run in (*runs[1:], *moved)), default=0.0),
                None if rough is None else largest_gap(rough[name], base),
                0.0 if truth is None else largest_gap(base, truth[name]),
                exact and is_exact(spec, base),
            )
    return found


def is_few(samples: Mapping[str, Sample]) -> bool:
    """Whether an output has so few finite elements that its rounding may have looked small by luck."""
    return any(sample.finite < LEAST_FINITE and not sample.whole for sample in samples.values())


def tolerance_of(samples: Sequence[Sample]) -> float:
    """The allowed absolute difference of an output that gave these samples, one or more: -1 asks for equality.

    Whole numbers on small whole numbers must be equal. Else it is NOISE_FACTOR times the noise; where the next lower
    precision would pass that, STRICT_ULPS of the largest value are taken if they are less.

    A reference leaves room for the original's own error, which a candidate need not share: a long sum in another order
    is as right and differs by more than inputs that move by one unit in the last place. No wider than MOST_ROUNDINGS of
    the largest value: a reference that is wrong widens nothing much, and the next lower precision does not pass.
    """
    if all(sample.whole for sample in samples):
        return -1.0
    strict = max(sample.strict for sample in samples)
    tolerance = NOISE_FACTOR * max(sample.noise for sample in samples)
    rough = [sample.rough for sample in samples if sample.rough is not None]
    if not rough:
        tolerance = max(tolerance, strict)
    elif tolerance > 0 and max(rough) <= tolerance:
        tolerance = min(tolerance, strict)
    most = MOST_ROUNDINGS / STRICT_ULPS * strict
    return max(tolerance, min(2 * max(sample.error for sample in samples), most))


def restless(runs: Sequence[Mapping[str, torch.Tensor]]) -> str:
    """An output of whole numbers that differs between runs on the same inputs; empty where there is none."""
    for name, base in runs[0].items():
        if not base.is_floating_point() and any(bool((bits(run[name]) != bits(base)).any()) for run in runs[1:]):
            return name
    return ""


def quick_differences(
    candidate: Mapping[str, torch.Tensor], expected: Mapping[str, torch.Tensor], allowed: Mapping[str, float]
) -> str:
    """Why they differ, "" where they agree: `differences` without its figures, where a quick look is enough."""
    if all(agree_quickly(candidate[name], base, allowed.get(name, 0.0)) for name, base in expected.items()):
        return ""
    return differences(candidate, expected, allowed).why


def differences(
    candidate: Mapping[str, torch.Tensor], expected: Mapping[str, torch.Tensor], allowed: Mapping[str, float]
) -> Compared:
    """The candidate's outputs of one call against those expected; `allowed` has each output's tolerance."""
    found: list[Difference] = []
    for name, base in expected.items():
        mine = candidate[name].view(base.dtype)
        everywhere = torch.ones(base.numel(), dtype=torch.bool, device=base.device)
        found.append(compare(spec_of(name, base), mine, base, (everywhere, everywhere), allowed.get(name, 0.0)))
    return worst(found)
