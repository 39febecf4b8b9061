"""Results that go to computed places, where several meet: by atomic operations."""

from __future__ import annotations

from dataclasses import replace

from warpwright.formulas.model import Formula, Stage
from warpwright.formulas.normal import identity
from warpwright.formulas.tree import Num
from warpwright.formulas.types import TYPES, ElementType, computed
from warpwright.writer.partition import Group
from warpwright.writer.scope import Scope
from warpwright.writer.text import Text
from warpwright.writer.types import NAMES

OPS = {"+": "sum", "*": "prod", "max": "max", "min": "min"}
"""The reduction that a sign of a scatter is."""
_ADDED = ("f64", "f32", "f16", "bf16", "i32", "u32", "u64")
_WORDS = {16: "unsigned short", 32: "unsigned", 64: "unsigned long long"}


class ScatterError(Exception):
    """A type that no atomic operation of a GPU has: one sentence."""


def filling(formula: Formula, group: Group) -> tuple[Formula, Group] | None:
    """What fills the array of a scatter before anything meets in it, in a formula that has its dimensions; None where
    nothing is to be filled."""
    stage = group.stages[0]
    if not group.is_scatter or stage.keeps:
        return None
    extents = formula.extents_of(stage.name)
    dims = {f"{stage.name}_{place}": extent for place, extent in enumerate(extents)}
    value = identity(OPS[stage.combine], TYPES[stage.type])
    filled = Stage(stage.name, tuple(dims), Num(value), stage.type)
    return replace(formula, dims={**formula.dims, **dims}), Group(filled.dims, (filled,), frozenset())


def meet(body: Text, scope: Scope, stage: Stage) -> None:
    """One value meets what is at its place."""
    kind = TYPES[stage.type]
    tensor = scope.tensors[stage.name]
    scope.stored[tensor.array] = None
    place = f"&{scope.own_element(tensor, stage)}"
    value = scope.expressions.stored(stage.value, kind)
    body(f"{atomic(scope, stage, kind, place, value)};")


def atomic(scope: Scope, stage: Stage, kind: ElementType, place: str, value: str) -> str:
    """The call that lets a value of a type meet what is at a place."""
    if stage.combine == "+" and kind.name in _ADDED:
        return f"atomicAdd({place}, {value})"
    if stage.combine == "+" and kind.name == "i64":
        # Sums of two's complement are those of unsigned words.
        word = NAMES["u64"]
        return f"atomicAdd(reinterpret_cast<{word}*>({place}), static_cast<{word}>({value}))"
    if stage.combine in ("max", "min") and kind.kind == "integer" and kind.bits >= 32:
        return f"atomic{stage.combine.title()}({place}, static_cast<{NAMES[kind.name]}>({value}))"
    if kind.bits not in _WORDS or kind.kind == "complex":
        reason = f"{stage.name} is of {kind.name}, for which a GPU has no atomic operation: take f32, f64, i32 or i64"
        raise ScatterError(f"{reason}.")
    scope.expressions.helpers.add("swapped")
    name, word = NAMES[kind.name], _WORDS[kind.bits]
    own = computed(kind)
    old = {"f16": "__half2float(old)", "bf16": "__bfloat162float(old)"}.get(kind.name, "old")
    new = {"f16": "__half2float(value)", "bf16": "__bfloat162float(value)"}.get(kind.name, "value")
    if stage.combine in ("+", "*"):
        result = f"{old} {stage.combine} {new}"
    elif own.kind == "float":
        scope.expressions.helpers.add(f"{stage.combine}_of")
        result = f"{stage.combine}_of({old}, {new})"
    else:
        result = f"{stage.combine}({old}, {new})"
    returned = scope.expressions.written(kind, result, own)
    body = f"[value = {name}({value})]({name} old) -> {name} {{ return {returned}; }}"
    return f"swapped<{name}, {word}>({place}, {body})"
