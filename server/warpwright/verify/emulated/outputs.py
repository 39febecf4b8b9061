"""What a kernel left in its outputs, and how far rounding lets it differ there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warpwright.emulator.agreement import (
    EQUAL,
    Output,
    equal_bits,
    everything,
    is_exact,
    tolerance_of,
    tolerance_of_zeros,
    written,
)
from warpwright.emulator.launch import Argument, ArrayArgument, StructArgument
from warpwright.emulator.values import POISONS, coarser, perturbed
from warpwright.facts.profile import Fault, FaultKind
from warpwright.problems.model import Problem
from warpwright.problems.types import element_type

PERTURBATIONS = 3
REPETITIONS = 3
"""More runs on the same inputs, where two differ."""


@dataclass(frozen=True, slots=True)
class Ran:
    outputs: Mapping[str, Any]
    faults: tuple[Fault, ...]
    changed_inputs: tuple[str, ...]
    changed_variables: frozenset[str]
    lane_steps: int
    thread_steps: int
    """Without what `lane_steps` adds for each instruction that lanes execute together."""

    def fault(self, but: frozenset[FaultKind] = frozenset()) -> Fault | None:
        return next((fault for fault in self.faults if fault.kind not in but), None)

    @property
    def kinds(self) -> frozenset[FaultKind]:
        return frozenset(fault.kind for fault in self.faults)


def in_order(runs: Sequence[Ran]) -> Ran:
    """Several launches, one after the other on the same memory, as one."""
    outputs: dict[str, Any] = {}
    for ran in runs:
        outputs |= ran.outputs
    return Ran(
        outputs,
        tuple(fault for ran in runs for fault in ran.faults),
        tuple(name for ran in runs for name in ran.changed_inputs),
        frozenset().union(*(ran.changed_variables for ran in runs)),
        sum(ran.lane_steps for ran in runs),
        sum(ran.thread_steps for ran in runs),
    )


def outputs_of(problem: Problem) -> Iterator[tuple[Output, str]]:
    """What the kernel gives back, with its role."""
    arguments = {part.name for part in problem.parts}
    for array in problem.arrays:
        element = element_type(array.type)
        if element is not None and array.role != "in" and array.name in arguments:
            yield Output(array.name, element.scalar, element.components), array.role


def written_of(runs: list[Any], role: str) -> Any:
    """What was written of an output; an in-out array is compared whole."""
    return written(list(zip(runs, POISONS, strict=True))) if role == "out" else everything(runs[0])


def arrays_of(arguments: Sequence[Argument]) -> dict[str, Any]:
    """What the arrays among the arguments hold, by name."""
    parts = [p for a in arguments for p in ([m for _, m in a.members] if isinstance(a, StructArgument) else [a])]
    return {part.name: part.data for part in parts if isinstance(part, ArrayArgument)}


class Moved:
    """What the original gives on inputs that were moved, and again on the same ones, run when it is first asked for."""

    def __init__(self, run_original: Callable[..., Ran]) -> None:
        self._run = run_original
        self._moved: list[Ran] = []
        self._rough: Ran | None = None
        self._again: list[Ran] = []

    def again(self, name: str) -> list[Any]:
        """One output on the same inputs, floats added to one word in other orders: one gap may be small by chance."""
        if not self._again:
            self._again = [self._run(atomic_order=8 + step) for step in range(REPETITIONS)]
        return [ran.outputs[name] for ran in self._again]

    def outputs(self, name: str) -> tuple[list[Any], Any]:
        """One output on inputs perturbed by one unit in the last place, and on coarser ones."""
        if self._rough is None:
            self._moved = [self._run(alter=perturbed(step), atomic_order=2 + step) for step in range(PERTURBATIONS)]
            self._rough = self._run(alter=coarser)
        return [ran.outputs[name] for ran in self._moved], self._rough.outputs[name]


def tolerance_for(output: Output, runs: list[Any], due: Any, distribution: str, moved: Moved) -> float:
    base = runs[0][due]
    if not output.is_float or not base.size:
        return 0.0
    if distribution == "integers" and is_exact(output, base):
        return EQUAL
    if distribution == "zeros":
        return tolerance_of_zeros(output, base, [runs[1][due]])
    others, rough = moved.outputs(output.name)
    control = None if distribution == "integers" else rough[due]
    again = [runs[1]] if equal_bits(runs[0][due], runs[1][due]) else [runs[1], *moved.again(output.name)]
    return tolerance_of(output, base, [each[due] for each in again], [each[due] for each in others], control)
