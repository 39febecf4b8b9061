"""Which pointers of a launch lead to the same elements, or may."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

from warpwright.cuda.addresses import NULL_POINTERS, Address, address_of
from warpwright.cuda.numbers import integer, number_at
from warpwright.cuda.origins import MOST_OF_KERNEL, MOST_VALUES, Variable, origins
from warpwright.cuda.paths import LaunchPath, launch_paths
from warpwright.cuda.sites import launch_sites
from warpwright.syntax.source import Source

MOST_SITES = 32
"""Launches of one kernel whose paths are followed."""
MOST_APART = 64
"""Elements that lie between two pointers of one array, at most: further apart they may be two arrays of one piece."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two parameters, by place, that one launch hands the same elements; the file and line of the launch, or of the
    outermost call that leads to it. It is not certain where host code sets a pointer in several ways."""

    one: int
    other: int
    path: str
    line: int
    is_certain: bool = True


def overlaps(sources: Sequence[Source], kernel: str, pointers: Sequence[bool]) -> Iterator[Overlap]:
    """The pointers among a kernel's parameters (`pointers` says which are) that some launch hands the same elements, or
    may hand them.

    >>> text = b"__global__ void k(int *a, int *b);  void run(int *a, int *b) { k<<<1, 1>>>(a, b + 1); }"
    >>> text += b"  int main() { int *x, *y; run(x, y);\\nrun(x, x); }"
    >>> list(overlaps([Source("a.cu", text)], "k", [True, True]))
    [Overlap(one=0, other=1, path='a.cu', line=2, is_certain=True)]
    """
    if sum(pointers) < 2:
        return
    left = MOST_OF_KERNEL
    for site in islice(launch_sites(sources, kernel), MOST_SITES):
        if len(site.arguments) != len(pointers):
            continue
        given = [
            (place, node)
            for place, (node, is_pointer) in enumerate(zip(site.arguments, pointers, strict=True))
            if is_pointer and site.source.node_text(node) not in NULL_POINTERS
        ]
        for path in launch_paths(sources, site):
            found = [(place, address_of(path, node)) for place, node in given]
            comes: dict[int, frozenset[Variable]] = {}
            for place, address in found:
                followed = origins(path, address, min(left, MOST_VALUES))
                left -= followed.values
                comes[place] = followed.variables
            for (one, first), (other, second) in combinations(found, 2):
                if _meet(path, first, second):
                    yield Overlap(one, other, *path.place)
                elif first.memory != second.memory and comes[one] & comes[other]:
                    yield Overlap(one, other, *path.place, is_certain=False)


def _meet(path: LaunchPath, first: Address, second: Address) -> bool:
    """Whether both lead to one piece of memory, as far as is known a constant number of elements from each other."""
    if first.memory != second.memory or first.memory[2] in NULL_POINTERS:
        return False
    distance = _terms(path, first)
    distance.subtract(_terms(path, second))
    rest = [(_number(path, *term), count) for term, count in distance.items() if count]
    return all(number is not None for number, _ in rest) and (
        abs(sum(number * count for number, count in rest if number is not None)) < MOST_APART
    )


def _number(path: LaunchPath, depth: int, text: str) -> int | None:
    """The number that a term is in its function; -1 stands for no function, where the term is a literal."""
    return number_at(path.scope(depth)[0], path.inward(depth), text) if depth >= 0 else integer(text)


def _terms(path: LaunchPath, address: Address) -> Counter[tuple[int, str]]:
    """What is added to where a pointer began: each term with the function that it stands in, and how often."""
    found: Counter[tuple[int, str]] = Counter()
    for move in address.moves:
        text = re.sub(r"\s", "", path.scope(move.depth)[0].node_code(move.node))
        found[(-1 if text.isdigit() else move.depth, text)] += move.sign
    return found
