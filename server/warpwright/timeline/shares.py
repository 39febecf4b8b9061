"""Wall time shared out: each nanosecond of it counts for one cause.

The window is [first, last) of what was recorded, or that of the steps that the program names, or from cudaProfilerStart
to cudaProfilerStop where it calls them. A moment counts for

1. *GPU*, where a kernel (or a memset) runs on any GPU;
2. *copies*, where only copies run on GPUs, but for those of under 4 KiB: they are latency, of what the host is at;
3. else, as GPUs are idle, for what the host is at: *data loading* (in a DataLoader), *launches* (in CUDA's calls that
   launch, and in the operators that call them), *synchronisation* (in calls that wait), *copies* (in calls that copy),
   *set-up* (allocating memory, loading modules), *CPU operators* (in operators that give a GPU nothing), and *Python*
   for all the rest of the program (*host code* where it is not Python's);
4. but *launches* and this rest that follow a wait count for *synchronisation* as far as the wait lasted while a GPU
   worked: for so long the host could have worked ahead had it not waited, and the idle time had not been. What a wait
   gives is used up once.

A line that calls what reads files is *data loading*, not *Python*. What recording itself added to the host's time, as
measured in the same process, is *recording* where no GPU worked; shares are of the time without it, and nothing is
bound by it. So they sum to the whole. Time in which a host thread works while a GPU does too is hidden and counts for
nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from warpwright.timeline.host import Cause, Segment, host_segments, is_launch, main_thread
from warpwright.timeline.model import Activity, Event, Trace, Work
from warpwright.timeline.places import Whereabouts, reads_files

_HIDDEN_BY_WAITS = (Cause.LAUNCHES, Cause.PYTHON, Cause.HOST)
_SMALL_COPY = 4096
"""Bytes; a copy of fewer takes its latency and no more."""


@dataclass(frozen=True, slots=True)
class Piece:
    """From `start` to `end` wall time counts for `cause`; `at` is a moment at which its line can be looked up."""

    start: int
    end: int
    cause: Cause
    at: int


@dataclass(frozen=True, slots=True)
class Shared:
    """The window in pieces that touch, each with its cause."""

    start: int
    end: int
    pieces: tuple[Piece, ...]

    @property
    def wall(self) -> int:
        return self.end - self.start

    @property
    def own(self) -> int:
        """The wall time without what recording added."""
        return self.wall - self.totals().get(Cause.RECORDING, 0)

    def totals(self) -> dict[Cause, int]:
        """Nanoseconds for each cause, the largest first; their sum is `wall`."""
        found: dict[Cause, int] = defaultdict(int)
        for piece in self.pieces:
            found[piece.cause] += piece.end - piece.start
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def shares(self) -> dict[Cause, float]:
        """The part of `own` that each cause has, the largest first; their sum is 1 where there is any time."""
        return {
            cause: time / self.own for cause, time in self.totals().items() if cause is not Cause.RECORDING and time
        }

    @property
    def bound(self) -> Cause:
        """The cause of most time."""
        return next(iter(self.shares()), Cause.PYTHON)


def window(trace: Trace) -> tuple[int, int]:
    """From the first to the last of what was recorded, or of the program's steps where it names them by
    torch.profiler's `step()` (ProfilerStep#N), or of what it wants profiled (cudaProfilerStart, cudaProfilerStop)."""
    steps: Sequence[Event] = [each for each in trace.ranges if each.name.startswith("ProfilerStep")]
    spans: Iterable[Event | Activity] = steps or (*trace.ops, *trace.calls, *trace.activities, *trace.ranges)
    starts, ends = zip(*((each.start, each.end) for each in spans), strict=True)
    first = min((each.end for each in trace.calls if each.name == "cudaProfilerStart"), default=min(starts))
    last = max((each.start for each in trace.calls if each.name == "cudaProfilerStop"), default=max(ends))
    return (first, last) if first < last else (min(starts), max(ends))


def shared(trace: Trace) -> Shared:
    """The wall time of a trace that has at least one event."""
    start, end = window(trace)
    kernels = union((each.start, each.end) for each in trace.activities if each.kind is not Work.COPY)
    copies = union(
        (each.start, each.end) for each in trace.activities if each.kind is Work.COPY and not _is_small(each)
    )
    pieces: list[Piece] = []
    rest = Cause.PYTHON if trace.is_python else Cause.HOST
    ahead = 0
    waited_at = start
    spans = (host_segments(trace), kernels, copies, _recording(trace))
    for begin, stop, host, (busy, copying, recording) in _cut(start, end, *spans):
        length = stop - begin
        cause = host.cause if host is not None else rest
        if cause is Cause.SYNCHRONISATION and (busy or copying):
            ahead += length
            waited_at = begin
        if busy or copying:
            pieces.append(Piece(begin, stop, Cause.GPU if busy else Cause.COPIES, begin))
            continue
        if recording:
            pieces.append(Piece(begin, stop, Cause.RECORDING, begin))
            continue
        hidden = min(ahead, length) if cause in _HIDDEN_BY_WAITS else 0
        if hidden:
            pieces.append(Piece(begin, begin + hidden, Cause.SYNCHRONISATION, waited_at))
            ahead -= hidden
        if hidden < length:
            pieces.append(Piece(begin + hidden, stop, cause, begin + hidden))
    return Shared(start, end, tuple(_reading(pieces, Whereabouts(trace))))


def _is_small(copy: Activity) -> bool:
    return 0 < copy.bytes < _SMALL_COPY


def _recording(trace: Trace) -> list[tuple[int, int]]:
    """When the host was at recording: as it was written down, else for as long as it takes around each line and behind
    the start of each operator and call."""
    op, launching, line = trace.costs
    main = main_thread(trace)
    spans = [*trace.recorded]
    spans += [(each.time - line // 2, each.time + line // 2) for each in trace.lines if line and each.thread == main]
    spans += [(each.start, each.start + op) for each in trace.ops if op]
    spans += [(each.end, each.end + launching - op) for each in trace.calls if launching > op and is_launch(each.name)]
    return union(spans)


def _reading(pieces: Iterable[Piece], where: Whereabouts) -> Iterator[Piece]:
    """The pieces, with Python and data loading cut by lines, and what is spent at lines that read files as data
    loading."""
    for piece in pieces:
        if piece.cause not in (Cause.PYTHON, Cause.LOADING):
            yield piece
            continue
        for start, end, place in where.between(piece.start, piece.end):
            reads = place is not None and place.exact and reads_files(place)
            yield Piece(start, end, Cause.LOADING if reads else piece.cause, start)


def union(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The times in which any of them is, in order, without overlaps."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if end <= start:
            continue
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _cut(
    start: int, end: int, host: Sequence[Segment], *others: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int, Segment | None, list[bool]]]:
    """The window cut wherever something begins or ends: what the host is at, and in which of the others it lies."""
    spans = [[(each.start, each.end) for each in host], *others]
    cuts = sorted({start, end, *(time for some in spans for pair in some for time in pair if start < time < end)})
    at = [0] * len(spans)
    for begin, stop in pairwise(cuts):
        inside = []
        for index, some in enumerate(spans):
            while at[index] < len(some) and some[at[index]][1] <= begin:
                at[index] += 1
            inside.append(at[index] < len(some) and some[at[index]][0] <= begin)
        yield begin, stop, host[at[0]] if inside[0] else None, inside[1:]
