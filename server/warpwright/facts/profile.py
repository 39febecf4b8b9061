"""What one run of a kernel counted, line by line: by the emulator, or by Nsight Compute on a GPU. Plain data.

Counts are totals of the whole launch, so that lines can be added up; what is said of a request is a quotient of them.

>>> load = Traffic(Space.GLOBAL, AccessKind.LOAD, 4, requests=2, lanes=64, sectors=64, ideal_sectors=8)
>>> line = Line("a.cu", 3, InstructionSet.PTX, 10, 320, traffic=(load,))
>>> line.threads_per_instruction, line.sectors, load.sectors_per_request, line.wavefronts
(32.0, 64, 32.0, None)
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from warpwright.facts.model import AccessKind, Basis, Dim3, Space


class Backend(StrEnum):
    """Who counted: the emulator, which runs the compiler's PTX, or Nsight Compute, which reads a GPU's counters."""

    EMULATOR = "emulator"
    NCU = "ncu"

    @property
    def basis(self) -> Basis:
        return Basis.EMULATED if self is Backend.EMULATOR else Basis.MEASURED


class Inputs(StrEnum):
    """What the arrays held: values made up for the kernel's problem, or the application's own."""

    PROBLEM = "problem"
    APPLICATION = "application"


class InstructionSet(StrEnum):
    """What is counted as an instruction. Counts of different sets are never compared or added."""

    PTX = "ptx"
    SASS = "sass"


class FaultKind(StrEnum):
    """What a run may do wrong. A name says the defect."""

    OUT_OF_BOUNDS = "out-of-bounds"
    MISALIGNED = "misaligned"
    UNINITIALISED_READ = "uninitialised-read"
    SHARED_RACE = "shared-memory-race"
    GLOBAL_RACE = "global-memory-race"
    BARRIER_NOT_REACHED = "barrier-not-reached"
    OUTSIDE_MASK = "outside-mask"
    DEADLOCK = "deadlock"
    MISSING_SYNCWARP = "missing-syncwarp"
    UNUSED_RESULT = "unused-result"
    STEP_LIMIT = "step-limit"
    ASSERTION = "assertion"
    TRAP = "trap"


@dataclass(frozen=True, slots=True)
class Traffic:
    """What the accesses of one line, one space, one kind and one width did, to one array: totals over the launch.

    `requests` are the warps that executed an instruction, those included that a predicate left without a lane; `lanes`
    that were on are summed over them, and `bytes` are one lane's. Sectors (32 bytes) are of global and local memory,
    wavefronts of shared memory; None where a space has none of them. `ideal_*` are the fewest possible for the lanes
    that were on, as Nsight Compute counts them. `array` is the kernel's parameter or shared array that the addresses
    belong to; None where the one who counted does not know.
    """

    space: Space
    kind: AccessKind
    bytes: int
    requests: int
    lanes: int
    sectors: int | None = None
    ideal_sectors: int | None = None
    wavefronts: int | None = None
    ideal_wavefronts: int | None = None
    array: str | None = None

    @property
    def active_lanes(self) -> float:
        """Average lanes on; 0.0 where there was no request."""
        return self.lanes / self.requests if self.requests else 0.0

    @property
    def sectors_per_request(self) -> float | None:
        return _per(self.sectors, self.requests)

    @property
    def ideal_sectors_per_request(self) -> float | None:
        return _per(self.ideal_sectors, self.requests)

    @property
    def wavefronts_per_request(self) -> float | None:
        return _per(self.wavefronts, self.requests)

    @property
    def ideal_wavefronts_per_request(self) -> float | None:
        return _per(self.ideal_wavefronts, self.requests)


@dataclass(frozen=True, slots=True)
class Line:
    """One source line of one run. An inlined instruction stands once, at the innermost line of the program's own files.

    `instructions` were executed by a warp, `thread_instructions` by its lanes that were on and that no predicate left
    out. `branches` are the conditional ones among them, `divergent_branches` those at which lanes of a warp parted.
    """

    file: str
    line: int
    instruction_set: InstructionSet
    instructions: int
    thread_instructions: int
    branches: int = 0
    divergent_branches: int = 0
    traffic: tuple[Traffic, ...] = ()

    @property
    def threads_per_instruction(self) -> float:
        """Average lanes on, 0 to 32; 0.0 where nothing was executed."""
        return self.thread_instructions / self.instructions if self.instructions else 0.0

    @property
    def requests(self) -> int:
        return sum(t.requests for t in self.traffic)

    @property
    def sectors(self) -> int | None:
        """Of global and local memory; None where the line accesses neither."""
        return _sum(t.sectors for t in self.traffic)

    @property
    def ideal_sectors(self) -> int | None:
        """Of the same accesses as `sectors`; None where it is not known of one of them."""
        if any(t.ideal_sectors is None for t in self.traffic if t.sectors is not None):
            return None
        return _sum(t.ideal_sectors for t in self.traffic)

    @property
    def wavefronts(self) -> int | None:
        """Of shared memory; None where the line does not access it."""
        return _sum(t.wavefronts for t in self.traffic)

    @property
    def ideal_wavefronts(self) -> int | None:
        return _sum(t.ideal_wavefronts for t in self.traffic)

    def of(self, space: Space, kind: AccessKind | None = None) -> tuple[Traffic, ...]:
        """The line's accesses of one space, and of one kind where it is given."""
        return tuple(t for t in self.traffic if t.space is space and kind in (None, t.kind))


@dataclass(frozen=True, slots=True)
class Thread:
    """One thread of a launch: `blockIdx` and `threadIdx`.

    >>> str(Thread((1, 0, 0), (33, 0, 0)))
    'thread (33, 0, 0) of block (1, 0, 0)'
    """

    block: Dim3
    thread: Dim3

    def __str__(self) -> str:
        return f"thread {self.thread} of block {self.block}"


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a file, 1-based."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Fault:
    """What a run did wrong, once for each kind and line. `threads` are the first ones that did it, `count` is how often
    it was done.

    `address` is in bytes from the start of `array` where that is known, else as the kernel saw it; None where memory
    has no part in it. Of a race, `other` is the other access's place and the last of `threads` its thread. `message` is
    one sentence for people. `guessed` is what was guessed of the launch that the fault may come of, one sentence each;
    none where it is the kernel's own.
    """

    kind: FaultKind
    file: str
    line: int
    message: str
    threads: tuple[Thread, ...] = ()
    address: int | None = None
    array: str | None = None
    other: Place | None = None
    count: int = 1
    guessed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProfiledLaunch:
    """What was launched; None where a table does not say. `shape` are the sizes that were chosen (`n = 1000`), empty
    where the launch is the application's own. `source` says where it comes from: "a.cu:41", "sample.toml", a report.
    """

    grid: Dim3 | None
    block: Dim3 | None
    dynamic_shared_bytes: int | None = 0
    shape: Mapping[str, int] = field(default_factory=lambda: {})
    source: str = ""


@dataclass(frozen=True, slots=True)
class Profile:
    """One launch of one kernel, as `backend` counted it.

    `texts` are the SHA-256 (hex) of the bytes of the file asked for, which comes first, and of each file that it
    includes (`Program.sources`), by path: a profile speaks of no other text. `device` is the GPU's name, "" for the
    emulator. `function` is the instance as the compiler spells it, such as `void k<float>(T1 *, int)`; "" where it is
    not known. `flags` are the compiler's options, such as "-arch=sm_90" and "-DTILE=16"; None where they are not known.
    `inputs` says what the arrays held: of made-up values, what depends on data shows one case among many. `notes` are
    sentences for people.
    """

    kernel: str
    launch: ProfiledLaunch
    backend: Backend
    texts: Mapping[str, str]
    lines: tuple[Line, ...]
    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()
    device: str = ""
    function: str = ""
    flags: tuple[str, ...] | None = None
    inputs: Inputs = Inputs.PROBLEM

    @property
    def basis(self) -> Basis:
        return self.backend.basis

    @property
    def own_faults(self) -> tuple[Fault, ...]:
        """Those that come of nothing that was guessed of the launch."""
        return tuple(fault for fault in self.faults if not fault.guessed)

    def line(self, file: str, line: int) -> Line | None:
        return next((each for each in self.lines if each.line == line and each.file == file), None)


def text_hash(data: bytes) -> str:
    """SHA-256 of a file's bytes, in hex.

    >>> text_hash(b"")[:8]
    'e3b0c442'
    """
    return hashlib.sha256(data).hexdigest()


def _per(total: int | None, requests: int) -> float | None:
    return total / requests if total is not None and requests else None


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
