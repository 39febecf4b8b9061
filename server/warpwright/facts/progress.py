"""How the address of one access moves over the iterations of the loop it stands in."""

from __future__ import annotations

from dataclasses import dataclass

from warpwright.facts.lanes import Data, difference
from warpwright.facts.values import LANE_BITS, Value


@dataclass(slots=True)
class LoopPosition:
    """Where the interpreter stands: the innermost loop's run, numbered from 1 (0: in no loop), and its iteration.

    An iteration is -1 where it does not follow the one before, as after a jump ahead.
    """

    run: int = 0
    iteration: int = 0
    skips: bool = False  # this iteration stands for many


@dataclass(slots=True)
class Progress:
    """What the requests of one access at successive iterations have in common.

    >>> from warpwright.facts.types import INT, pointer_to
    >>> progress = Progress()
    >>> for iteration, start in enumerate((0, 512, 1024)):
    ...     addresses = [start + 4 * lane for lane in range(32)]
    ...     progress.visit(LoopPosition(1, iteration), Value(addresses, pointer_to(INT)))
    >>> progress.step
    512

    Lanes that do not come here do not count.

    >>> progress = Progress()
    >>> for iteration in range(3):
    ...     addresses = Value([4 * iteration] * 31 + [0], pointer_to(INT))
    ...     progress.visit(LoopPosition(1, iteration), addresses, mask=0x7FFFFFFF)
    >>> progress.step
    4

    An address that stays for some iterations and is another after a jump ahead does not stay.

    >>> progress = Progress()
    >>> for iteration, start in ((0, 0), (1, 0), (-1, 4)):
    ...     progress.visit(LoopPosition(1, iteration), Value([start] * 32, pointer_to(INT)))
    >>> progress.step is None
    True
    """

    run: int = 0
    iteration: int = -1
    data: Data = None
    moved: int | None = None
    uneven: bool = False
    runs: float = 0.0

    def visit(self, at: LoopPosition, pointer: Value, weight: float = 1.0, mask: int = -1) -> None:
        """A request at a pointer's addresses by the lanes of `mask`, which stands for `weight` of them."""
        if at.run != self.run or at.run == 0:
            self.runs += weight
        if self.uneven or at.run == 0:
            self.uneven = self.uneven or self.moved is not None
            self.run = at.run
            return
        if at.run == self.run and self.moved == 0 and pointer.data != self.data:
            self.uneven = True
        if at.run == self.run and at.iteration >= 0 and self.iteration >= 0:
            if at.iteration == self.iteration + 1:
                self._compare(pointer, mask)
            elif at.iteration == self.iteration and pointer.data != self.data:
                self.uneven = True
        self.run, self.iteration, self.data = at.run, at.iteration, pointer.data

    def _compare(self, pointer: Value, mask: int) -> None:
        moved = 0 if self.data == pointer.data else difference(self.data, pointer.data)
        if isinstance(moved, list):
            active = {number for number, bit in zip(moved, LANE_BITS, strict=True) if mask & bit}
            moved = active.pop() if len(active) == 1 else None
        # An address that is not known shows the same example at every iteration.
        if not isinstance(moved, int) or (moved == 0 and pointer.soft) or self.moved not in (None, moved):
            self.uneven = True
        else:
            self.moved = moved

    def iterations(self, requests: float) -> float:
        """Requests in one run of the loop; 1 outside of loops."""
        return requests / self.runs if self.runs else 1.0

    @property
    def step(self) -> int | None:
        """Bytes from one iteration to the next, the same in all active lanes; None where it is not."""
        return None if self.uneven else self.moved
