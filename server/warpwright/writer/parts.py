"""Which stages of a formula are written together: attention, stages that share rows, and the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from warpwright.formulas.bounds import from_memory, polynomial
from warpwright.formulas.model import Formula, Stage
from warpwright.formulas.normal import tensors_of
from warpwright.formulas.tree import Call, Expr, Load, Num, Reduce
from warpwright.schedules.shape import RowShape, row_shape
from warpwright.writer.attention_code import attention
from warpwright.writer.attention_parts import Attention
from warpwright.writer.chain import chains
from warpwright.writer.partition import inlined, loads_of
from warpwright.writer.product_shape import is_product


@dataclass(frozen=True)
class Part:
    """Stages that are written together. `formula` has them alone, and what other parts hand on as arrays; `shape` is
    that of stages that share rows, `chain` that of two contractions around a softmax."""

    formula: Formula
    shape: RowShape | None
    chain: Attention | None = None


def parts(formula: Formula) -> tuple[Part, ...]:
    """The parts of a formula in its normal form, in the order in which they are run."""
    formula = replace(formula, stages=tuple(replace(each, value=_guarded(each.value)) for each in formula.stages))
    stages = list(formula.stages)
    for chain in chains(formula):
        if isinstance(chain, str):
            continue
        members = [each for each in stages if each.name in chain.members]
        alone = _alone(formula, members)
        found = attention(alone, chain)
        if isinstance(found, str):
            continue
        before = _before(stages, members)
        rest = [each for each in stages if each not in members and each not in before]
        others = [parts(_alone(formula, some)) if some else () for some in (before, rest)]
        return (*others[0], Part(alone, None, found), *others[1])
    return _parts_of_rows(formula)


def _parts_of_rows(formula: Formula) -> tuple[Part, ...]:
    for stages in (formula.stages, tuple(inlined(formula))):
        whole = row_shape(formula, stages)
        if not isinstance(whole, str) and not any(is_product(formula, each) for each in stages):
            return (Part(replace(formula, stages=stages), whole),)
    split = _split(formula, list(formula.stages))
    if len(split) == 1:
        return (Part(formula, None),)
    found = []
    for members, is_rows in split:
        part = _alone(formula, members)
        shape = row_shape(part, part.stages) if is_rows else None
        found.append(Part(part, shape if isinstance(shape, RowShape) else None))
    return tuple(found)


def _guarded(node: Expr, conditional: bool = False) -> Expr:
    """With a test of its own for each load behind a condition whose place comes from memory: the condition may be what
    keeps it inside, and what is read by packs is read without it."""
    match node:
        case Load(index=index, outside=None) if conditional and any(from_memory(each) for each in index):
            return replace(node, index=tuple(_guarded(each, True) for each in index), outside=Num(0))
        case Load(index=index):
            return replace(node, index=tuple(_guarded(each, conditional) for each in index))
        case Call(name=name, args=args):
            lazy = name in ("select", "and", "or")
            return replace(node, args=tuple(_guarded(a, conditional or (lazy and n > 0)) for n, a in enumerate(args)))
        case Reduce(body=body):
            return replace(node, body=_guarded(body, conditional))
    return node


def _alone(formula: Formula, stages: Sequence[Stage]) -> Formula:
    """The stages as a formula; what passes between them and others is an array."""
    others = [each for each in formula.stages if each not in stages]
    read = {load.tensor for each in others for load in loads_of(each)}
    arrays = tensors_of(formula)
    outside = {each.name: arrays[each.name] for each in others if each.temporary}
    crossing = {each.name: arrays[each.name] for each in stages if each.temporary and each.name in read}
    shown = tuple(replace(each, temporary=each.temporary and each.name not in crossing) for each in stages)
    return replace(formula, tensors={**formula.tensors, **outside, **crossing}, stages=shown)


def _split(formula: Formula, stages: list[Stage]) -> list[tuple[list[Stage], bool]]:
    """Stages that share rows apart from what comes before and after them."""
    for reduction in stages:
        if not isinstance(reduction.value, Reduce) or is_product(formula, reduction):
            continue
        members = _members(formula, stages, reduction)
        if reduction not in members:
            continue
        alone = _alone(formula, members)
        if isinstance(row_shape(alone, alone.stages), str):
            continue
        before = _before(stages, members)
        rest = [each for each in stages if each not in members and each not in before]
        first = _split(formula, before) if before else []
        last = _split(formula, rest) if rest else []
        return [*first, (members, True), *last]
    return [(stages, False)]


def _members(formula: Formula, stages: list[Stage], reduction: Stage) -> list[Stage]:
    """The stages with the rows of a reduction that can be computed together with it."""
    assert isinstance(reduction.value, Reduce)
    rows = reduction.dims
    lengths = [polynomial(formula.dims[each.name]) for each in reduction.value.ranges]

    def fits(stage: Stage) -> bool:
        if stage.combine or stage.dims[: len(rows)] != rows:
            return False
        value = stage.value
        if isinstance(value, Reduce):
            own = [polynomial(formula.dims[each.name]) for each in value.ranges]
            return stage.dims == rows and own == lengths
        own = [polynomial(formula.dims[each]) for each in stage.dims[len(rows) :]]
        return not own or own == lengths

    members = [each for each in stages if fits(each)]
    while True:
        inside = {each.name for each in members}
        later: set[str] = set()
        for each in stages:  # what hangs on a member without being one, and all that hangs on that
            reads = {load.tensor for load in loads_of(each)}
            if reads & later or (each not in members and reads & inside):
                later.add(each.name)
        kept = [each for each in members if each.name not in later]
        if kept == members:
            return members
        members = kept


def _before(stages: list[Stage], members: list[Stage]) -> list[Stage]:
    """The stages that the members need."""
    needed = {load.tensor for each in members for load in loads_of(each)}
    found: list[Stage] = []
    for each in reversed(stages):
        if each not in members and each.name in needed and not each.primed:
            found.insert(0, each)
            needed |= {load.tensor for load in loads_of(each)}
    return found
