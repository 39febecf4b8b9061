"""Which sizes to try a kernel at: edges that break careless code, and a few that are large enough to time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

Shape = Mapping[str, int]

EDGES = (1, 31, 33, 127, 129, 1000, 1009)
"""One thread, around a warp, around a block, no power of two, a prime."""

SMALL = (2, 3, 5, 8, 16)
"""For kernels of so many sizes that their edges take too much memory together."""
LARGEST_CHECK_BYTES = 256 << 20
TIMING_BYTES = 256 << 20


def check_shapes(symbols: Sequence[str], own: Shape | None, size: Callable[[Shape], int]) -> tuple[Shape, ...]:
    """The user's own sizes first, then edges. `size` gives a shape's bytes, 0 where it cannot be launched.

    With two and more symbols the edges are mixed, so that few shapes are square.

    >>> [s["n"] for s in check_shapes(["n"], {"n": 4096}, lambda s: s["n"] * 4)]
    [4096, 1, 31, 33, 127, 129, 1000, 1009]
    >>> [tuple(s.values()) for s in check_shapes(["w", "h"], None, lambda s: 1)][:4]
    [(1, 1), (31, 33), (33, 127), (127, 129)]
    """
    if not symbols:
        return ({},)
    tried = [dict(own)] if own else []
    for index, edge in enumerate(EDGES):
        values = [edge, *(EDGES[(index + step) % len(EDGES)] for step in range(1, len(symbols)))]
        tried.append(dict(zip(symbols, values if edge != 1 else [1] * len(symbols), strict=True)))
    if len(symbols) > 1:
        tried.append({symbol: EDGES[-1 - place % 2 * 5] for place, symbol in enumerate(symbols)})
        tried.append(dict.fromkeys(symbols, 64))
    kept: list[Shape] = []
    for shape in tried:
        if shape not in kept and 0 < size(shape) <= LARGEST_CHECK_BYTES:
            kept.append(shape)
    if len(kept) < 3:
        few = [dict.fromkeys(symbols, n) for n in SMALL]
        few += [{symbol: n + 2 * place for place, symbol in enumerate(symbols)} for n in SMALL]
        kept += [shape for shape in few if shape not in kept and 0 < size(shape) <= LARGEST_CHECK_BYTES]
    return tuple(kept)


PROFILE_THREADS = 64 << 10
PROFILE_BYTES = 64 << 20
_PROFILE_SIZES = (50_021, 20_011, 10_007, 5003, 2503, 1237, 853, 509, 251, 131, 67, 37, 19, 7)
"""Primes, so that no block divides them."""
_INNER = 64
"""What a size that the grid does not depend on is at most: it makes each thread's work longer, and shows no more."""


def profile_shape(
    symbols: Sequence[str],
    own: Shape | None,
    of_grid: frozenset[str],
    size: Callable[[Shape], tuple[int, int, int] | None],
    holds: Callable[[Shape], bool] = lambda _: True,
) -> Shape | None:
    """A shape that is run through quickly and shows all: several blocks, at most 64 K threads.

    The user's own where that fits. Else the sizes that the grid depends on are primes that differ, for several full
    blocks and a partial one, or powers of two where the arrays do not hold what the kernel reaches at such primes, as
    those of a kernel without a guard do not (`holds`); other sizes are the user's own, up to 64. Where the arrays do
    not hold it at the user's own sizes either, that is no reason to try others: it is what the program does wrong.
    `size` gives (threads of the grid, of a block, bytes of the arrays), None where it cannot be launched. Where all are
    larger, the smallest.

    >>> blocks = lambda s: -(-s["n"] // 256)
    >>> profile_shape(["n", "m"], {"n": 1 << 20, "m": 900}, frozenset({"n"}), lambda s: (blocks(s) * 256, 256, s["n"]))
    {'n': 50021, 'm': 64}
    """
    inner = {s: min(own[s], _INNER) if own else _INNER - 27 for s in symbols if s not in of_grid}
    tried: list[dict[str, int]] = []
    if own:
        tried.append(dict(own))
    if of_grid:
        for place in range(len(_PROFILE_SIZES)):
            sizes = iter(_PROFILE_SIZES[place:] + _PROFILE_SIZES[-1:] * len(symbols))
            tried.append({s: next(sizes) if s in of_grid else inner[s] for s in symbols})
        for power in range(15, 1, -1):
            tried.append({s: 1 << power if s in of_grid else inner[s] for s in symbols})
    tried.append(inner if not of_grid else {symbol: 3 + 2 * place for place, symbol in enumerate(symbols)})
    tried.append(dict.fromkeys(symbols, 1))
    sizes_of = [(shape, found) for shape in tried if (found := size(shape)) is not None and found[2] <= PROFILE_BYTES]
    fitting = [(shape, found[0], found[1]) for shape, found in sizes_of if found[0] <= PROFILE_THREADS]
    if sizes_of and not fitting:
        return min(sizes_of, key=lambda one: one[1][0])[0]
    several = [shape for shape, threads, block in fitting if threads >= 4 * block] or [shape for shape, _, _ in fitting]
    if own and not holds(own):
        return several[0] if several else None
    return next(filter(holds, several), several[0] if several else None)


def alike_shape(
    symbols: Sequence[str], own: Shape | None, size: Callable[[Shape], tuple[int, int, int] | None]
) -> Shape | None:
    """Sizes small enough for a profile that divide as the program's own do: by powers of two up to 1,024 with the same
    remainder, and powers of two where those are, or where the program's are not known; sizes up to 256, which may be a
    block's, stay as they are. None where none can be launched. Where it can be, none is larger than another that it is
    smaller than in the program: a guard that takes one for the other shows there.

    >>> blocks = lambda s: -(-s["n"] // 256)
    >>> [alike_shape(["n"], {"n": n}, lambda s: (blocks(s) * 256, 256, s["n"])) for n in (1 << 20, 1000000)]
    [{'n': 32768}, {'n': 32320}]
    >>> alike_shape(["w", "h"], {"w": 640, "h": 360}, lambda s: (s["w"] * s["w"], 256, s["w"] * s["h"]))
    {'w': 128, 'h': 104}
    """
    fitting: list[Shape] = []
    for power in range(15, 7 if own else 3, -1):
        shape = {symbol: _smaller(own[symbol] if own else 1 << power, 1 << power) for symbol in symbols}
        found = size(shape)
        if found is not None and found[0] <= PROFILE_THREADS and found[2] <= PROFILE_BYTES:
            if own is None or all(shape[a] <= shape[b] for a in symbols for b in symbols if own[a] < own[b]):
                return shape
            fitting.append(shape)
    return next(iter(fitting), None)


def _smaller(size: int, most: int) -> int:
    """A size up to `most`, a power of two, that divides as `size` does."""
    if size <= max(most, 256):
        return size
    if size & (size - 1) == 0:
        return most
    unit = min(1024, most)
    return most - unit + (size % unit or unit)


ODD = (1237, 853)
LARGEST_ALONE = 1 << 24
"""What a size is at most that the bytes of no array depend on."""
TIMED_WORK = 1 << 36
"""Iterations of all threads at most, of some ten instructions each: some tens of milliseconds on a large GPU."""
CHECKED_WORK = 1 << 38
_INNER_TIMED = 1024
"""What a size that the grid does not depend on is at most, where others are: a thread's loop over it may be one of
several in each other, and the time be its cube."""


def timed_shapes(
    symbols: Sequence[str],
    own: Shape | None,
    size: Callable[[Shape], int],
    of_grid: frozenset[str] = frozenset(),
    work: Callable[[Shape], int] = lambda _: 0,
) -> tuple[Shape, ...]:
    """The user's own sizes (or the largest power of two that fits TIMING_BYTES), an odd one, one that is not square.

    With two sizes the odd one is ODD, which no block or vector divides, wherever it can be launched. `size` gives a
    shape's bytes, 0 where it cannot be launched; `of_grid` are the symbols that the grid depends on,
    and `work` gives the iterations of all threads, TIMED_WORK of them at most where the sizes are not the user's own.

    >>> timed_shapes(["w", "h"], {"w": 4096, "h": 4096}, lambda s: s["w"] * s["h"] * 8)
    ({'w': 4096, 'h': 4096}, {'w': 1237, 'h': 853}, {'w': 4096, 'h': 2048})
    >>> timed_shapes(["w", "h"], {"w": 640, "h": 480}, lambda s: s["w"] * s["h"] * 8)
    ({'w': 640, 'h': 480}, {'w': 1237, 'h': 853}, {'w': 640, 'h': 240})
    >>> timed_shapes(["n"], None, lambda s: s["n"] * 8)
    ({'n': 33554432}, {'n': 29360129}, {'n': 8388608})
    >>> timed_shapes(["n"], None, lambda s: s["n"] // 256 * 8)[0]  # no block below 256
    {'n': 1073741824}
    >>> timed_shapes(["n"], None, lambda s: 4 if s["n"] >= 256 else 0)[0]
    {'n': 16777216}
    >>> timed_shapes(["n", "steps"], None, lambda s: s["n"] * 8 + s["steps"] * 4, frozenset({"n"}))[0]
    {'n': 16777216, 'steps': 1024}
    """
    if not symbols:
        return ({},)
    first = dict(own) if own else _largest(symbols, size, of_grid, work)
    if len(symbols) == 1:
        value = first[symbols[0]]
        others = [{symbols[0]: (value - value // 8) | 1}, {symbols[0]: max(1, value // 4)}]
    else:
        odd = {symbol: ODD[place % 2] for place, symbol in enumerate(first)}
        if len(symbols) > 2 or not 0 < size(odd) <= max(TIMING_BYTES, size(first)):
            odd = {
                symbol: ODD[place % 2] if value > ODD[0] else (value - value // (8 - 4 * (place % 2))) | 1
                for place, (symbol, value) in enumerate(first.items())
            }
        uneven = {
            symbol: value if place != 1 else max(1, value // 2) for place, (symbol, value) in enumerate(first.items())
        }
        others = [odd, uneven]
    kept: list[Shape] = [first]
    for shape in others:
        if shape not in kept and size(shape) > 0:
            kept.append(shape)
    return tuple(kept)


def _largest(
    symbols: Sequence[str], size: Callable[[Shape], int], of_grid: frozenset[str], work: Callable[[Shape], int]
) -> dict[str, int]:
    """The largest shape of one power of two for all that fits; sizes that the grid does not depend on stop growing."""
    largest, before = dict.fromkeys(symbols, 16), 0
    for power in range(4, 31):
        shape = {s: 1 << power if not of_grid or s in of_grid else min(1 << power, _INNER_TIMED) for s in symbols}
        taken = size(shape)
        if taken > TIMING_BYTES or work(shape) > TIMED_WORK or (taken == before and 1 << power > LARGEST_ALONE):
            break
        before = taken
        if taken > 0:  # not so for less than a block where the grid is rounded down
            largest = shape
    return largest
