"""Reductions of a group as rounds: what is reduced together over the same dimensions, and what is computed of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from warpwright.formulas.bounds import Polynomial, polynomial
from warpwright.formulas.model import Formula, Stage
from warpwright.formulas.tree import Load, Reduce, walk
from warpwright.formulas.types import TYPES, computed
from warpwright.schedules.access import along, varies
from warpwright.writer.scope import Scope

THREADS = 256
"""Of a block that reduces to one result, and of one of the second launch."""
LEAST = 4096
"""Elements below which one thread for each result is as fast."""


@dataclass(frozen=True)
class Round:
    """Reductions over the same dimensions that read no result of each other, and what is computed of their results.
    `cols` are the dimensions that packs lie along: the last ones of the result, or, where `inner`, of what is reduced.
    """

    dims: tuple[str, ...]
    over: tuple[str, ...]
    reductions: tuple[Stage, ...]
    after: tuple[Stage, ...]
    cols: tuple[str, ...]
    inner: bool


def rounds(formula: Formula, stages: Sequence[Stage]) -> tuple[Round, ...] | str:
    """The stages of a group as rounds, one after the other; or why they are none."""
    found: list[Round] = []
    pending: list[Stage] = []
    after: list[Stage] = []

    def close() -> str:
        if not pending:
            return "A result stands before all reductions."
        made = _round(formula, pending, after)
        if isinstance(made, str):
            return made
        found.append(made)
        pending.clear()
        after.clear()
        return ""

    for stage in stages:
        reads = {n.tensor for n in walk(stage.value) if isinstance(n, Load)}
        is_reduction = isinstance(stage.value, Reduce)
        if (
            is_reduction
            and pending
            and (after or reads & {each.name for each in pending} or not _same_ranges(formula, pending[0], stage))
            and (reason := close())
        ):
            return reason
        (pending if is_reduction else after).append(stage)
    return close() or tuple(found)


def _same_ranges(formula: Formula, one: Stage, other: Stage) -> bool:
    def extents(stage: Stage) -> list[tuple[str, Polynomial | None]]:
        assert isinstance(stage.value, Reduce)
        return [(each.name, polynomial(formula.dims[each.name])) for each in stage.value.ranges]

    return extents(one) == extents(other)


def _round(formula: Formula, pending: list[Stage], after: list[Stage]) -> Round | str:
    first = pending[0].value
    assert isinstance(first, Reduce)
    dims, over = pending[0].dims, tuple(each.name for each in first.ranges)
    for stage in pending:
        assert isinstance(stage.value, Reduce)
        if any(each.lower is not None or each.upper is not None for each in stage.value.ranges):
            return f"{stage.name} is reduced over a part of a dimension."
        if TYPES[stage.type].kind == "complex" or stage.primed or stage.combine:
            return f"{stage.name} is not brought together from parts."
    scope = Scope(replace(formula, stages=(*formula.stages,)))
    loads = [n for s in pending for n in walk(s.value) if isinstance(n, Load) and varies(n.index, (*dims, *over))]
    arrays = [n for n in loads if varies(n.index, over)]
    ranks = [sum(varies(n.index, (each,)) for each in (*dims, *over)) for n in arrays]
    largest = [n for n, rank in zip(arrays, ranks, strict=True) if rank == max(ranks)]
    # An array of one number for each row says nothing of how the matrix beside it lies.
    for decisive, (inner, own) in product((largest, arrays), ((True, over), (False, dims))):
        for start in range(len(own)):
            cols = own[start:]
            runs = [along(scope.tensors[n.tensor], n, cols, formula.dims) is not None for n in decisive]
            moving = [
                along(scope.tensors[n.tensor], n, cols, formula.dims) is not None
                for n in loads
                if varies(n.index, cols)
            ]
            # What blocks share along their own elements may be gathered beside; lanes along results read packs alone.
            if arrays and any(runs) and (inner or all(moving)):
                places = any(isinstance(s.value, Reduce) and s.value.op.startswith("arg") for s in pending)
                if places and not inner:
                    return "Places are brought together along what is reduced alone."
                return Round(dims, over, tuple(pending), tuple(after), cols, inner)
    return "No array runs along a dimension."


def parts_of(formula: Formula, stage: Stage) -> list[tuple[str, str]]:
    """The arrays that hold what blocks give: what stands behind the name of the stage, and the type."""
    node = stage.value
    assert isinstance(node, Reduce)
    if node.op.startswith("arg"):
        return [("best_parts", Scope(formula).expressions.type_of(node.body).name), ("parts", "i64")]
    return [("parts", node.accumulate or computed(TYPES[stage.type]).name)]


def use_of(found: Round, stage: Stage) -> str:
    """Tells reductions of one kind in a kernel apart: each has shared memory of its own."""
    ops = [each.value.op for each in found.reductions if isinstance(each.value, Reduce)]
    number = ops[: found.reductions.index(stage)].count(ops[found.reductions.index(stage)])
    return f", {number}" if number else ""
