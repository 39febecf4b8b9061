"""What each of the user's lines made a program do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from warpwright.timeline.host import Cause, cause_of, is_launch, main_thread, outermost
from warpwright.timeline.model import Activity, Call, Event, Place, Trace
from warpwright.timeline.places import Whereabouts, refined
from warpwright.timeline.shares import Shared

_WAITS = {
    "aten::item": ".item()",
    "aten::_local_scalar_dense": ".item()",
    "aten::is_nonzero": "a tensor as a condition",
    "aten::nonzero": "a boolean mask or nonzero()",
    "aten::masked_select": "masked_select()",
    "aten::unique2": "unique()",
    "aten::equal": "torch.equal()",
    "aten::to": ".cpu()",
    "aten::_to_copy": ".cpu()",
    "aten::copy_": "a copy to the host",
}

_VIEWS = {"aten::select", "aten::unbind", "aten::slice", "aten::narrow", "aten::split", "aten::index", "aten::chunk"}


@dataclass(slots=True)
class LineCost:
    """What one line cost. `idle` is wall time by cause as in `shares`, in nanoseconds, `gpu` the time of the work that
    it gave GPUs; `visits` is how often the program came to it, `operators` how many it called; `waits` are its
    synchronising calls by what they are, and `waited` the time in them; `views` of its operators took parts of tensors.
    """

    place: Place
    visits: int = 0
    operators: int = 0
    views: int = 0
    launches: int = 0
    waits: dict[str, int] = field(default_factory=dict)
    waited: int = 0
    pageable: int = 0
    pageable_bytes: int = 0
    idle: dict[Cause, int] = field(default_factory=dict)
    gpu: int = 0

    @property
    def wall(self) -> int:
        """Wall time that is its doing while no GPU worked."""
        return sum(self.idle.values())


def line_costs(trace: Trace, shared: Shared) -> list[LineCost]:
    """Each line with what it cost, the dearest first."""
    where = Whereabouts(trace)
    given = defaultdict(list)
    for activity in trace.activities:
        if activity.correlation:
            given[activity.correlation].append(activity)
    costs: dict[Place, LineCost] = {}
    names = _around(trace.ops, trace.calls)

    def cost(place: Place | None) -> LineCost | None:
        return None if place is None else costs.setdefault(place, LineCost(place))

    for call, ops in zip(trace.calls, names, strict=True):
        if not shared.start <= call.start < shared.end:
            continue
        what = _wait(call, ops, given[call.correlation])
        found = cost(refined(where.at(call.start), what))
        if found is None:
            continue
        found.launches += is_launch(call.name)
        found.gpu += sum(each.end - each.start for each in given[call.correlation])
        if what:
            found.waits[what] = found.waits.get(what, 0) + 1
            found.waited += call.end - call.start
        for each in given[call.correlation]:
            if each.pageable:
                found.pageable += 1
                found.pageable_bytes += each.bytes
    for time, place in zip(where.times, where.places, strict=True):
        found = cost(place) if shared.start <= time < shared.end else None
        if found is not None:
            found.visits += 1
    main = main_thread(trace)
    for op in outermost([each for each in trace.ops if each.thread == main]):
        found = cost(where.at(op.start)) if shared.start <= op.start < shared.end else None
        if found is not None:
            found.operators += 1
            found.views += op.name in _VIEWS
    for piece in shared.pieces:
        if piece.cause in (Cause.GPU, Cause.RECORDING):
            continue
        found = cost(where.at(piece.at))
        if found is not None:
            found.idle[piece.cause] = found.idle.get(piece.cause, 0) + piece.end - piece.start
    return sorted(costs.values(), key=lambda each: (-each.wall, -each.gpu, str(each.place)))


def _around(ops: Iterable[Event], calls: Sequence[Call]) -> list[tuple[str, ...]]:
    """For each call the operators that it is in, the outermost first."""
    by_thread: dict[str, list[tuple[int, int, int, Event]]] = defaultdict(list)
    for op in ops:
        by_thread[op.thread].append((op.start, -op.end, -1, op))
    for index, call in enumerate(calls):
        by_thread[call.thread].append((call.start, -call.end, index, call))
    found: list[tuple[str, ...]] = [()] * len(calls)
    for events in by_thread.values():
        stack: list[Event] = []
        for _, _, index, event in sorted(events, key=lambda entry: entry[:3]):
            while stack and stack[-1].end <= event.start:
                stack.pop()
            if index >= 0:
                found[index] = tuple(each.name for each in stack)
            else:
                stack.append(event)
    return found


def _wait(call: Call, ops: Sequence[str], given: Sequence[Activity]) -> str:
    """What makes the host wait in this call, in the user's words; empty where it does not."""
    if cause_of(call, given[0] if given else None) is not Cause.SYNCHRONISATION:
        return ""
    return next((_WAITS[name] for name in ops if name in _WAITS), call.name)
