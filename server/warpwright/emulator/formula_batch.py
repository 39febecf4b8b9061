"""Many written formulas at once: hundreds of kernels in one compilation, each compared with its formula.

Only the instances of kernels that the tried sizes launch are compiled, and hardly optimised: their compilation would
take longer than all else. What the compiler's optimiser makes of them is tried for a sample, by `verify/formulas`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from warpwright.emulator.formula_check import TOO_LONG, shapes_for, tried
from warpwright.emulator.formulas import Compiled, compiled_roughly
from warpwright.formulas.model import Formula
from warpwright.formulas.shapes import Shape
from warpwright.missing import Missing
from warpwright.writer.code import Code, Path
from warpwright.writer.coverage import chosen
from warpwright.writer.write import instances_text

MOST_TOGETHER = 200
"""Formulas in one compilation: the compiler starts in 0.7 s, and a formula takes it 10 ms."""

MOST_ELEMENTS, MOST_OPERATIONS = 1 << 13, 1 << 16
"""Of a shape: a quarter of what is tried for one formula alone, which takes nearly as many paths."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one formula: "correct", "wrong", "does-not-compile" or "not-run", with the reason; in how many
    runs, how many of how many paths through its launch function were taken, and how many elements could not be told
    right from wrong."""

    name: str
    status: str
    reason: str = ""
    runs: int = 0
    taken: int = 0
    paths: int = 0
    unjudged: int = 0


@dataclass(frozen=True, slots=True)
class _Planned:
    """A formula with the sizes that it is tried at, and what is launched there."""

    name: str
    formula: Formula
    code: Code
    shapes: tuple[Shape, ...]
    paths: tuple[Path, ...]


def check_many(written: Sequence[tuple[str, Formula, Code]], shapes: int = 3) -> Iterator[Outcome]:
    """Compares each code, of a name of its own, with its formula at `shapes` sizes, those that take the most paths
    among those that are tried elsewhere, and with values of other kinds at one."""
    planned = [_planned(name, formula, code, shapes) for name, formula, code in written]
    for start in range(0, len(planned), MOST_TOGETHER):
        yield from _unit(planned[start : start + MOST_TOGETHER])


def _planned(name: str, formula: Formula, code: Code, count: int) -> _Planned:
    shapes = shapes_for(formula, {}, MOST_ELEMENTS, MOST_OPERATIONS)
    found, paths = chosen(code, formula, shapes, count)
    return _Planned(name, formula, code, tuple(found), tuple(paths.values()))


def _unit(planned: Sequence[_Planned]) -> Iterator[Outcome]:
    launches = [launch for each in planned for path in each.paths for launch in path.launches]
    made = compiled_roughly(instances_text([each.code for each in planned], launches))
    if isinstance(made, Missing) and len(planned) > 1:  # halves, until the one that does not compile is alone
        middle = len(planned) // 2
        yield from _unit(planned[:middle])
        yield from _unit(planned[middle:])
        return
    for each in planned:
        yield _one(each, made) if isinstance(made, Compiled) else Outcome(each.name, "does-not-compile", made.reason)


def _one(planned: _Planned, made: Compiled) -> Outcome:
    runs, unjudged = 0, 0
    for each in tried(planned.formula, planned.code, made, planned.shapes):
        if isinstance(each, Missing):
            if each.what == TOO_LONG:
                continue
            return Outcome(planned.name, "not-run", each.reason, runs)
        runs += 1
        unjudged += each.unjudged
        if not each.ok:
            sizes = ", ".join(f"{size} = {number}" for size, number in each.sizes.items())
            return Outcome(planned.name, "wrong", f"At {sizes} ({each.style}): {each.reason}", runs)
    if not runs:
        return Outcome(planned.name, "not-run", "No size that is small enough is legal.")
    paths = sum(len(step.paths) for step in planned.code.steps)
    return Outcome(planned.name, "correct", "", runs, len(planned.paths), paths, unjudged)
