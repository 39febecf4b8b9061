"""What the rules' messages share: numbers, launches, and how much an access matters."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable
from pathlib import PurePath

from warpwright.facts.document import dims_text
from warpwright.facts.model import WARP, Access, AccessKind, Basis, Kernel, LaneAddresses, Launch, Space
from warpwright.facts.types import builtin_type
from warpwright.rules.base import Fix, Related, Severity
from warpwright.syntax.nodes import enclosing, node_at
from warpwright.syntax.source import Span

MOSTLY_USED = 0.5
"""Share of what a request touches that the kernel uses, from which caches or wider accesses make up for much of it."""

COUNTED = frozenset({Basis.EXACT, Basis.ASSUMED, Basis.EMULATED, Basis.MEASURED})
"""Bases whose numbers can be shown. An index read from memory is data-dependent, and nothing is said about it."""

SMALL_SHARE = 0.1
"""Share of a kernel's transactions up to which what an array's accesses have too many is not worth a warning."""

LARGEST_STRUCTURE = 256
"""Bytes up to which an element is taken for a structure that is copied whole; beyond, it is an array of its own."""

ADDRESS_SEQUENTIALLY = "Address sequentially: halve the stride each step and let the first lanes do the work."
"""What to do about an interleaved reduction, whichever of its costs was found."""

_ONE_BLOCK = 1024
_GRAVITY = (Severity.HINT, Severity.INFORMATION, Severity.WARNING, Severity.ERROR)
_DOUBLING = re.compile(r"(\w+)(?:\*=2[uU]?|<<=1|\+=\1|=\1\*2|=2\*\1|=\1<<1|=\1\+\1)")
_OTHER_AXES = re.compile(rb"\bthreadIdx\s*\.\s*[yz]\b")


def number(value: float) -> str:
    """A count for people: whole where it is, else one decimal.

    >>> number(32.0), number(4.583)
    ('32', '4.6')
    """
    return str(round(value)) if abs(value - round(value)) < 0.05 else f"{value:.1f}"


def plural(count: float, noun: str) -> str:
    """
    >>> plural(1, "wavefront"), plural(32, "sector")
    ('1 wavefront', '32 sectors')
    """
    return f"{number(count)} {noun}" + ("" if number(count) == "1" else "s")


def of_busy(access: Access, count: float | None) -> float | None:
    """A count per request, for the requests that have a lane on: what a reader of the line expects of it."""
    return count / (1 - access.idle) if count is not None and access.idle < 1 else count


def holds_for(launch: Launch | None, basis: Basis, why: str = "") -> str:
    """What a count holds for: the block, and that run-time values were assumed where `why` does not say so."""
    if launch is None:
        return ""
    assumed = basis is Basis.ASSUMED and launch.basis is Basis.EXACT and "run-time" not in why
    return f"; {block_of(launch)}" + (", run-time values assumed" if assumed else "")


def block_of(launch: Launch) -> str:
    """Which block shape a number holds for, and where that shape comes from."""
    text = f"block {dims_text(launch.block)}"
    if launch.span is not None:
        place = f"{PurePath(launch.span.path).name}:{launch.span.line}"
        return f"{text} from {place}" if launch.basis is Basis.EXACT else f"{text} assumed, {place} does not say"
    return f"{text} assumed, no launch in sight" if launch.source == "default" else f"{text} from {launch.source}"


def launch_of(kernel: Kernel, index: int) -> Launch | None:
    return kernel.launches[index] if 0 <= index < len(kernel.launches) else None


def launch_related(launch: Launch | None) -> tuple[Related, ...]:
    """The launch that fixes the block's shape, as a place to jump to."""
    if launch is None or launch.span is None:
        return ()
    return (Related(launch.span, f"launched here with block {dims_text(launch.block)}"),)


def launch_evidence(launch: Launch | None) -> dict[str, object]:
    if launch is None:
        return {}
    return {"block": list(launch.block), "grid": list(launch.grid), "block_source": launch.source}


def reduction_fix(kernel: Kernel, arrays: Iterable[str | None]) -> Fix:
    """Sequential addressing for a reduction of these arrays; safe where all hold integers, whose order is free."""
    named = set(arrays)
    kinds = [builtin_type(shared.element_type) for shared in kernel.shared_arrays if shared.name in named]
    exact = bool(kinds) and all(kind is not None and kind.is_integer for kind in kinds)
    return Fix("sequential-reduction-addressing", "Address the reduction sequentially", safe=exact)


def in_doubling_loop(span: Span) -> bool:
    """Whether the nearest `for` around a place doubles its variable, as interleaved reductions do."""
    node = node_at(span.source.root, span.start, span.end)
    loop = enclosing(node, "for_statement") if node is not None else None
    update = loop.child_by_field_name("update") if loop is not None else None
    return update is not None and _DOUBLING.fullmatch(re.sub(r"\s", "", span.source.node_text(update))) is not None


def worst_by_place(accesses: Iterable[Access], cost: Callable[[Access], float]) -> list[Access]:
    """One access per place in the text, of all its launches and kinds the one of the greatest cost."""
    worst: dict[tuple[str, int, int], Access] = {}
    for access in accesses:
        key = (access.span.path, access.span.start, access.span.end)
        if key not in worst or cost(access) > cost(worst[key]):
            worst[key] = access
    return list(worst.values())


def at_most(limit: Severity, severity: Severity) -> Severity:
    """
    >>> at_most(Severity.INFORMATION, Severity.WARNING)
    <Severity.INFORMATION: 'information'>
    """
    return min(limit, severity, key=_GRAVITY.index)


def weighed(kernel: Kernel, access: Access, severity: Severity) -> Severity:
    """The severity that an expert would accept for this access.

    - A place that runs once per thread of a launch of one block costs nanoseconds: a hint.
    - A request of a few lanes (a tail, one row of a halo) cannot cost much: a hint.
    - What is too many at this and the like accesses of the array is a small share of what the kernel moves through that
      memory: information.
    - A block shape that was assumed, in a kernel whose lanes depend on it: information.
    """
    launch = launch_of(kernel, access.launch)
    if launch is None:
        return at_most(Severity.INFORMATION, severity)
    if access.active_lanes < WARP / 8 and not access.in_loop:
        return Severity.HINT
    threads = _threads(launch)
    if not access.in_loop and threads is not None and threads <= _ONE_BLOCK:
        return Severity.HINT
    if launch.basis is not Basis.EXACT and is_shaped(kernel, launch):
        return at_most(Severity.INFORMATION, severity)
    if wasted_share(kernel, access) < SMALL_SHARE:
        return at_most(Severity.INFORMATION, severity)
    return severity


def wasted_share(kernel: Kernel, access: Access) -> float:
    """What an access and those of its kind to the same array have too many, as a share of the transactions that the
    kernel would make in that memory if all others were ideal; accesses that were not counted are left out."""
    needed, wasted = _transactions(kernel)
    memory = (access.space, access.launch)
    wasted_here = wasted.get((*memory, access.array, access.kind), 0.0)
    return wasted_here / (needed[memory] + wasted_here) if needed.get(memory) else 1.0


_Memory = tuple[Space, int]
_Array = tuple[Space, int, str | None, AccessKind]
_Transactions = tuple[dict[_Memory, float], dict[_Array, float]]
_latest: list[tuple[Kernel, _Transactions]] = []  # the kernel that was asked about last: each of its findings asks


def _transactions(kernel: Kernel) -> _Transactions:
    """What a kernel needs in each memory, and what its accesses to each array have too many, for each launch."""
    for known, transactions in _latest:
        if known is kernel:
            return transactions
    needed: dict[_Memory, float] = {}
    wasted: dict[_Array, float] = {}
    for access in kernel.accesses:
        shared = access.space is Space.SHARED
        got = access.wavefronts_per_request if shared else access.sectors_per_request
        ideal = access.ideal_wavefronts_per_request if shared else access.ideal_sectors_per_request
        if got is not None and ideal is not None:
            memory, array = (access.space, access.launch), (access.space, access.launch, access.array, access.kind)
            needed[memory] = needed.get(memory, 0.0) + access.requests * ideal
            wasted[array] = wasted.get(array, 0.0) + access.requests * (got - ideal)
    _latest[:] = [(kernel, (needed, wasted))]
    return needed, wasted


def is_small(kernel: Kernel) -> bool:
    """Whether every launch is known to be of so few threads that what each of them does costs nothing to speak of."""
    totals = [_threads(launch) for launch in kernel.launches]
    return bool(totals) and all(total is not None and total <= _ONE_BLOCK for total in totals)


def is_shaped(kernel: Kernel, launch: Launch) -> bool:
    """Whether lanes of a warp can differ in more than threadIdx.x, so that another block shape gives other lanes."""
    if launch.block[1:] != (1, 1):
        return True
    return _OTHER_AXES.search(kernel.source.data, kernel.span.start, kernel.span.end) is not None


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
    for start in {at - at % size for at in lanes.addresses if at is not None}:
        for piece in range(start // granule, (start + size - 1) // granule + 1):
            first, last = max(start - piece * granule, 0), min(start + size - piece * granule, granule)
            used[piece] = used.get(piece, 0) | (1 << last) - (1 << first)


def _whole(kernel: Kernel, access: Access) -> int:
    """Bytes of what an access names: of the whole structure for `points[i]`, of one member for `points[i].x`."""
    one_index = access.expression.count("[") == 1 and access.expression.endswith("]")
    if not (one_index or access.expression.startswith("*")):
        return access.bytes
    sizes = [p.element_bytes for p in kernel.parameters if p.name == access.array]
    sizes += [a.element_bytes for a in kernel.shared_arrays if a.name == access.array]
    return max([access.bytes, *(size for size in sizes if size is not None and size <= LARGEST_STRUCTURE)])


def _threads(launch: Launch) -> int | None:
    """Threads of the whole launch, None where its grid or block is not known."""
    total = launch.threads
    for extent in launch.grid:
        total = total * extent if total is not None and extent is not None else None
    return total
