"""What is read of a kernel, kept while its findings and rewrites ask for it one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from warpwright.facts.model import Kernel

T = TypeVar("T")


def kept_of_latest(read: Callable[[Kernel], T]) -> Callable[[Kernel], T]:
    """Keep what is read of the kernel that was asked about last: each of its findings asks."""
    latest: list[tuple[Kernel, T]] = []

    def of(kernel: Kernel) -> T:
        for known, kept in latest:
            if known is kernel:
                return kept
        kept = read(kernel)
        latest[:] = [(kernel, kept)]
        return kept

    return of
