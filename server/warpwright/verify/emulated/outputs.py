"""What a kernel left in its outputs, and how far rounding lets it differ there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warpwright.emulator.agreement import (
    EQUAL,
    LEAST_ELEMENTS,
    Output,
    degree_of,
    equal_bits,
    equally_finite,
    everything,
    is_exact,
    is_infinite_for_nan,
    largest_gap,
    strict_tolerance,
    tolerance_of,
    tolerance_of_scaled,
    tolerance_of_zeros,
    without_infinities,
    without_overflow,
    written,
)
from warpwright.emulator.launch import Argument, ArrayArgument, StructArgument
from warpwright.emulator.values import POISONS, Alteration, bounded, coarser, perturbed, scaled
from warpwright.facts.profile import Fault, FaultKind
from warpwright.problems.model import Problem
from warpwright.problems.types import element_type

PERTURBATIONS = 3
REPETITIONS = 3
"""More runs on the same inputs, where two differ."""

MOST_STRICT = 64
"""Of the strict tolerance: a thousand units in the last place."""

MARGIN = 16.0
"""By how much huge inputs may still grow where what is made of them is judged."""

SCALES = (0.8306, 1.2274, 1.6541)
"""Factors of no round number, below a power of two and above."""


@dataclass(frozen=True, slots=True)
class Ran:
    outputs: Mapping[str, Any]
    faults: tuple[Fault, ...]
    changed_inputs: tuple[str, ...]
    changed_variables: frozenset[str]
    lane_steps: int
    thread_steps: int
    """Without what `lane_steps` adds for each instruction that lanes execute together."""
    variables: Mapping[str, bytes]
    """What the module's writable variables hold, by their names in the PTX."""
    printed: tuple[str, ...]

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
        runs[-1].variables,
        tuple(text for ran in runs for text in ran.printed),
    )


def outputs_of(problem: Problem) -> Iterator[tuple[Output, str]]:
    """What the kernel gives back, in its arrays and in the file's variables, with its role."""
    arguments = {part.name for part in problem.parts}
    given = [array for array in problem.arrays if array.role != "in" and array.name in arguments]
    for array in (*given, *problem.results):
        element = element_type(array.type)
        if element is not None:
            yield Output(array.name, element.scalar, element.components), array.role


def is_steady(output: Output, runs: Sequence[Any], due: Any) -> bool:
    """Whether two runs of the original leave the same in it, up to the rounding of floats."""
    one, other = (run[due] for run in runs)
    return equally_finite(output, one, other) if output.is_float else equal_bits(one, other)


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
        self._halved: Ran | None = None
        self._other: dict[str, Ran] = {}
        self._scaled: list[tuple[float, Ran]] = []

    def scaled(self, output: Output, base: Any, due: Any) -> list[tuple[float, Any]]:
        """What an output that follows its inputs' scale is on scaled inputs, as `tolerance_of_scaled` takes it; nothing
        where it does not follow."""
        if self._halved is None:
            self._halved = self._run(alter=scaled(0.5))
        degree = degree_of(output, base, self._halved.outputs[output.name][due])
        if degree is None:
            return []
        if not self._scaled:
            self._scaled = [(factor, self._run(alter=scaled(factor))) for factor in SCALES]
        return [(factor**degree, ran.outputs[output.name][due]) for factor, ran in self._scaled]

    def bounded(self, name: str) -> Any:
        """One output on inputs that have large numbers where they have infinities."""
        return self._altered(bounded, "bounded").outputs[name]

    def grown(self, name: str) -> Any:
        """One output on inputs that are larger by MARGIN."""
        return self._altered(scaled(MARGIN), "grown").outputs[name]

    def _altered(self, alteration: Alteration, key: str) -> Ran:
        if key not in self._other:
            self._other[key] = self._run(alter=alteration)
        return self._other[key]

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


def open_results(output: Output, base: Any, theirs: list[Any], distribution: str, moved: Moved) -> list[Any]:
    """What a candidate gave, with the original's result where the original itself leaves open what is right.

    Where it gives NaN because of an infinity among its inputs (`inf - inf`), and a number for a large one in its place,
    the order of its operations decides between NaN and an infinity. Where it overflows on huge inputs, or would if they
    were larger by MARGIN, so it does between a number and an infinity.
    """
    if not output.is_float or distribution not in ("special", "huge"):
        return theirs
    if distribution == "huge":
        return [without_overflow(output, base, moved.grown(output.name), each) for each in theirs]
    if not any(is_infinite_for_nan(output, base, each) for each in theirs):
        return theirs
    return [without_infinities(output, base, moved.bounded(output.name), each) for each in theirs]


def tolerance_for(output: Output, runs: list[Any], due: Any, distribution: str, moved: Moved) -> float:
    base = runs[0][due]
    if not output.is_float or not base.size:
        return 0.0
    if distribution == "integers" and is_exact(output, base):
        return EQUAL
    if distribution == "zeros":
        return tolerance_of_zeros(output, base, [runs[1][due]])
    others, rough = moved.outputs(output.name)
    control = None if distribution in ("integers", "ties") else rough[due]
    again = [runs[1]] if equal_bits(runs[0][due], runs[1][due]) else [runs[1], *moved.again(output.name)]
    tolerance = tolerance_of(output, base, [each[due] for each in again], [each[due] for each in others], control)
    return max(tolerance, strict_tolerance(output, base)) if distribution == "ties" else tolerance  # few were moved


def wider_tolerance(output: Output, base: Any, due: Any, tolerance: float, moved: Moved) -> float:
    """The tolerance where one that was measured on moved inputs is too small: for results that follow their inputs'
    scale, as far as they differ at other scales. It is less than what the next lower precision of the inputs would
    need; what one of a few numbers needs may be little by chance, so that of few it is a number of roundings."""
    if not output.is_float or tolerance < 0:
        return tolerance
    expected = base[due]
    wider = tolerance_of_scaled(output, expected, moved.scaled(output, expected, due))
    if len(expected) < LEAST_ELEMENTS:
        return max(tolerance, min(wider, MOST_STRICT * strict_tolerance(output, expected)))
    _, rough = moved.outputs(output.name)
    return wider if tolerance < wider < largest_gap(output, rough[due], expected) else tolerance
