"""What a host thread is at, moment by moment."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from warpwright.timeline.model import Activity, Call, Event, Frame, Trace


class Cause(StrEnum):
    """What a moment of wall time counts for; see `shares`."""

    GPU = "GPU"
    LAUNCHES = "launches"
    SYNCHRONISATION = "synchronisation"
    COPIES = "copies"
    LOADING = "data loading"
    OPERATORS = "CPU operators"
    PYTHON = "Python"
    HOST = "host code"
    SETUP = "set-up"
    RECORDING = "recording"


@dataclass(frozen=True, slots=True)
class Segment:
    """A thread was at `cause` from `start` to `end`, in `call` where it was in one of CUDA's."""

    start: int
    end: int
    cause: Cause
    call: Call | None = None


_LAUNCHES = ("LaunchKernel", "LaunchCooperative", "GraphLaunch", "LaunchHostFunc", "LaunchGrid")
_WAITS = ("Synchronize", "EventQuery", "StreamQuery")
_SETUP = (
    "Malloc", "HostAlloc", "HostRegister", "cudaFree", "cuMemFree", "MemAlloc", "ModuleLoad", "LibraryLoad",
    "GetKernel", "cuInit", "CtxCreate", "PrimaryCtx", "GraphInstantiate", "StreamCreate", "EventCreate",
    "FuncGetAttributes", "FuncSetAttribute", "MemCreate", "MemMap", "MemSetAccess", "MemAddressReserve",
    "GetDeviceProperties", "GetDeviceCount", "ModuleUnload",
)  # fmt: skip
_ENDS = {Cause.LAUNCHES: 0, Cause.SYNCHRONISATION: 1, Cause.COPIES: 2, Cause.SETUP: 3}


def is_launch(name: str) -> bool:
    """
    >>> [is_launch(name) for name in ("cudaLaunchKernel", "cuLaunchKernelEx", "cudaGraphLaunch", "cudaMemcpyAsync")]
    [True, True, True, False]
    """
    return any(part in name for part in _LAUNCHES)


def cause_of(call: Call, given: Activity | None) -> Cause | None:
    """What a call of CUDA's is for; None where it is a part of whatever surrounds it, as cudaGetDevice is. A copy to
    pageable memory returns when it is done, and so waits for all that the stream has before it."""
    if is_launch(call.name) or "Memset" in call.name:
        return Cause.LAUNCHES
    if "Memcpy" in call.name:
        waits = given is not None and given.direction == "DtoH" and (given.pageable or "Async" not in call.name)
        return Cause.SYNCHRONISATION if waits else Cause.COPIES
    if any(part in call.name for part in _WAITS):
        return Cause.SYNCHRONISATION
    return Cause.SETUP if any(part in call.name for part in _SETUP) else None


def is_loading(event: Event) -> bool:
    """Whether an event is a DataLoader's: its own range, or a frame of torch.utils.data."""
    if isinstance(event, Frame):
        return "torch/utils/data/" in event.file.replace("\\", "/")
    return event.name.startswith("enumerate(DataLoader)")


def main_thread(trace: Trace) -> str:
    """The thread whose time is the program's: where lines were recorded, the first of them; else the thread of
    DataLoaders and Python frames, of operators, of CUDA's calls, in this order."""
    for events in (trace.lines, trace.frames, trace.ops, trace.calls):
        counted = Counter(each.thread for each in events)
        if counted:
            return counted.most_common(1)[0][0]
    return ""


def host_segments(trace: Trace) -> list[Segment]:
    """What the program's host side is at, without overlaps. The main thread decides; where it runs Python alone, as
    while it waits for the thread that computes gradients, another thread of the profiler's stands in for it."""
    given = {each.correlation: each for each in trace.activities if each.correlation}
    main = main_thread(trace)
    recorded = {each.thread for each in trace.ops} or {each.thread for each in trace.calls}
    others = sorted(
        (piece for thread in sorted(recorded - {main}) for piece in thread_segments(trace, thread, given)),
        key=lambda piece: piece.start,
    )
    return list(_beside(thread_segments(trace, main, given), _apart(others)))


def thread_segments(trace: Trace, thread: str, given: dict[int, Activity]) -> list[Segment]:
    """One thread's segments, but for those of Python alone."""
    ops = [each for each in trace.ops if each.thread == thread]
    calls = [each for each in trace.calls if each.thread == thread]
    loading = [
        each for each in (*trace.ranges, *trace.frames, *trace.ops) if each.thread == thread and is_loading(each)
    ]
    causes = {id(call): cause_of(call, given.get(call.correlation)) for call in calls}
    whole = outermost(ops)
    kinds = _kinds(whole, calls, causes)
    entries: list[tuple[Event, Cause | None]] = [(each, Cause.LOADING) for each in loading]
    entries += [(each, kind) for each, kind in zip(whole, kinds, strict=True) if not is_loading(each)]
    entries += [(call, causes[id(call)]) for call in calls if causes[id(call)] is not None]
    return list(_nested(entries))


def outermost(ops: Iterable[Event]) -> list[Event]:
    """The operators of a thread that no other called."""
    found: list[Event] = []
    for each in sorted(ops, key=lambda op: (op.start, -op.end)):
        if not found or each.start >= found[-1].end:
            found.append(each)
    return found


def _kinds(outermost: Sequence[Event], calls: Sequence[Call], causes: dict[int, Cause | None]) -> list[Cause]:
    """What each operator is for: that of the weightiest call in it; one that calls nothing of CUDA's computes on the
    CPU."""
    starts = [each.start for each in outermost]
    kinds = [Cause.OPERATORS] * len(outermost)
    for call in calls:
        cause, at = causes[id(call)], bisect_right(starts, call.start) - 1
        if cause is not None and at >= 0 and call.start < outermost[at].end and _ENDS[cause] < _ENDS.get(kinds[at], 9):
            kinds[at] = cause
    return [Cause.LAUNCHES if kind is Cause.SETUP else kind for kind in kinds]


def _nested(entries: list[tuple[Event, Cause | None]]) -> Iterator[Segment]:
    """Segments from nested events: the innermost decides, but for a DataLoader, which has all that is in it."""
    stack: list[tuple[int, Cause, Call | None]] = []
    now = 0
    for event, cause in sorted(entries, key=lambda entry: (entry[0].start, -entry[0].end)):
        if cause is None or event.end <= event.start:
            continue
        while stack and stack[-1][0] <= event.start:
            end, kind, call = stack.pop()
            if end > now:
                yield Segment(now, end, kind, call)
                now = end
        if stack and event.start > now:
            yield Segment(now, event.start, stack[-1][1], stack[-1][2])
        now = max(now, event.start) if stack else event.start
        kind = Cause.LOADING if stack and stack[-1][1] is Cause.LOADING else cause
        end = min(event.end, stack[-1][0]) if stack else event.end
        stack.append((end, kind, event if isinstance(event, Call) else None))
    while stack:
        end, kind, call = stack.pop()
        if end > now:
            yield Segment(now, end, kind, call)
            now = end


def _apart(pieces: Iterable[Segment]) -> list[Segment]:
    """Of pieces that overlap the first has the time."""
    found: list[Segment] = []
    for each in pieces:
        start = max(each.start, found[-1].end) if found else each.start
        if start < each.end:
            found.append(Segment(start, each.end, each.cause, each.call))
    return found


def _beside(main: Sequence[Segment], others: Sequence[Segment]) -> Iterator[Segment]:
    """The main thread's segments, and in the gaps between them what others were at."""
    at = 0
    free = -(1 << 62)
    for each in (*main, Segment(1 << 62, 1 << 62, Cause.PYTHON)):
        while at < len(others) and others[at].start < each.start:
            start, end = max(others[at].start, free), min(others[at].end, each.start)
            if start < end:
                yield Segment(start, end, others[at].cause, others[at].call)
            if others[at].end > each.start:
                break
            at += 1
        if each.end > each.start:
            yield each
        free = each.end
