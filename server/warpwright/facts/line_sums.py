"""What instructions counted one by one add up to at the source lines of a profile."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from warpwright.facts.model import AccessKind, Space
from warpwright.facts.profile import InstructionSet, Line, Traffic


@dataclass(slots=True)
class LineSum:
    """The counts of one line, while they are added up: those of `Line`.

    >>> total = LineSum(instructions=2, thread_instructions=64)
    >>> for _ in range(2):
    ...     total.add(Traffic(Space.SHARED, AccessKind.LOAD, 4, 1, 32, wavefronts=2, ideal_wavefronts=1))
    >>> line = total.line("a.cu", 3, InstructionSet.PTX)
    >>> line.requests, line.wavefronts, line.sectors, len(line.traffic)
    (2, 4, None, 1)
    """

    instructions: int = 0
    thread_instructions: int = 0
    branches: int = 0
    divergent_branches: int = 0
    traffic: dict[tuple[Space, AccessKind, int], Traffic] = field(default_factory=lambda: {})

    def add(self, traffic: Traffic) -> None:
        """Add accesses to those of the same space, kind and width."""
        key = traffic.space, traffic.kind, traffic.bytes
        self.traffic[key] = _added(self.traffic[key], traffic) if key in self.traffic else traffic

    def line(self, file: str, line: int, instruction_set: InstructionSet) -> Line:
        return Line(
            file,
            line,
            instruction_set,
            self.instructions,
            self.thread_instructions,
            self.branches,
            self.divergent_branches,
            tuple(traffic for _, traffic in sorted(self.traffic.items(), key=lambda item: item[0])),
        )


def _added(a: Traffic, b: Traffic) -> Traffic:
    return replace(
        a,
        requests=a.requests + b.requests,
        lanes=a.lanes + b.lanes,
        sectors=_both(a.sectors, b.sectors),
        ideal_sectors=_both(a.ideal_sectors, b.ideal_sectors),
        wavefronts=_both(a.wavefronts, b.wavefronts),
        ideal_wavefronts=_both(a.ideal_wavefronts, b.ideal_wavefronts),
    )


def _both(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b
