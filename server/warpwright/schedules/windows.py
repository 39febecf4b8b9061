"""Formulas that read neighbours of an element: which part of each array a thread needs that computes several results
side by side, and how many it computes.

Example: `y[i, j] = x[i - 1, j; zero] + x[i + 1, j; zero] + x[i, j - 1; zero] + x[i, j + 1; zero]`, of which a thread
computes 4 columns in 8 rows, has one box of x: 10 rows of 6 columns, from row i - 1 and column j - 1 on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from warpwright.formulas.bounds import Polynomial, polynomial
from warpwright.formulas.model import Formula, Stage, Tensor
from warpwright.formulas.normal import tensors_of
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, Outside, Range, Reduce, product, rebuilt, walk
from warpwright.formulas.types import TYPES

MOST_HELD = 160
"""Elements and sums that a thread keeps in registers, about, where arithmetic bounds the kernel."""
MOST_NEAR = 128
"""The same where memory bounds it: more threads wait for it at once."""
MOST_UNROLLED = 256
"""Elements of a window whose extents are fixed, beyond which no loop over it is unrolled."""


@dataclass(frozen=True, slots=True)
class Windows:
    """A thread computes `cols` results side by side, in each of `rows` rows and `outs` channels that read the same
    elements, and moves `vector` elements at once; a window whose length is known at run time is gone through by
    `step` elements."""

    cols: int = 4
    rows: int = 4
    outs: int = 1
    step: int = 16
    vector: int = 4


@dataclass(frozen=True, slots=True)
class Axis:
    """One index of a box: at the thread's first result the elements `base + low` to `base + high` are read; `by` says
    how far they move with the next result along a dimension that the thread runs over."""

    base: Polynomial
    low: int
    high: int
    by: Mapping[str, int]

    @property
    def is_wide(self) -> bool:
        return self.high > self.low or bool(self.by)


@dataclass(frozen=True, slots=True)
class Box:
    """The elements of an array that a thread holds in registers. `inner` is the axis whose elements lie side by side in
    memory."""

    tensor: Tensor
    outside: Outside | Num | None
    axes: tuple[Axis, ...]
    inner: int
    loads: tuple[Load, ...]

    def held(self, counts: Mapping[str, int]) -> int:
        """How many elements it has."""
        total = 1
        for each in self.axes:
            total *= each.high - each.low + 1 + sum(by * (counts[dim] - 1) for dim, by in each.by.items())
        return total


@dataclass(frozen=True, slots=True)
class Pass:
    """Stages that are computed together, within the `loops` over dimensions whose extents are known at run time. Of the
    last one, `step` is the name where it is taken several elements at a time."""

    loops: tuple[str, ...]
    stepped: str
    stages: tuple[Stage, ...]
    boxes: tuple[Box, ...]


@dataclass(frozen=True, slots=True)
class Neighbours:
    """A group of stages as windows: a thread runs over `col`, the fastest dimension of the results, over `row`, along
    which windows overlap, and over `out`, of which what moves with `col` does not depend ("" where there is none)."""

    dims: tuple[str, ...]
    col: str
    row: str
    out: str
    passes: tuple[Pass, ...]
    schedule: Windows

    @property
    def counts(self) -> dict[str, int]:
        """How many results a thread has along each dimension that it runs over."""
        made = {self.out: self.schedule.outs, self.row: self.schedule.rows, self.col: self.schedule.cols}
        return {dim: count for dim, count in made.items() if dim}

    @property
    def is_heavy(self) -> bool:
        """Whether arithmetic rather than memory bounds it: windows of any length."""
        return any(each.loops for each in self.passes)

    def alternatives(self) -> tuple[Windows, ...]:
        """Schedules that a search tries."""
        own = self.schedule
        rows = (1, 2, 4, 8) if self.row else (1,)
        outs = (4, 8, 16) if self.out else (1,)
        cols = (4, 8) if self.is_heavy else (own.cols,)
        made = ((c, r, o) for c in cols for r in rows for o in outs if c * r * o <= 128 and c >= own.vector)
        return tuple(Windows(*each, own.step, own.vector) for each in made)


def neighbours(
    formula: Formula, dims: tuple[str, ...], stages: Sequence[Stage], wanted: Windows | None
) -> Neighbours | str:
    """The stages as windows, or why they are none."""
    if not dims:
        return "There is one result."
    for stage in stages:
        if reason := _refused(formula, stage):
            return reason
    arrays = tensors_of(formula)
    own = {each.name for each in stages}
    loads = [n for s in stages for n in walk(s.value) if isinstance(n, Load) and n.tensor not in own]
    loops = [_run_time(formula, s.value) for s in stages if isinstance(s.value, Reduce)]
    col = dims[-1]
    bits = min([TYPES[s.type].bits for s in stages if not s.temporary] or [32])
    narrow = min([bits, *(TYPES[arrays[n.tensor].type].bits for n in loads if _names(n) & {col})])
    heavy = any(loops)
    vector = max(2, min(8, 128 // max(narrow, 16)))
    out = _out(dims, loads, col) if heavy else ""
    row = _row(formula, dims, loads, stages)
    chosen = wanted or Windows(8 if heavy else vector, 1, 8, 4 if out else 16, vector)
    if (
        chosen.cols not in (2, 4, 8, 16)
        or chosen.cols % chosen.vector
        or min(chosen.rows, chosen.outs, chosen.step) < 1
    ):
        return "The results of a thread along a row are whole packs, 2, 4, 8 or 16."
    whole = replace(chosen, rows=chosen.rows if row else 1, outs=chosen.outs if out else 1)
    found = Neighbours(dims, col, row, out, (), whole)
    passes = _passes(formula, found, stages)
    if wanted is None:
        rows = _rows(passes, row, vector) if row and not out else 1
        while rows > 0:
            found = replace(found, schedule=replace(whole, rows=rows))
            passes = _passes(formula, found, stages)
            held = max(_held(each, found) for each in passes)
            if held <= (MOST_HELD if heavy else MOST_NEAR):
                break
            rows //= 2
        else:
            return f"About {held} elements are more than a thread holds."
    boxes = [box for each in passes for box in each.boxes]
    if not any(
        (col in axis.by and axis.high > axis.low) or (row in axis.by and axis.high > axis.low)
        for box in boxes
        for axis in box.axes
    ):
        return "No element is read for several results."
    return replace(found, passes=tuple(replace(each, boxes=tuple(map(_from_pack, each.boxes))) for each in passes))


def _from_pack(box: Box) -> Box:
    """With the pack that the first result's own element is in."""
    inner = box.axes[box.inner]
    low = min(0, inner.low)
    axes = [*box.axes]
    axes[box.inner] = replace(inner, low=low, high=max(inner.high, low))
    return replace(box, axes=tuple(axes))


def _rows(passes: Iterable[Pass], row: str, vector: int) -> int:
    """More rows for a higher window, fewer for wider packs and for one that moves by several elements."""
    axes = [axis for each in passes for box in each.boxes for axis in box.axes if row in axis.by]
    high = max((axis.high - axis.low + 1 for axis in axes), default=1)
    return max(1, (32 if high > 3 else 16) // max(4, vector) // max((axis.by[row] for axis in axes), default=1))


def with_outside(formula: Formula, stage: Stage) -> Stage:
    """The stage with `x[i; clamp]` for `x[clamp(i, 0, I - 1)]`, as intermediates have it that stand where they are
    read."""
    arrays = tensors_of(formula)

    def change(node: Expr) -> Expr:
        if not isinstance(node, Load) or node.outside is not None or node.tensor not in arrays:
            return node
        extents = arrays[node.tensor].extents
        inner = [_unclamped(each, extent) for each, extent in zip(node.index, extents, strict=True)]
        is_said = all(new is not None or isinstance(old, Name) for new, old in zip(inner, node.index, strict=True))
        if not is_said or not any(inner):
            return node
        return replace(
            node, index=tuple(new or old for new, old in zip(inner, node.index, strict=True)), outside="clamp"
        )

    return replace(stage, value=rebuilt(stage.value, change))


def _unclamped(index: Expr, extent: Expr) -> Expr | None:
    match index:
        case Call(name="clamp", args=(inner, Num(value=0), last)):
            ends = polynomial(last), polynomial(Call("-", (extent, Num(1))))
            return inner if ends[0] is not None and ends[0] == ends[1] else None
    return None


def _refused(formula: Formula, stage: Stage) -> str:
    if stage.combine or stage.primed or not all(isinstance(each, Name) for each in stage.index):
        return f"{stage.name} goes to computed places or over old values."
    if TYPES[stage.type].kind == "complex":
        return "Complex numbers are not read by packs."
    if not isinstance(stage.value, Reduce):
        return ""
    if stage.value.op.startswith("arg"):
        return "Places are not found in windows."
    if any(not _is_whole(formula, each) for each in stage.value.ranges):
        return f"{stage.name} is reduced over a part of a dimension."
    return ""


def _is_whole(formula: Formula, each: Range) -> bool:
    if each.lower is not None or each.closed:
        return False
    return each.upper is None or polynomial(each.upper) == polynomial(formula.dims[each.name])


def fixed_extent(formula: Formula, dim: str) -> int:
    """The extent of a dimension that is no size; 0 for one that is known at run time."""
    extent = polynomial(formula.dims[dim])
    return extent.get((), 0) if extent is not None and set(extent) <= {()} else 0


def _run_time(formula: Formula, node: Expr) -> tuple[str, ...]:
    if not isinstance(node, Reduce):
        return ()
    fixed = product([Num(fixed_extent(formula, each.name)) for each in node.ranges if fixed_extent(formula, each.name)])
    most = (polynomial(fixed) or {}).get((), 1)
    return tuple(each.name for each in node.ranges if not fixed_extent(formula, each.name) or most > MOST_UNROLLED)


def _names(load: Load) -> set[str]:
    return {name for each in load.index for key in polynomial(each) or {} for name in key}


def _out(dims: tuple[str, ...], loads: Iterable[Load], col: str) -> str:
    """A dimension of the results of which what moves along `col` does not depend, but something else does."""
    moving = [_names(each) for each in loads if col in _names(each)]
    for dim in reversed(dims[:-1]):
        if any(dim not in names for names in moving) and any(dim in _names(n) and col not in _names(n) for n in loads):
            return dim
    return ""


def _row(formula: Formula, dims: tuple[str, ...], loads: Sequence[Load], stages: Sequence[Stage]) -> str:
    """The slowest dimension beside the last one along which windows overlap."""
    spans = {
        r.name: fixed_extent(formula, r.name) for s in stages if isinstance(s.value, Reduce) for r in s.value.ranges
    }
    for dim in dims[:-1]:
        reached: dict[tuple[str, int], set[int]] = {}
        for load in loads:
            for place, index in enumerate(load.index):
                terms = polynomial(index) or {}
                step = abs(terms.get((dim,), 0))
                inner = [(factor, spans[key[0]]) for key, factor in terms.items() if len(key) == 1 and key[0] in spans]
                if step:
                    if any(abs(factor) * (span - 1) >= step for factor, span in inner if span):
                        return dim
                    reached.setdefault((load.tensor, place), set()).add(terms.get((), 0))
        if any(len(offsets) > 1 for offsets in reached.values()):
            return dim
    return ""


def _passes(formula: Formula, found: Neighbours, stages: Sequence[Stage]) -> tuple[Pass, ...]:
    groups: list[tuple[tuple[str, ...], list[Stage]]] = []
    for stage in stages:
        loops = _run_time(formula, stage.value)
        last = groups[-1] if groups else None
        reads = {n.tensor for n in walk(stage.value) if isinstance(n, Load)}
        if last is not None and last[0] == loops and not (loops and reads & {each.name for each in last[1]}):
            last[1].append(stage)
        else:
            groups.append((loops, [stage]))
    made, own = [], {each.name for each in stages}
    for loops, members in groups:
        stepped = _stepped(found, loops, members)
        made.append(Pass(loops, stepped, tuple(members), _boxes(formula, found, members, own, loops, stepped)))
    return tuple(made)


def _stepped(found: Neighbours, loops: tuple[str, ...], stages: Sequence[Stage]) -> str:
    """The loop along which a window slides over the fastest dimension."""
    for stage in stages:
        for load in (n for n in walk(stage.value) if isinstance(n, Load)):
            for index in load.index:
                terms = polynomial(index) or {}
                for loop in loops:
                    if (found.col,) in terms and abs(terms.get((loop,), 0)) == 1:
                        return loop
    return ""


def _boxes(
    formula: Formula, found: Neighbours, stages: Sequence[Stage], own: set[str], loops: tuple[str, ...], stepped: str
) -> tuple[Box, ...]:
    arrays = tensors_of(formula)
    boxes: dict[tuple[str, str, object], Box] = {}
    for stage in stages:
        reduced = [r.name for r in stage.value.ranges] if isinstance(stage.value, Reduce) else []
        spans = {name: fixed_extent(formula, name) for name in reduced if name not in loops}
        if stepped:
            spans[stepped] = found.schedule.step
        for load in (n for n in walk(stage.value) if isinstance(n, Load) and n.tensor not in own):
            box = _box(formula, found, arrays[load.tensor], load, spans, stepped)
            if box is None:
                continue
            key = (load.tensor, str(load.outside), tuple(tuple(sorted(a.base.items())) for a in box.axes))
            boxes[key] = _joined(boxes[key], box) if key in boxes else box
    for inside in [each for each in boxes if each[1] == "None"]:
        # What lies inside wherever it is used may be held with what may lie outside.
        other = next((each for each in boxes if each != inside and each[::2] == inside[::2]), None)
        if other is not None:
            boxes[other] = _joined(boxes[other], boxes.pop(inside))
    return tuple(boxes.values())


def _box(
    formula: Formula, found: Neighbours, tensor: Tensor, load: Load, spans: Mapping[str, int], stepped: str
) -> Box | None:
    """What a thread reads by one load; None where it is read where it stands."""
    counts, known = found.counts, {*formula.dims, *formula.sizes}
    strides = strides_of(tensor)
    inner = next((n for n, each in enumerate(strides) if each == {(): 1}), -1)
    if inner < 0 or TYPES[tensor.type].kind == "complex":
        return None
    axes = []
    for index in load.index:
        terms = polynomial(index)
        if terms is None or any(name not in known for key in terms for name in key):
            return None
        low = high = terms.get((), 0)
        base: Polynomial = {}
        for key, factor in terms.items():
            if any(name in spans for name in key):
                if len(key) > 1:
                    return None
                reach = factor * (spans[key[0]] - 1)
                low, high = low + min(0, reach), high + max(0, reach)
                if key[0] == stepped:
                    base[key] = factor
            elif key:
                base[key] = factor
        by = {dim: base.get((dim,), 0) for dim in counts if any(dim in key for key in base)}
        if any(factor < 1 for factor in by.values()) or any(len(key) > 1 and set(key) & set(counts) for key in base):
            return None
        axes.append(Axis(base, low, high, by))
    moving = [dim for axis in axes for dim in axis.by]
    if len(set(moving)) != len(moving) or any(found.col in a.by for n, a in enumerate(axes) if n != inner):
        return None
    if found.col not in moving and (moving or found.out or not any(each.is_wide for each in axes)):
        return None  # what is the same for all columns is held where it is a window of weights
    box = Box(tensor, load.outside, tuple(axes), inner, (load,))
    return box if box.held(counts) <= MOST_HELD or found.col in moving else None


def _joined(one: Box, other: Box) -> Box:
    axes = tuple(
        replace(a, low=min(a.low, b.low), high=max(a.high, b.high)) for a, b in zip(one.axes, other.axes, strict=True)
    )
    return replace(one, axes=axes, loads=tuple(dict.fromkeys((*one.loads, *other.loads))))


def _held(each: Pass, found: Neighbours) -> int:
    results = 1
    for count in found.counts.values():
        results *= count
    sums = sum(isinstance(stage.value, Reduce) for stage in each.stages) if each.loops else 0
    return results * sums + sum(box.held(found.counts) for box in each.boxes)


def strides_of(tensor: Tensor) -> list[Polynomial | None]:
    """How far the elements of each index lie apart."""
    own = tensor.strides or [product(list(tensor.extents[n + 1 :])) for n in range(len(tensor.extents))]
    return [polynomial(each) for each in own]
