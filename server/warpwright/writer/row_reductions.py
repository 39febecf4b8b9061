"""Reductions over rows: each lane's own, then all lanes of a row together."""

from __future__ import annotations

from warpwright.formulas.model import Stage
from warpwright.formulas.normal import identity
from warpwright.formulas.tree import Reduce
from warpwright.formulas.types import TYPES, ElementType, computed
from warpwright.schedules.shape import is_sum_of_shifted
from warpwright.writer.pointwise import combined
from warpwright.writer.row_text import RowText
from warpwright.writer.text import Text
from warpwright.writer.types import NAMES, literal


def place_type(rows: RowText) -> ElementType:
    """In which lanes count the places in a row."""
    return TYPES["i32" if rows.index == "int" else "i64"]


def _kinds(rows: RowText, stage: Stage) -> tuple[Reduce, ElementType, ElementType, str]:
    node = stage.value
    assert isinstance(node, Reduce)
    of_body = rows.scope.expressions.type_of(node.body)
    kind = TYPES[node.accumulate] if node.accumulate else computed(TYPES[stage.type])
    name = stage.name if stage.temporary else rows.scope.free(f"{stage.name}_{node.op}")
    return node, of_body, kind, name


def declare(rows: RowText, stage: Stage) -> None:
    """What a lane begins with."""
    node, of_body, kind, name = _kinds(rows, stage)
    if node.op in ("argmax", "argmin"):
        rows.body(f"{NAMES[of_body.name]} {name}_best = {literal(identity(node.op, of_body), of_body)};")
        rows.body(f"{rows.index} {name} = 0;")
    else:
        rows.body(f"{NAMES[kind.name]} {name} = {rows.scope.expressions.nothing(node, kind)};")


def accumulate(rows: RowText, inner: Text, stage: Stage) -> None:
    """One more element."""
    node, of_body, kind, name = _kinds(rows, stage)
    is_place = node.op in ("argmax", "argmin")
    value = rows.scope.expressions.of(node.body, wanted=of_body if is_place else kind)
    if is_place and rows.is_single:  # which may lie before what the lane has seen
        rows.scope.expressions.helpers.add(f"better_{node.op}")
        inner(f"better_{node.op}({name}_best, {name}, {value}, {rows.single});")
        return
    inner.add(combined(rows.scope, node, name, value, of_body, kind))


def meet(rows: RowText, stage: Stage) -> None:
    """All lanes of a row get the result."""
    node, _, kind, name = _kinds(rows, stage)
    if node.op in ("argmax", "argmin"):
        rows.body(f"{_helper(rows, node.op)}({name}_best, {name});")
        kind = place_type(rows)
    else:
        rows.body(f"{name} = {_helper(rows, node.op)}({name});")
    rows.scope.locals[stage.name] = (name, kind)
    rows.results[stage.name] = name


def _helper(rows: RowText, op: str) -> str:
    name = f"row_{op}"
    rows.scope.expressions.helpers.add(name)
    turn = rows.met[name]
    rows.met[name] += 1
    return f"{name}<kLanes{f', {turn}' if turn else ''}>"


def online_pair(rows: RowText, stages: list[Stage], phase: int) -> tuple[Stage, Stage] | None:
    """A maximum and the sum of exponentials after it, where nothing else is computed in both passes."""
    later = [s for s in rows.shape.stages if rows.shape.phases[s.name] == phase + 1]
    both = [(is_sum_of_shifted(rows.shape, s), s) for s in later]
    pair = next(((most, s) for most, s in both if most in stages), None)
    if pair is None or pair[0] is None or len(stages) > 1 or [s for s in later if s is not pair[1]]:
        return None
    return (pair[0], pair[1]) if pair[0].temporary and pair[1].temporary else None


def online(rows: RowText, most: Stage, total: Stage) -> None:
    """Maximum and sum of exponentials in one pass."""
    body, scope = rows.body, rows.scope
    node, _, kind, name = _kinds(rows, most)
    summed = _kinds(rows, total)[3]
    phase = rows.shape.phases[most.name]
    kind_name = NAMES[kind.name]
    exp = "exp" if kind.name == "f64" else "expf"
    next_name, value_name = scope.free("next"), scope.free("values")
    body("// One pass: where the maximum grows, the sum so far is brought down to it.")
    declare(rows, most)
    declare(rows, total)
    scope.expressions.helpers.add("max_of")
    with rows.packs_loop():
        for each in rows.packs:
            if phase in each.phases:
                rows.load(each)
        body(f"{kind_name} {value_name}[kVector];")
        body(f"{kind_name} {next_name} = {name};")
        inner = Text(depth=body.depth + 1)
        inner(f"{value_name}[{rows.element}] = {scope.expressions.of(node.body, wanted=kind)};")
        inner(f"{next_name} = max_of({next_name}, {value_name}[{rows.element}]);")
        rows.elements(inner)
        body("// While all is -inf, the difference to the maximum would be no number.")
        with body.block(f"if ({next_name} != -INFINITY)"):
            body(f"{summed} *= {exp}({name} - {next_name});")
            body("#pragma unroll")
            with body.block(rows.elements_loop):
                body(f"{summed} += {exp}({value_name}[{rows.element}] - {next_name});")
            body(f"{name} = {next_name};")
    own = scope.free(f"lane_{name}")
    body(f"const {kind_name} {own} = {name};")
    body(f"{name} = {_helper(rows, 'max')}({own});")
    scaled = f"{summed} * {exp}({own} - {name})"
    body(f"{summed} = {_helper(rows, 'sum')}({own} == -INFINITY ? {literal(0, kind)} : {scaled});")
    body()
    for stage, text in ((most, name), (total, summed)):
        scope.locals[stage.name] = (text, kind)
        rows.results[stage.name] = text
