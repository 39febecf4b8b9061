"""Which sizes to try a written formula at, so that they take as many of its paths as they can."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from warpwright.formulas.model import Formula
from warpwright.formulas.shapes import Shape, operations
from warpwright.writer.code import Code, Path, taken

Paths = Mapping[tuple[int, int], Path]
"""Paths by the places of the step and of the path in it."""


def sizes_of(code: Code, formula: Formula, sizes: Mapping[str, int]) -> dict[str, int]:
    """The sizes of a formula by the names that they have in its code."""
    names = dict(zip(formula.sizes, code.formula.sizes, strict=True))
    return {names[name]: number for name, number in sizes.items() if name in names}


def paths_at(code: Code, formula: Formula, sizes: Mapping[str, int]) -> Paths:
    """The paths that are taken at some sizes, where arrays begin as cudaMalloc has them."""
    own = sizes_of(code, formula, sizes)
    found = {}
    for number, step in enumerate(code.steps):
        path = taken(step, own, {})
        if path is not None:
            found[number, step.paths.index(path)] = path
    return found


EACH = 2
"""Shapes that take the same paths, of which the cheapest are tried first."""


def first(code: Code, formula: Formula, shapes: Sequence[Shape]) -> list[Shape]:
    """The shapes that show most before the others are tried: odd sizes, and of those that take the same paths, where
    the same conditions hold and the same kernels run, the two with the least to compute."""
    work = {each.name: operations(formula, each.sizes) for each in shapes}
    found = [each for each in shapes if each.name == "odd"]
    counts = Counter(frozenset(paths_at(code, formula, each.sizes)) for each in found)
    for each in sorted(shapes, key=lambda each: work[each.name]):
        paths = frozenset(paths_at(code, formula, each.sizes))
        if each not in found and counts[paths] < EACH:
            counts[paths] += 1
            found.append(each)
    return found


def only(code: Code, formula: Formula, shapes: Sequence[Shape]) -> Code:
    """The code with no paths but those that the shapes take, of a step of which they take none with all."""
    kept = {place for each in shapes for place in paths_at(code, formula, each.sizes)}
    steps = []
    for number, step in enumerate(code.steps):
        paths = tuple(path for at, path in enumerate(step.paths) if (number, at) in kept)
        steps.append(replace(step, paths=paths or step.paths))
    return replace(code, steps=tuple(steps))


def instances(code: Code) -> set[tuple[str, tuple[str, ...]]]:
    """The kernels that a code launches, each with its template's arguments."""
    launches = (launch for step in code.steps for path in step.paths for launch in path.launches)
    return {(each.kernel, tuple(each.arguments)) for each in launches}


def chosen(code: Code, formula: Formula, shapes: Sequence[Shape], count: int) -> tuple[list[Shape], Paths]:
    """Some of the shapes, the ones with the least to compute first, and all paths that they take: odd sizes, then those
    that take the most paths which none before takes, of them the ones with the least to compute; where none takes
    another, the first."""
    work = {each.name: operations(formula, each.sizes) for each in shapes}
    left = [(shape, paths_at(code, formula, shape.sizes)) for shape in shapes]
    found: list[Shape] = []
    seen: dict[tuple[int, int], Path] = {}
    while left and len(found) < count:

        def gain(each: tuple[Shape, Paths]) -> tuple[bool, int, int]:
            more = len(each[1].keys() - seen.keys())
            return not found and each[0].name == "odd", more, -work[each[0].name] if more else 0

        best = max(left, key=gain)
        left.remove(best)
        found.append(best[0])
        seen.update(best[1])
    return sorted(found, key=lambda each: work[each.name]), seen
