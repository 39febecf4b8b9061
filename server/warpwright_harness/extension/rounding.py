"""How far rounding may move the outputs of a call: measured by running one side again, on the values that are compared.

The side is the original, or the candidate where a reference is what it is compared with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from warpwright_harness.buffers import coarser, perturbed
from warpwright_harness.extension.batch import Batch, Called, Values
from warpwright_harness.extension.judge import Case, Judge
from warpwright_harness.extension.outputs import Sample, flat, sampled, tolerance_of
from warpwright_harness.extension.reference import Reference, call_reference

PERTURBATIONS = 3
Outputs = Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class Rounding:
    """Whose rounding is measured, and at which size; `by_reference` says that it is of the candidate."""

    judge: Judge
    case: Case
    distribution: str
    reference: Reference | None
    by_reference: bool = False

    def sample(self, values: Values, runs: Sequence[Outputs]) -> dict[str, Sample]:
        """What the outputs show on these values, of which `runs` are. Raises OriginalError and CandidateError."""
        exact = self.distribution == "integers"
        truth = None
        if self.reference is not None and not self.by_reference:
            truth = call_reference(self.judge.emit, self.reference, self.case.parameters, values, runs[0])
        if self.distribution == "zeros" or not any(t.is_floating_point() for t in runs[0].values()):
            return sampled(runs, [], None, truth, exact=exact)
        run = self.judge.candidate if self.by_reference else self.judge.original
        specs = self.case.parameters.tensors
        seeds = [self.judge.order.randrange(1 << 60) for _ in range(PERTURBATIONS)]
        moved = [{s.name: perturbed(s, values[s.name], seed + i) for i, s in enumerate(specs)} for seed in seeds]
        if exact:  # small whole numbers are the same in every precision: a control would say nothing
            return sampled(runs, copied(run(self.case, moved), self.judge.written), None, truth, exact=True)
        rough = {s.name: coarser(s, values[s.name]) for s in specs}
        outputs = copied(run(self.case, [*moved, rough]), self.judge.written)
        return sampled(runs, outputs[:-1], outputs[-1], truth, exact=False)


def kept(call: Called, written: frozenset[str]) -> dict[str, torch.Tensor]:
    """The outputs of a call, copied, because a side's next batch lies where this one does."""
    return {name: tensor.clone() for name, tensor in flat(call, written).items()}


def copied(batch: Batch, written: frozenset[str]) -> list[dict[str, torch.Tensor]]:
    """`kept` of each call."""
    return [kept(call, written) for call in batch.calls]


def tolerances(samples: Sequence[Mapping[str, Sample]]) -> dict[str, float]:
    """By output, the allowed absolute difference (`outputs.tolerance_of`), of samples on one set of values or more."""
    return {name: tolerance_of([sample[name] for sample in samples]) for name in samples[0]}


def either(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    """By output, the larger of two tolerances; one that has none asks for equality.

    >>> either({"a": -1.0, "b": 2.0}, {"a": 0.5, "b": 1.0})
    {'a': 0.5, 'b': 2.0}
    """
    return {name: max(one.get(name, -1.0), other.get(name, -1.0)) for name in {**one, **other}}
