"""One trace, whatever wrote it. All times are whole nanoseconds on one clock."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class TraceError(Exception):
    """A trace that cannot be read, or a script that cannot be traced; the message is one sentence."""


class Work(StrEnum):
    """What a GPU was given."""

    KERNEL = "kernel"
    COPY = "copy"
    SET = "memset"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that a host thread did from `start` to `end`: an operator, a range that was named, a Python frame."""

    name: str
    start: int
    end: int
    thread: str


@dataclass(frozen=True, slots=True)
class Call(Event):
    """A call of the CUDA runtime or driver; `correlation` is that of the work that it gave to the GPU, 0 for none."""

    correlation: int = 0


@dataclass(frozen=True, slots=True)
class Frame(Event):
    """A Python function that ran; `line` is where it begins."""

    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Activity:
    """A kernel, a copy or a memset on a GPU. `direction` is HtoD, DtoH, DtoD or PtoP; `pageable` says that a side of a
    copy is host memory that is not pinned. `grid` and `block` are empty where they are not known."""

    kind: Work
    name: str
    start: int
    end: int
    device: int
    stream: int
    correlation: int
    bytes: int = 0
    direction: str = ""
    pageable: bool = False
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the user's; not `exact` where only the function is known, of which `line` is then the first."""

    file: str
    line: int
    function: str = ""
    exact: bool = True

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.exact else f"{self.file}:{self.line} ({self.function})"


@dataclass(frozen=True, slots=True)
class LineEvent:
    """From `time` on the thread was at this line, until its next event."""

    time: int
    thread: str
    place: Place | None


@dataclass(frozen=True, slots=True)
class Trace:
    """`lines` are there where the program was run by `warpwright trace`. `costs` is what recording added, in
    nanoseconds: to an operator, to one that launches, to a line; zeros where nobody measured it. `processors` are those
    that others left free, and `busy` how many of those that it could have had it kept at work on average. `recorded`
    are the times at which the host was at recording, where what recorded wrote them down."""

    made_by: str
    ops: tuple[Event, ...] = ()
    calls: tuple[Call, ...] = ()
    activities: tuple[Activity, ...] = ()
    ranges: tuple[Event, ...] = ()
    frames: tuple[Frame, ...] = ()
    lines: tuple[LineEvent, ...] = ()
    devices: tuple[str, ...] = ()
    processors: int = 8
    busy: float = 0.0
    costs: tuple[int, int, int] = (0, 0, 0)
    is_python: bool = True
    notes: tuple[str, ...] = ()
    recorded: tuple[tuple[int, int], ...] = ()
