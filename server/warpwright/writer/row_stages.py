"""The stages of a row as a person would compute them: what is costly once, what is the same for a whole row before its
loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from warpwright.formulas.model import Formula, Stage
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, Reduce, rebuilt, walk
from warpwright.schedules.access import varies
from warpwright.schedules.shape import RowShape, is_sum_of_shifted, with_stages

_NAMES = """
exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh cbrt sqrt rsqrt erf erfc
lgamma atan2 hypot pow ** sigmoid silu gelu gelu_tanh softplus normal uniform
"""
_COSTLY = frozenset(_NAMES.split())


def prepared(
    formula: Formula, shape: RowShape, kind_of: Callable[[Expr], str], *, keep: bool
) -> tuple[Formula, RowShape]:
    """With stages of their own for costly expressions that come up more than once (where values are kept between
    passes) and for those that are the same for all of a row. What is divided by a sum of exp(e - max e), which is 1
    or more, is multiplied by its inverse; the inverse of another divisor might overflow."""
    formula, shape = _without_doubles(formula, shape)
    tame = {each.name for each in shape.stages if is_sum_of_shifted(shape, each) and each.type in ("f32", "f64")}
    if keep:
        formula, shape = _repeated(formula, shape, kind_of)
    return _row_constants(formula, shape, kind_of, tame)


def _without_doubles(formula: Formula, shape: RowShape) -> tuple[Formula, RowShape]:
    """Of values of a row that are computed alike, the first alone."""
    first: dict[Expr, Stage] = {}
    instead: dict[Expr, Expr] = {}
    left: list[Stage] = []
    for stage in shape.stages:
        new = replace(stage, value=rebuilt(stage.value, lambda each: instead.get(each, each)))
        same = first.setdefault(new.value, new)
        if (
            new.temporary
            and not shape.is_full(new)
            and same is not new
            and (same.type, same.dims) == (new.type, new.dims)
        ):
            instead[Load(new.name, new.own_index)] = Load(same.name, same.own_index)
        else:
            left.append(new)
    return _added(formula, shape, left)


def _added(formula: Formula, shape: RowShape, stages: list[Stage]) -> tuple[Formula, RowShape]:
    return replace(formula, stages=tuple(stages)), with_stages(shape, stages)


def _with(node: Expr, old: Expr, new: Expr) -> Expr:
    return rebuilt(node, lambda each: new if each == old else each)


def _taken(formula: Formula) -> set[str]:
    arrays = {each.array for each in formula.tensors.values()}
    names = {*arrays, *formula.scalars, *formula.dims, *formula.sizes}
    return names | {each.name for each in formula.stages}


def _free(formula: Formula, *names: str) -> str:
    taken = _taken(formula)
    free = next((each for each in names if each not in taken), names[-1])
    while free in taken:
        free += "_"
    return free


def _repeated(formula: Formula, shape: RowShape, kind_of: Callable[[Expr], str]) -> tuple[Formula, RowShape]:
    while True:
        uses: dict[Expr, list[str]] = {}
        for stage in shape.stages:
            for node in walk(stage.value):
                if isinstance(node, Call) and node.name in _COSTLY and varies([node], shape.cols):
                    uses.setdefault(node, []).append(stage.name)
        many = [node for node, names in uses.items() if len(names) > 1]
        largest = next((n for n in many if not any(n is not o and n in list(walk(o)) for o in many)), None)
        if largest is None:
            return formula, shape
        first = uses[largest][0]
        whole = next((s for s in shape.stages if s.value == largest and s.temporary), None)
        if whole is not None and whole.name == first:
            made, stages = whole, list(shape.stages)
        else:
            assert isinstance(largest, Call)
            short = {"exp": "e"}.get(
                largest.name, f"{first}_{largest.name}" if largest.name != "**" else f"{first}_power"
            )
            name = _free(formula, short, f"{first}_{short}")
            made = Stage(name, (*shape.rows, *shape.cols), largest, kind_of(largest), temporary=True)
            at = next(n for n, s in enumerate(shape.stages) if s.name == first)
            stages = [*shape.stages[:at], made, *shape.stages[at:]]
        load = Load(made.name, tuple(map(Name, made.dims)))
        changed = [s if s is made else replace(s, value=_with(s.value, largest, load)) for s in stages]
        formula, shape = _added(formula, shape, changed)


def _row_constants(
    formula: Formula, shape: RowShape, kind_of: Callable[[Expr], str], tame: set[str]
) -> tuple[Formula, RowShape]:
    done: list[Stage] = []
    made: dict[Expr, Load] = {}
    index = tuple(map(Name, shape.rows))

    def row_stage(value: Expr, *names: str) -> Load:
        nonlocal formula
        if value not in made:
            stage = Stage(_free(formula, *names), shape.rows, value, kind_of(value), temporary=True)
            formula = replace(formula, stages=(*formula.stages, stage))
            done.append(stage)
            made[value] = Load(stage.name, index)
        return made[value]

    def is_row(node: Expr) -> bool:
        return not varies([node], shape.cols)

    def changed(node: Expr, owner: Stage) -> Expr:
        match node:
            case Call(name="/", args=(one, Load() as divisor)) if not is_row(one) and divisor.tensor in tame:
                inverse = row_stage(Call("/", (Num(1.0), divisor)), f"inverse_{divisor.tensor}")
                return Call("*", (changed(one, owner), inverse))
            case Call(name=name, args=args) if is_row(node) and (name in _COSTLY or name == "/"):
                if any(isinstance(each, Load) for each in walk(node)):
                    short = {"rsqrt": "scale", "/": f"{owner.name}_ratio"}.get(name, f"{owner.name}_{name}")
                    return row_stage(node, short.replace("**", "power"), f"{owner.name}_{short}".replace("**", "power"))
            case Call(args=args):
                return replace(node, args=tuple(changed(each, owner) for each in args))
        return node

    for stage in shape.stages:
        value = stage.value
        if isinstance(value, Reduce):
            new: Expr = replace(value, body=changed(value.body, stage))
        elif shape.is_full(stage):
            new = changed(value, stage)
        else:
            new = value
        done.append(replace(stage, value=new))
    return _added(formula, shape, done)
