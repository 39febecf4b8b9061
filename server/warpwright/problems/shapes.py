"""Which sizes to try a kernel at: edges that break careless code, and a few that are large enough to time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

Shape = Mapping[str, int]

EDGES = (1, 31, 33, 127, 129, 1000, 1009)
"""One thread, around a warp, around a block, no power of two, a prime."""

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
    return tuple(kept)


def timed_shapes(symbols: Sequence[str], own: Shape | None, size: Callable[[Shape], int]) -> tuple[Shape, ...]:
    """The user's own sizes (or the largest power of two that fits TIMING_BYTES), an odd one, one that is not square.

    >>> timed_shapes(["w", "h"], {"w": 4096, "h": 4096}, lambda s: s["w"] * s["h"] * 8)
    ({'w': 4096, 'h': 4096}, {'w': 1237, 'h': 853}, {'w': 4096, 'h': 2048})
    >>> timed_shapes(["n"], None, lambda s: s["n"] * 8)
    ({'n': 33554432}, {'n': 29360129}, {'n': 8388608})
    """
    if not symbols:
        return ({},)
    first: dict[str, int]
    if own:
        first = dict(own)
    else:
        first = dict.fromkeys(symbols, 16)
        while first[symbols[0]] < 1 << 30:
            doubled = {symbol: value * 2 for symbol, value in first.items()}
            if not 0 < size(doubled) <= TIMING_BYTES:
                break
            first = doubled
    if len(symbols) == 1:
        value = first[symbols[0]]
        others = [{symbols[0]: (value - value // 8) | 1}, {symbols[0]: max(1, value // 4)}]
    else:
        odd = {
            symbol: (1237, 853)[place % 2] if value > 1237 else (value - value // (8 - 4 * (place % 2))) | 1
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
