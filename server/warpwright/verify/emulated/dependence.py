"""What do the results depend on, in the emulator? On every input that the original's depend on, and on nothing else.

At one shape, after it was found right: each input and each floating-point number is changed alone; then a tenth of
every input's elements; then the candidate's own variables count as memory that nothing has written, so that reading
what an earlier launch would have left there is a fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from warpwright.facts.profile import FaultKind
from warpwright.problems.model import Case, Problem
from warpwright.progress import IsCancelled
from warpwright.verify.child import Event

if TYPE_CHECKING:
    from warpwright.verify.emulated.comparison import Comparison

SOME_OF_EACH = ""
"""The name of the change of some elements of every input (`emulator.values.Change`)."""


def changes_of(problem: Problem, case: Case) -> tuple[str, ...]:
    """The names of what is changed alone: inputs and floating-point numbers other than zero; `SOME_OF_EACH` at last."""
    arrays = [array.name for array in problem.arrays if array.role != "out" and case.counts[array.name]]
    numbers = [s.name for s in problem.scalars if "float" in s.type and case.scalars[s.name]]
    return (*arrays, *numbers, *([SOME_OF_EACH] if arrays else []))


def dependence_events(comparison: Comparison, index: int, stop: IsCancelled) -> Iterator[Event]:
    """Events "case", one for each change up to the first that shows the candidate wrong, and notes on inputs that
    nothing depends on. Raises CancelledError."""
    from warpwright.emulator.values import Change

    case = comparison.cases[index][0]
    base = {
        side: comparison.run(side, index, "normal", 0, stop) for side in (comparison.original, comparison.candidate)
    }
    steps = base[comparison.original].lane_steps
    for name in changes_of(comparison.original.problem, case):
        change = Change(name)
        what = f"only {name} changed" if name else "some elements of each input changed"
        event = comparison.compared(index, steps, "normal", 0, stop, change)
        if event["event"] == "unsupported":
            yield {"event": "note", "text": f"with {what} the outputs were not compared: {event['reason']}"}
            continue
        moves = {
            side: not _same(base[side].outputs, comparison.run(side, index, "normal", 0, stop, change=change).outputs)
            for side in ((comparison.original,) if event["ok"] else base)
        }
        depends = moves[comparison.original]
        if not event["ok"] and event["reason"] and depends and not moves[comparison.candidate]:
            event["reason"] = f"its outputs do not change with it; {event['reason']}"
        yield {"shape": dict(case.shape), "distribution": what, **event}
        if not event["ok"]:
            return
        if not depends and name:
            yield {"event": "note", "text": f"no output was seen to depend on {name}"}
    original, candidate = base[comparison.original], base[comparison.candidate]
    kept = candidate.changed_variables - original.changed_variables
    if kept and (events := list(_state_events(comparison, index, kept, stop))):
        yield from events
    elif candidate.changed_variables or original.changed_variables:
        event = comparison.compared(index, steps, "normal", 0, stop, after=(original, candidate))
        if event["event"] != "unsupported":
            yield {"shape": dict(case.shape), "distribution": "a second launch", **event}


def _state_events(comparison: Comparison, index: int, kept: frozenset[str], stop: IsCancelled) -> Iterator[Event]:
    """An event "case" where the candidate reads what an earlier launch left in its variables."""
    ran = comparison.run(comparison.candidate, index, "normal", 0, stop, unwritten=kept)
    if FaultKind.UNINITIALISED_READ not in ran.kinds:
        return
    names = " and ".join(sorted(kept))
    reason = f"it depends on what earlier launches left in {names}, which the original does not"
    known = {"shape": dict(comparison.cases[index][0].shape), "distribution": "after other launches"}
    yield {"event": "case", "ok": False, "reason": reason, "max_abs": None, "max_rel": None, **known}


def _same(one: Any, other: Any) -> bool:
    return all(bool((one[name].view("u1") == other[name].view("u1")).all()) for name in one)
