"""A formula as rows: stages with a value for each row, and stages with one for each of its elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from warpwright.formulas.bounds import Polynomial, polynomial
from warpwright.formulas.model import Formula, Stage
from warpwright.formulas.normal import tensors_of
from warpwright.formulas.tree import Call, Expr, Load, Name, Reduce, rebuilt, walk
from warpwright.formulas.types import TYPES, computed
from warpwright.schedules.access import along, varies


@dataclass(frozen=True, slots=True)
class RowShape:
    """`rows` tell the row, `cols` the element in it. The dimensions of all `stages` are `rows` or both; all reductions
    run over `cols`. `phases` says of each stage after how many passes over the row it can be computed."""

    rows: tuple[str, ...]
    cols: tuple[str, ...]
    stages: tuple[Stage, ...]
    phases: Mapping[str, int]

    def is_full(self, stage: Stage) -> bool:
        """Whether it has a value for each element of a row."""
        return stage.dims != self.rows


def row_shape(formula: Formula, stages: Sequence[Stage]) -> RowShape | str:
    """The stages as rows, or why they are none."""
    reductions = [each for each in stages if isinstance(each.value, Reduce)]
    if not reductions:
        return "Nothing is reduced."
    if any(each.combine or each.index for each in stages):
        return "Results go to computed places."
    if any(TYPES[each.type].kind == "complex" for each in stages):
        return "Complex numbers are not exchanged between lanes."
    rows = reductions[0].dims
    first = reductions[0].value
    assert isinstance(first, Reduce)
    if not rows:
        return "All is reduced to one number, which one row would compute alone."
    inner = tuple(each.name for each in first.ranges)
    full = next((each.dims[len(rows) :] for each in stages if len(each.dims) == len(rows) + len(inner)), inner)
    made: list[Stage] = []
    for each in stages:
        new = _renamed(formula, each, rows, full)
        if isinstance(new, str):
            return new
        made.append(new)
    reason = _reads_apart(formula, made, rows, full)
    return reason or RowShape(rows, full, tuple(made), _phases(made, rows))


def _renamed(formula: Formula, stage: Stage, rows: tuple[str, ...], cols: tuple[str, ...]) -> Stage | str:
    """The stage with the dimensions' names of the shape."""
    own = list(stage.dims)
    wanted = [*rows, *cols][: len(own)]
    value = stage.value
    if isinstance(value, Reduce):
        if any(each.lower is not None or each.upper is not None for each in value.ranges):
            return f"{stage.name} is reduced over a part of a dimension."
        own += [each.name for each in value.ranges]
        wanted = [*rows, *cols]
        if len(stage.dims) != len(rows):
            return f"{stage.name} is reduced in another shape."
    elif len(own) not in (len(rows), len(rows) + len(cols)):
        return f"{stage.name} has another shape."
    if [_extent(formula, each) for each in own] != [_extent(formula, each) for each in wanted[: len(own)]]:
        return f"{stage.name} has another shape."
    if len(own) != len(wanted):
        return f"{stage.name} is reduced over other dimensions."
    names = dict(zip(own, wanted, strict=True))
    if isinstance(value, Reduce):
        ranges = tuple(replace(each, name=names[each.name]) for each in value.ranges)
        new: Expr = replace(value, ranges=ranges, body=_with_names(value.body, names))
    else:
        new = _with_names(value, names)
    return replace(stage, dims=tuple(names[each] for each in stage.dims), value=new)


def _with_names(node: Expr, names: Mapping[str, str]) -> Expr:
    return rebuilt(node, lambda each: Name(names.get(each.name, each.name)) if isinstance(each, Name) else each)


def _extent(formula: Formula, dim: str) -> Polynomial | None:
    return polynomial(formula.dims[dim])


def _reads_apart(formula: Formula, stages: list[Stage], rows: tuple[str, ...], cols: tuple[str, ...]) -> str:
    """Why the stages cannot share a row; "" where they can."""
    made = {each.name: each for each in stages if not each.primed}
    tensors = tensors_of(replace(formula, stages=tuple(stages)))
    runs = False
    for stage in stages:
        body = stage.value.body if isinstance(stage.value, Reduce) else stage.value
        if any(isinstance(node, Reduce) for node in walk(body)):
            return f"{stage.name} reduces inside of an expression."
        for load in (node for node in walk(body) if isinstance(node, Load)):
            other = made.get(load.tensor)
            if other is not None:
                if load.index != tuple(map(Name, other.dims)) or load.outside is not None:
                    return f"{stage.name} reads {load.tensor} at another element."
                continue
            if any(each.primed and each.name == load.tensor for each in stages) and load.index != tuple(
                map(Name, (*rows, *cols)[: len(load.index)])
            ):
                return f"{stage.name} reads the old {load.tensor} at another element."
            if any(_overlap(formula, each, rows, cols) for each in load.index):
                return f"Rows of {load.tensor} overlap."
            base = along(tensors[load.tensor], load, cols, formula.dims)
            runs = runs or (base is not None and any(name in rows for key in base for name in key))
    return "" if runs else "No array is read along its rows."


def _overlap(formula: Formula, index: Expr, rows: tuple[str, ...], cols: tuple[str, ...]) -> bool:
    """Whether an index slides along with the row: of `x[i + k]` rows share all elements but one."""
    terms = polynomial(index) or {}
    own = [abs(factor) for key, factor in terms.items() if len(key) == 1 and key[0] in rows]
    inner = [key[0] for key in terms if len(key) == 1 and key[0] in cols]
    extents = [polynomial(formula.dims[each]) or {} for each in inner]
    return any(set(extent) != {()} or factor < extent[()] for factor in own for extent in extents)


def _phases(stages: Sequence[Stage], rows: tuple[str, ...]) -> dict[str, int]:
    """What a reduction gives is known when its pass has ended. A temporary for each element is computed when it is
    first read."""
    known: dict[str, int] = {}
    ends: dict[str, int] = {}
    for stage in stages:
        phase = max([0, *(ends[load.tensor] for load in _loads(stage) if load.tensor in ends)])
        known[stage.name] = phase
        ends[stage.name] = phase + isinstance(stage.value, Reduce)
    for stage in reversed(stages):
        if stage.temporary and stage.dims != rows:
            readers = [known[other.name] for other in stages if any(e.tensor == stage.name for e in _loads(other))]
            known[stage.name] = max(known[stage.name], min(readers, default=0))
    last = max(known.values(), default=0)
    # Old values of an array are read no more when its new ones are written.
    known.update({each.name: last for each in stages if each.primed})
    return known


def _loads(stage: Stage) -> list[Load]:
    return [node for node in walk(stage.value) if isinstance(node, Load)]


def with_stages(shape: RowShape, stages: Sequence[Stage]) -> RowShape:
    """The shape with other stages of the same dimensions."""
    return replace(shape, stages=tuple(stages), phases=_phases(stages, shape.rows))


def without_full_temporaries(shape: RowShape) -> RowShape:
    """Each value of an element that is no result stands where it is read: nothing is kept between passes."""
    values: dict[Expr, Expr] = {}
    left: list[Stage] = []
    for stage in shape.stages:
        new = replace(stage, value=rebuilt(stage.value, lambda each: values.get(each, each)))
        if stage.temporary and shape.is_full(stage):
            kind = TYPES[stage.type]
            values[Load(stage.name, stage.own_index)] = (
                new.value if computed(kind) == kind else Call(kind.name, (new.value,))
            )
        else:
            left.append(new)
    return with_stages(shape, left)


def common_base(formula: Formula, shape: RowShape) -> Polynomial | None:
    """Where rows begin in each array that has an own part for every row, of those that are read or written along
    them; None where it is not the same for all, or where a result does not lie along its rows."""
    tensors = tensors_of(replace(formula, stages=shape.stages))
    made = {each.name for each in shape.stages if not each.primed}
    found: list[Polynomial] = []
    for stage in shape.stages:
        loads = [each for each in _loads(stage) if each.tensor not in made]
        bases = [along(tensors[each.tensor], each, shape.cols, formula.dims) for each in loads]
        found += [each for each in bases if each and any(n in shape.rows for key in each for n in key)]
        if shape.is_full(stage) and not stage.temporary:
            own = along(tensors[stage.name], Load(stage.name, stage.own_index), shape.cols, formula.dims)
            if own is None:
                return None
            found.append(own)
    return found[0] if found and all(each == found[0] for each in found) else None


def is_sum_of_shifted(shape: RowShape, stage: Stage) -> Stage | None:
    """For the sum over a row of exp(e - m), where m is the row's maximum of e: the stage of the maximum.

    Such a sum is at least 1 (or no number), which is why what is divided by it may be multiplied by its inverse.
    """
    match stage.value:
        case Reduce(op="sum", body=Call(name="exp", args=(Call(name="-", args=(body, Load(tensor=name))),))):
            most = next((each for each in shape.stages if each.name == name), None)
            if most is not None and isinstance(most.value, Reduce) and most.value.op == "max":
                return most if most.value.body == body and varies([body], shape.cols) else None
    return None
