"""What a run found wrong, as data. A fault that the run cannot go on from is raised."""

from __future__ import annotations

from dataclasses import dataclass

from warpwright.facts.model import Dim3
from warpwright.facts.profile import FaultKind, Thread


def unfold(number: int, shape: Dim3) -> Dim3:
    """The index of a block in its grid, or of a thread in its block, from its number.

    >>> unfold(5, (2, 3, 1))
    (1, 2, 0)
    """
    return number % shape[0], number // shape[0] % shape[1], number // (shape[0] * shape[1])


def thread_of(number: int, grid: Dim3, block: Dim3) -> Thread:
    """The thread with a number in the grid, counted block by block.

    >>> str(thread_of(5, (2, 1, 1), (4, 1, 1)))
    'thread (1, 0, 0) of block (1, 0, 0)'
    """
    block_number, thread = divmod(number, block[0] * block[1] * block[2])
    return Thread(unfold(block_number, grid), unfold(thread, block))


def race_in(space: str) -> FaultKind:
    """A race by the space that the racing accesses are of."""
    return FaultKind.SHARED_RACE if space == "shared" else FaultKind.GLOBAL_RACE


@dataclass(frozen=True, slots=True)
class FoundFault:
    """One fault: the instruction (its number in the kernel) that met it, and the threads; `count` lanes met it.

    `other_step` and `other_thread` are the earlier access of a race. `address` is as the kernel sees it, `array` what
    it belongs to and `offset` its bytes from the start of that. `text` says what is wrong where the kind does not:
    `4 bytes past the end of y (4,000 bytes)`. `values` are what is there, and what a store of a race would put there.
    `keeps_lock` says of a deadlock that all who are left wait in one loop for what the kernel itself has changed: those
    who did have ended.
    """

    kind: FaultKind
    step: int
    text: str
    thread: Thread | None = None
    address: int | None = None
    count: int = 1
    other_step: int | None = None
    other_thread: Thread | None = None
    space: str = ""
    array: str | None = None
    offset: int | None = None
    values: tuple[str, ...] = ()
    keeps_lock: bool = False


class KernelFaultError(Exception):
    """A fault that ends the run."""

    def __init__(self, fault: FoundFault) -> None:
        super().__init__(fault.text)
        self.fault = fault
