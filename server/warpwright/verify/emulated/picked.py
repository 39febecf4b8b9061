"""The user's own size where it is too large to run whole: blocks from its corners, its edges and its middle are run.

Both sides run blocks that stand at the same places of their grids, on the same arrays, and what both wrote is compared:
an index that overflows, or holds too few bits, leads elsewhere there. Where the two do not write the same elements,
which block does which part is not known, and the size counts as not run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from warpwright.emulator.agreement import changed_from, compare, largest_size
from warpwright.emulator.launch import Launch, LaunchError, Run, run
from warpwright.emulator.report import faults_of, said
from warpwright.emulator.values import POISONS, arguments_of, variables_of
from warpwright.facts.profile import Fault, FaultKind
from warpwright.problems.model import Case
from warpwright.progress import IsCancelled
from warpwright.verify.child import Event
from warpwright.verify.emulated.events import case_event, unsafe
from warpwright.verify.emulated.outputs import arrays_of, outputs_of
from warpwright.verify.run import at

if TYPE_CHECKING:
    from warpwright.verify.emulated.comparison import Comparison, Side

PICKED = "picked blocks"
"""What stands for the kind of values: they are normal ones."""

PICKED_LANES = 512
MOST_BYTES = 256 << 20
ROUGH = 2.0**-10
"""Of the largest value: a difference beyond is none of rounding, which smaller sizes show more of."""

Ranges = tuple[tuple[int, int], ...]
"""Numbers of blocks: the first of a stretch, and how many."""


def picked_event(comparison: Comparison, index: int, stop: IsCancelled) -> Event:
    """An event "case" of the blocks that both wrote alike or not, or an event "uncovered". Raises CancelledError."""
    original, candidate = comparison.cases[index]
    shape = {"shape": dict(original.shape), "distribution": PICKED}
    ranges = picked_ranges(original), matching_ranges(original, candidate)
    if comparison.original.problem.steps or comparison.candidate.problem.steps:
        return _uncovered(original, "several launches are compared with one")
    if comparison.original.problem.bytes(original.shape) > MOST_BYTES:
        return _uncovered(original, "it is too large for the emulator")
    try:
        event = _compared(comparison, index, ranges, stop)
    except LaunchError as error:
        return _uncovered(original, str(error))
    return {**shape, **event} if event["event"] == "case" else event


def picked_ranges(case: Case) -> Ranges:
    """Some blocks at the corners of the grid and in its middle.

    >>> picked_ranges(Case({}, {}, {}, {}, (100, 50, 1), (256, 1, 1), 0))
    ((0, 2), (98, 2), (2550, 2), (4900, 2), (4998, 2))
    """
    return matching_ranges(case, case)


def matching_ranges(own: Case, other: Case) -> Ranges:
    """The blocks of another launch that stand where those of `picked_ranges` do in its own.

    >>> wide, narrow = (Case({}, {}, {}, {}, grid, (256, 1, 1), 0) for grid in ((100, 50, 1), (25, 50, 1)))
    >>> matching_ranges(wide, narrow)
    ((0, 1), (24, 1), (637, 1), (1225, 1), (1249, 1))
    """
    some = min(max(1, PICKED_LANES // prod(own.block)), own.grid[0])
    last = own.grid[0] - some, own.grid[1] - 1, own.grid[2] - 1
    middle = min(own.grid[0] // 2, last[0]), own.grid[1] // 2, own.grid[2] // 2
    corners = [(x, y, z) for z in {0, last[2]} for y in {0, last[1]} for x in {0, last[0]}]
    found: set[tuple[int, int]] = set()
    for place in (*corners, middle):
        spans = [
            range(first * to // of, -(-(first + count) * to // of))
            for first, count, of, to in zip(place, (some, 1, 1), own.grid, other.grid, strict=True)
        ]
        for z in spans[2]:
            for y in spans[1]:
                found.add(((z * other.grid[1] + y) * other.grid[0] + spans[0].start, len(spans[0])))
    return tuple(sorted(found))


def _compared(comparison: Comparison, index: int, ranges: tuple[Ranges, Ranges], stop: IsCancelled) -> Event:
    asked, case = comparison.original.problem, comparison.cases[index][0]
    seed = comparison.seed_of(index, 0)
    given = arguments_of(asked, case, "normal", seed, poison=POISONS[0])
    variables = variables_of(asked, case, "normal", seed)
    before = arrays_of(given)
    runs: list[Run] = []
    faults: list[tuple[Fault, ...]] = []
    for side, own, blocks in zip(
        (comparison.original, comparison.candidate), comparison.cases[index], ranges, strict=True
    ):
        (program,) = side.programs
        ran = run(
            program,
            Launch(own.grid, own.block, own.dynamic_shared_bytes),
            given,
            variables=comparison.named(variables, program),
            most_lane_steps=comparison.budget.launch,
            ranges=blocks,
            is_cancelled=stop,
        )
        runs.append(ran)
        faults.append(_grave(side, ran))
    if faults[0] or not runs[0].is_complete:
        return _uncovered(case, "the original cannot be run there by some of its blocks")
    if fault := next(iter(faults[1]), None):
        if fault.kind in (FaultKind.STEP_LIMIT, FaultKind.DEADLOCK):
            return _uncovered(case, "the candidate cannot be run there by some of its blocks")
        return unsafe(said(fault))
    return _judged(comparison, case, before, runs)


def _grave(side: Side, ran: Run) -> tuple[Fault, ...]:
    (program,) = side.programs
    return tuple(f for f in faults_of(program, ran, side.own) if f.kind is not FaultKind.UNUSED_RESULT)


def _judged(comparison: Comparison, case: Case, before: Mapping[str, Any], runs: Sequence[Run]) -> Event:
    differences = []
    shown = 0
    for output, _ in outputs_of(comparison.original.problem):
        if output.name not in before:
            continue
        mine, theirs = (ran.outputs[output.name] for ran in runs)
        wrote, due = changed_from(before[output.name], theirs), changed_from(before[output.name], mine)
        both = wrote & due
        if int(both.sum()) < int(due.sum()):
            return _uncovered(case, "the blocks of both that stand at one place of the grid write other elements")
        shown += int(both.sum())
        tolerance = ROUGH * largest_size(output, mine[due])
        differences.append(compare(output, theirs, mine, (both, both), tolerance))
    why = next((each.why for each in differences if each.why), "")
    if not shown:
        return _uncovered(case, "the blocks that were picked write nothing")
    if why and comparison.adds_up:
        return _uncovered(case, "what it adds up in memory needs all blocks")
    return case_event(differences, why, spread=False, sample={})


def _uncovered(case: Case, why: str) -> Event:
    text = f"{at(case.shape)}, the program's own size, was not run: {why}"
    return {"event": "uncovered", "what": "size", "text": text}
