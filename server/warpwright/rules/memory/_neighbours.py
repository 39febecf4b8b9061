"""Which bytes a kernel's accesses use together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import lru_cache

from warpwright.facts.model import Access, Kernel, LaneAddresses

MOSTLY_USED = 0.5
"""Share of what a request touches that the kernel uses, from which caches or wider accesses make up for much of it."""
LARGEST_STRUCTURE = 256
"""Bytes up to which an element is taken for a structure that is copied whole; beyond, it is an array of its own."""


class Neighbours:
    """Which bytes a kernel's accesses use together, in pieces of `granule` bytes.

    Accesses belong together that are of the same kind and array, by the same warp of the same block, and alike in
    `alike`; a structure that is copied whole counts whole. All of them are read once: a kernel may have thousands.
    """

    def __init__(
        self,
        kernel: Kernel,
        accesses: Iterable[Access],
        granule: int,
        alike: Callable[[LaneAddresses], Hashable] = lambda _: None,
    ) -> None:
        self._granule = granule
        self._alike = alike
        self._used: dict[Hashable, dict[int, int]] = {}  # by group and piece: a bit for each byte that is used
        for access in accesses:
            if access.lanes is not None and access.array is not None:
                used = self._used.setdefault(self._group(access, access.lanes), {})
                _mark(used, access.lanes, _whole(kernel, access), granule)

    def shares(self, access: Access) -> tuple[float, float]:
        """Of the pieces that a request touches, the shares that it and it with its neighbours use.

        (0, 0) where the lanes' addresses are not known.
        """
        if access.lanes is None or access.array is None:
            return 0.0, 0.0
        own: dict[int, int] = {}
        _mark(own, access.lanes, access.bytes, self._granule)
        pieces = {at // self._granule for at in access.lanes.addresses if at is not None}
        touched = max(1, len(pieces) * self._granule)
        together = self._used.get(self._group(access, access.lanes), own)
        alone, shared = (sum(used.get(piece, 0).bit_count() for piece in pieces) for used in (own, together))
        return alone / touched, shared / touched

    def _group(self, access: Access, lanes: LaneAddresses) -> Hashable:
        return access.array, access.launch, access.kind, lanes.warp, lanes.block, self._alike(lanes)


def _mark(used: dict[int, int], lanes: LaneAddresses, size: int, granule: int) -> None:
    """Add the bytes of the elements of `size` bytes that the lanes touch."""
    for piece, bits in _used_bytes(lanes.addresses, size, granule):
        used[piece] = used.get(piece, 0) | bits


@lru_cache(maxsize=1024)
def _used_bytes(addresses: tuple[int | None, ...], size: int, granule: int) -> tuple[tuple[int, int], ...]:
    """(piece, a bit for each byte of it that is used). Kept, since most of a file is as it was before an edit."""
    used: dict[int, int] = {}
    for start in {at - at % size for at in addresses if at is not None}:
        for piece in range(start // granule, (start + size - 1) // granule + 1):
            first, last = max(start - piece * granule, 0), min(start + size - piece * granule, granule)
            used[piece] = used.get(piece, 0) | (1 << last) - (1 << first)
    return tuple(used.items())


def _whole(kernel: Kernel, access: Access) -> int:
    """Bytes of what an access names: of the whole structure for `points[i]`, of one member for `points[i].x`."""
    one_index = access.expression.count("[") == 1 and access.expression.endswith("]")
    if not (one_index or access.expression.startswith("*")):
        return access.bytes
    sizes = [p.element_bytes for p in kernel.parameters if p.name == access.array]
    sizes += [a.element_bytes for a in kernel.shared_arrays if a.name == access.array]
    return max([access.bytes, *(size for size in sizes if size is not None and size <= LARGEST_STRUCTURE)])
