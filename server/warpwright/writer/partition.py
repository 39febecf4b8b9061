"""Which stages share a kernel, where each thread computes one element: those of the same dimensions that read each
other at it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from warpwright.formulas.model import Formula, Stage
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, Reduce, rebuilt, walk

MOST_NODES = 150
"""Of an expression into which a stage is put; beyond, the stage is kept in memory."""


@dataclass(frozen=True, slots=True)
class Group:
    """Stages that are computed together for each value of `dims`. `kept` are the names of temporaries that other
    groups read."""

    dims: tuple[str, ...]
    stages: tuple[Stage, ...]
    kept: frozenset[str]

    @property
    def is_scatter(self) -> bool:
        return bool(self.stages[0].combine)


def partition(formula: Formula) -> tuple[Group, ...]:
    """The groups of a formula in its normal form, in the order in which they are run."""
    stages = inlined(formula)
    levels = _levels(stages)
    groups: dict[tuple[int, tuple[str, ...], str], list[Stage]] = {}
    for stage in sorted(stages, key=lambda each: levels[each.name, each.primed]):
        own = stage.name if stage.combine else ""
        groups.setdefault((levels[stage.name, stage.primed], stage.dims, own), []).append(stage)
    found = []
    for (_, dims, _), members in groups.items():
        inside = {each.name for each in members}
        read = {
            load.tensor
            for other in stages
            for load in loads_of(other)
            if other not in members or not _at_own(load, dims, other)
        }
        kept = frozenset(name for name in inside & read if any(e.temporary for e in members if e.name == name))
        found.append(Group(dims, tuple(members), kept))
    return tuple(found)


def inlined(formula: Formula) -> list[Stage]:
    """The stages without temporaries that are no reductions: what reads them has their value instead."""
    values: dict[str, Stage] = {}
    out: list[Stage] = []
    for stage in formula.stages:
        new = replace(
            stage,
            value=_with_values(stage.value, values, formula.dims),
            index=tuple(_with_values(each, values, formula.dims) for each in stage.index),
        )
        is_plain = new.temporary and not isinstance(new.value, Reduce) and not new.combine
        if is_plain and _fits(new, formula):
            values[stage.name] = new
        else:
            out.append(new)
    return out


def _fits(stage: Stage, formula: Formula) -> bool:
    """Whether its value may stand wherever it is read: it is short, or read once, and not read mirrored."""
    uses = [load for other in formula.stages for load in loads_of(other) if load.tensor == stage.name]
    own_old = any(each.primed and each.name in {load.tensor for load in loads_of(stage)} for each in formula.stages)
    # A value that is rounded to a type of its own would lose that.
    if own_old or any(load.outside == "reflect" for load in uses) or stage.name in _declared(formula):
        return False
    size = sum(1 for _ in walk(stage.value))
    return size * max(1, len(uses)) <= MOST_NODES


def _declared(formula: Formula) -> set[str]:
    """Temporaries whose type is narrower than what is computed with."""
    return {
        each.name
        for each in formula.stages
        if each.temporary and each.type not in ("f32", "f64", "i32", "i64", "bool", "c64", "c128")
    }


def _with_values(node: Expr, values: Mapping[str, Stage], dims: Mapping[str, Expr]) -> Expr:
    def change(each: Expr) -> Expr:
        if not isinstance(each, Load) or each.tensor not in values:
            return each
        stage = values[each.tensor]
        at = dict(zip(stage.dims, each.index, strict=True))
        if each.outside is None:
            return _at(stage.value, at)
        extents = [dims[name] for name in stage.dims]
        if isinstance(each.outside, Num):
            inside: Expr | None = None
            for index, extent in zip(each.index, extents, strict=True):
                if isinstance(index, Name):
                    continue
                both = Call("and", (Call(">=", (index, Num(0))), Call("<", (index, extent))))
                inside = both if inside is None else Call("and", (inside, both))
            value = _at(stage.value, at)
            return value if inside is None else Call("select", (inside, value, each.outside))
        moved = {
            name: index if isinstance(index, Name) else _inside(index, extent, each.outside)
            for (name, index), extent in zip(at.items(), extents, strict=True)
        }
        return _at(stage.value, moved)

    return rebuilt(node, change)


def _inside(index: Expr, extent: Expr, outside: str) -> Expr:
    if outside == "wrap":
        return Call("%", (index, extent))
    return Call("clamp", (index, Num(0), Call("-", (extent, Num(1)))))


def _at(value: Expr, at: Mapping[str, Expr]) -> Expr:
    """The value with other expressions in place of its dimensions."""
    return rebuilt(value, lambda each: at.get(each.name, each) if isinstance(each, Name) else each)


def _levels(stages: list[Stage]) -> dict[tuple[str, bool], int]:
    """How many launches come before that of each stage."""
    by_name = {each.name: each for each in stages if not each.primed}
    levels: dict[tuple[str, bool], int] = {}
    for stage in stages:
        level = 0
        for load in loads_of(stage):
            made = by_name.get(load.tensor)
            if made is None or made is stage:
                continue
            shares = (
                made.dims == stage.dims and not made.combine and not stage.combine and _at_own(load, stage.dims, stage)
            )
            level = max(level, levels[made.name, made.primed] + (0 if shares else 1))
        levels[stage.name, stage.primed] = level
    for stage in stages:  # what reads an array comes before what gives it new values
        if stage.primed:
            readers = [
                levels[other.name, other.primed]
                + (0 if other.dims == stage.dims and _at_own(load, stage.dims, other) else 1)
                for other in stages
                for load in loads_of(other)
                if load.tensor == stage.name and other is not stage
            ]
            levels[stage.name, True] = max([levels[stage.name, True], *readers])
    return levels


def _at_own(load: Load, dims: tuple[str, ...], reader: Stage) -> bool:
    """Whether a load is of the element that its reader computes."""
    inside = any(load in list(walk(each)) for each in walk(reader.value) if isinstance(each, Reduce))
    return load.index == tuple(map(Name, dims)) and load.outside is None and (not inside or not _shadowed(reader))


def _shadowed(reader: Stage) -> bool:
    return any(r.name in reader.dims for each in walk(reader.value) if isinstance(each, Reduce) for r in each.ranges)


def loads_of(stage: Stage) -> list[Load]:
    """What a stage reads, its place included."""
    return [node for part in (stage.value, *stage.index) for node in walk(part) if isinstance(node, Load)]
