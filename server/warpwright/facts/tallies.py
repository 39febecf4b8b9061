"""What is known of one access, branch or barrier of the text, added up over the warps that came to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from warpwright.facts.memory import Pattern, ideal_sectors, ideal_wavefronts
from warpwright.facts.merging import Pending
from warpwright.facts.model import SECTOR_BYTES, WIDEST, AccessKind, Dim3, LaneAddresses, Space, Structure
from warpwright.facts.position import Guard
from warpwright.facts.progress import Progress
from warpwright.facts.values import Value
from warpwright.syntax.source import Span

Shifts = tuple[tuple[int, float], ...]
"""(bytes modulo a sector, share) of the requests that one stands for."""


@lru_cache(maxsize=4096)
def shifts_of(moves: tuple[tuple[int, int, int], ...]) -> Shifts:
    """Where requests start that move by (step in bytes, the number of the one looked at, how many there are) along each
    of some axes; empty where all start alike.

    >>> shifts_of(((16, 0, 3),)), shifts_of(((64, 1, 9),))
    (((0, 0.6666666666666666), (16, 0.3333333333333333)), ())
    """
    shares = {0: 1.0}
    for step, own, count in moves:
        longer: dict[int, float] = {}
        for number in range(min(count, SECTOR_BYTES)):
            of_many = (count - number + SECTOR_BYTES - 1) // SECTOR_BYTES / count
            for shift, share in shares.items():
                at = (shift + step * (number - own)) % SECTOR_BYTES
                longer[at] = longer.get(at, 0.0) + share * of_many
        shares = longer
    return tuple(sorted(shares.items())) if len(shares) > 1 else ()


@dataclass(slots=True)
class Counts:
    """Requests and what they move, added up. `widths` maps the bytes of a lane's access to how many requests had it."""

    requests: float = 0.0
    counted: float = 0.0
    ideal: float = 0.0
    widths: dict[int, float] = field(default_factory=lambda: {})
    worst: float = -1.0
    worst_lanes: LaneAddresses | None = None
    worst_width: int = 0

    def add(self, request: Request, width: int) -> None:
        """Add a request of `width` bytes per lane."""
        first, pattern, weight, space = request.first, request.pattern, request.weight, request.tally.space
        if space is Space.SHARED:
            count: float = pattern.wavefronts(first, width)
            ideal = ideal_wavefronts(count, pattern.active, width)
        elif space is Space.CONSTANT:
            count, ideal = pattern.distinct, 1
        else:
            soft = request.pointer.soft
            count = _aligned_on_average(first, pattern, width, soft)
            if request.shifts and all(shift % width == 0 for shift, _ in request.shifts):
                count = sum(
                    share * _aligned_on_average(first + shift, pattern, width, soft) for shift, share in request.shifts
                )
            ideal = ideal_sectors(count, pattern.active, width)
        self.requests += weight
        self.counted += weight * count
        self.ideal += weight * ideal
        self.widths[width] = self.widths.get(width, 0.0) + weight
        if count / ideal > self.worst:
            self.worst = count / ideal
            self.worst_lanes = LaneAddresses(*request.warp, pattern.at(first))
            self.worst_width = width


@dataclass(slots=True)
class AccessTally:
    """What is known of one access. Its requests are counted as the text has them and as the compiler merges them."""

    span: Span
    array: str | None
    space: Space
    kind: AccessKind
    size: int
    in_loop: bool
    basis: int = 0
    idle: float = 0.0  # requests of warps in which a predicate holds for no lane
    uncounted: float = 0.0
    uncounted_basis: int = 0
    active: float = 0.0
    seen: float = 0.0
    alone: Counts = field(default_factory=Counts)
    together: Counts = field(default_factory=Counts)
    leads: list[AccessTally] = field(default_factory=lambda: [])  # the accesses that do this one's work too
    led: Counts = field(default_factory=Counts)  # the requests that do so
    partners: dict[int, int] = field(default_factory=lambda: {})  # merged with it -> bytes from it to this one
    steady: int = WIDEST  # bytes by which its first addresses in the warps differ: what is wider is not merged
    distinct: float = 0.0
    misaligned: LaneAddresses | None = None
    structure: Structure | None = None
    value_bytes: int = 0
    progress: Progress = field(default_factory=Progress)
    type: str = ""
    by_thread: bool = False
    thinned: bool = False
    reached: bool = False  # by a warp that was not sent down here to see what is there

    @property
    def counts(self) -> Counts:
        apart = not self._is_steady or not all(lead._is_steady for lead in self.leads)
        return self.alone if apart else self.together

    @property
    def _is_steady(self) -> bool:
        return max(self.together.widths, default=0) <= max(self.size, self.steady)


@dataclass(slots=True, eq=False)
class Request(Pending):
    """A request that waits for what the compiler may make of it and its neighbours."""

    tally: AccessTally
    pointer: Value
    warp: tuple[int, Dim3]  # its number and its block
    shifts: Shifts = ()  # where the requests that it stands for start, seen from it


@dataclass(slots=True)
class BranchTally:
    span: Span
    statement: Span
    kind: str
    in_loop: bool
    evaluations: float = 0.0
    diverging: float = 0.0
    undecided: float = 0.0
    undecided_varying: float = 0.0
    edge_only: bool = True
    basis: int = 0


@dataclass(slots=True)
class BarrierVisit:
    block: Dim3
    warp: int
    weight: float
    partial: bool
    guard: Guard | None
    undecided: Guard | None
    thread_guard: Guard | None
    bounded: bool  # a run-time number decides which threads come here


def _aligned_on_average(first: int, pattern: Pattern, size: int, step: int) -> float:
    """Sectors of one request whose start is known only up to multiples of `step` bytes: the mean over alignments."""
    if not step or step % SECTOR_BYTES == 0:
        return float(pattern.sectors(first, size))
    shifts = sorted({(k * step) % SECTOR_BYTES for k in range(SECTOR_BYTES)})
    return sum(pattern.sectors(first + shift, size) for shift in shifts) / len(shifts)
