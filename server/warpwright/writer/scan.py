"""Scans: `y[r, i] = sum[j <= i] x[r, j]`, along the last dimension or another, from its begin or from its end. Every
element is read once: registers hold a row or a part of one, and parts tell each other what they add up to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product as product_of

from warpwright.formulas.bounds import polynomial
from warpwright.formulas.extents import at_sizes
from warpwright.formulas.model import Formula, Stage, Tensor
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, Reduce, product, rebuilt
from warpwright.formulas.types import TYPES, computed
from warpwright.schedules.access import varies
from warpwright.schedules.model import Scan
from warpwright.writer.code import MOST_INDEX, Kernel, Launch, Path, Step, ceiling
from warpwright.writer.partition import Group
from warpwright.writer.places import packed, unique
from warpwright.writer.pointwise import pointwise, reach
from warpwright.writer.scan_columns import columns_kernel
from warpwright.writer.scan_rows import rows_kernel
from warpwright.writer.scan_text import Running, ScanText

MANY_ROWS, SHORT = 512, 16384
"""Rows that fill a GPU by themselves, and a row that is not worth parts."""
ROW, MOST = 16, 64
"""Elements of a lane along a row; registers for the values of a thread that has columns."""


@dataclass(frozen=True)
class WrittenScan:
    """Kernels, their launches, and the arrays with which blocks tell each other what they have."""

    kernels: tuple[Kernel, ...]
    steps: tuple[Step, ...]
    temporaries: tuple[Tensor, ...]


def running_of(formula: Formula, group: Group) -> Running | str:
    """The scan that a group is, or why it is none."""
    stage, node = group.stages[0], group.stages[0].value
    if group.is_scatter or not isinstance(node, Reduce) or not stage.dims:
        return "Nothing is reduced."
    sums = next((each for each in group.stages if _is_shifted(each, stage)), None)
    others = tuple(each for each in group.stages[1:] if each is not sums)
    if any(isinstance(each.value, Reduce) for each in others) or any(e.primed for e in group.stages):
        return "More than one reduction shares the elements."
    ends = _ends(node)
    if ends is None or ends[0] not in stage.dims:
        return "What is reduced does not end at the element."
    along, reverse, closed = ends
    if node.op.startswith("arg") or TYPES[stage.type].kind == "complex" or varies([node.body], (along,)):
        return "It is not a running value."
    if polynomial(formula.dims[along]) != polynomial(formula.dims[node.ranges[0].name]):
        return "The dimensions differ in length."
    inner = node.ranges[0].name
    body = rebuilt(node.body, lambda each: Name(along) if isinstance(each, Name) and each.name == inner else each)
    place = stage.dims.index(along)
    kind = TYPES[node.accumulate] if node.accumulate else computed(TYPES[stage.type])
    rows, cols = stage.dims[:place], stage.dims[place + 1 :]
    op = node.op if sums is None else "shifted"
    return Running(stage, op, kind, body, others, group.kept, along, rows, cols, reverse, closed, sums)


def _is_shifted(stage: Stage, most: Stage) -> bool:
    """Whether a stage is the sum of exp(e - m) over what `most` is the maximum m of e over."""
    if not isinstance(most.value, Reduce) or most.value.op != "max" or stage.type not in ("f32", "f64"):
        return False
    own = Load(most.name, tuple(map(Name, most.dims)))
    shifted = Call("exp", (Call("-", (most.value.body, own)),))
    return stage.type == most.type and stage.value == replace(most.value, op="sum", body=shifted)


def _ends(node: Reduce) -> tuple[str, bool, bool] | None:
    """The dimension at whose element a range ends, whether it begins there instead, and whether it holds it."""
    if len(node.ranges) != 1:
        return None
    only = node.ranges[0]
    match only.lower, only.upper:
        case None, Name(name=name):
            return name, False, only.closed
        case Name(name=name), None:
            return name, True, True
        case Call(name="+", args=(Name(name=name), Num(value=1))), None:
            return name, True, False
    return None


def apart(formula: Formula, group: Group) -> tuple[Group, ...]:
    """Each scan by itself in front of the rest of the group, where there are several reductions."""
    reductions = [each for each in group.stages if isinstance(each.value, Reduce)]
    if isinstance(running_of(formula, group), Running):
        return (group,)
    alone = [
        Group(group.dims, (each,), frozenset({each.name} if each.temporary else ()))
        for each in (reductions if len(reductions) > 1 else ())
    ]
    scans = [each for each in alone if isinstance(running_of(formula, each), Running)]
    own = {stage for each in scans for stage in each.stages}
    rest = tuple(each for each in group.stages if each not in own)
    kept = group.kept - {each.name for each in own}
    return (*scans, Group(group.dims, rest, kept)) if rest else tuple(scans)


def scan(
    formula: Formula, group: Group, name: str, wanted: Scan | None, sizes: Mapping[str, int] | None
) -> WrittenScan | str:
    """The kernels of a scan, their launches and the arrays between blocks; or why the group is none."""
    found = running_of(formula, group)
    if isinstance(found, str):
        return found
    if wanted is not None and (32 * wanted.warps * wanted.rows > 1024 or min(wanted.warps, wanted.rows) > 1):
        return "A block is one row of at most 32 warps, or rows of a warp each."
    return _columns(formula, found, name, wanted) if found.cols else _rows(formula, found, name, wanted, sizes)


def alternatives(formula: Formula, group: Group) -> list[Scan]:
    """The schedules that a search tries."""
    found = running_of(formula, group)
    if isinstance(found, str):
        return []
    vector = _vector_of(formula, found)
    if found.cols:
        shapes = ((8, 16), (8, 8), (16, 8), (16, 4), (4, 16), (4, 32))
        return [Scan(warps, 1, min(4, vector), packs) for warps, packs in shapes]
    lanes = ((1, 4, 8), (1, 4, 16), (2, 1, 16), (4, 1, 16), (8, 1, 8), (8, 1, 16), (8, 1, 32), (16, 1, 8), (16, 1, 16))
    return [Scan(warps, rows, vector, max(1, own // vector)) for warps, rows, own in (*lanes, (16, 1, 32), (32, 1, 16))]


# Along the fastest dimension


def for_length(length: int, vector: int) -> Scan:
    """The schedule of rows of at most that length, in registers. Where lanes move single elements, a longer row is
    carried on in turns."""
    if length <= 32 * ROW:
        return Scan(1, 4, vector, max(1, -(-length // (32 * vector))))
    if vector == 1:
        return Scan(8, 1, 1, ROW // 2)
    warps = min(16, -(-length // (32 * ROW)))
    return Scan(warps, 1, vector, -(-length // (32 * warps * vector)))


def _chain(found: Running, wanted: Scan | None, vector: int) -> Scan:
    """The schedule of the parts of a long row."""
    if wanted is not None:
        return replace(wanted, vector=vector, packs=wanted.packs * wanted.vector // vector)
    own = 2 * ROW // found.registers
    return Scan(16, 1, vector, max(1, own // 2 if vector == 1 else own // vector))


def _chosen(
    found: Running, vector: int, wanted: Scan | None, sizes: Mapping[str, int] | None, length: Expr
) -> list[Scan]:
    """By falling preference; the last one is right for rows of any length."""
    if wanted is not None:
        return [replace(wanted, vector=vector, packs=wanted.packs * wanted.vector // vector)]
    lengths = [at_sizes(length, sizes)] if sizes is not None else [128, 512, 4096]
    last = for_length(8 * 32 * ROW, vector)
    return list(dict.fromkeys((*(for_length(each, vector) for each in lengths if each <= SHORT), last)))


def _rows(
    formula: Formula, found: Running, name: str, wanted: Scan | None, sizes: Mapping[str, int] | None
) -> WrittenScan:
    rows = product([formula.dims[each] for each in found.rows])
    length = formula.dims[found.along]
    most = wanted.vector if wanted is not None else _vector_of(formula, found)
    chains = {vector: _chain(found, wanted, vector) for vector in (most, 1)}
    tile = min(each.capacity for each in chains.values())
    wide, told, ready = _between(formula, found, Call("//", (length, Num(tile))), rows, rows)
    text = ScanText(wide, found)
    kernel = rows_kernel(text, name, told, ready)
    fill_kernel, fill = _cleared(wide, ready, name)
    small = _small(text, product([rows, length]))
    few = (Call("<", (rows, Num(MANY_ROWS))), Call(">", (length, Num(tile if wanted else SHORT))))
    paths: list[Path] = []
    for vector in dict.fromkeys((most, 1)):
        packs = packed(text.moved.values(), [length], formula.sizes, vector)
        if packs is None:
            continue
        conditions, aligned = packs
        for index in ("int", "long long"):
            grid = product([rows, ceiling(length, chains[vector].capacity)])
            launches = (fill, _row_launch(kernel, chains[vector], grid, index, is_chained=True))
            tests = unique((*few, *conditions, *(small if index == "int" else ())))
            paths.append(
                Path(
                    launches,
                    tests,
                    aligned,
                    "Long rows, too few to fill the GPU, are cut into parts.",
                    chains[vector],
                )
            )
        for each in _chosen(found, vector, wanted, sizes, length):
            grid = ceiling(rows, each.rows)
            fits = () if each.warps > 1 else (Call("<=", (length, Num(each.capacity))),)
            said = "A row fits the registers of its warps." if fits else ""
            launch = _row_launch(kernel, each, grid, "int", is_chained=False)
            paths.append(Path((launch,), unique((*fits, *conditions, *small)), aligned, said, each))
    last = for_length(8 * 32 * ROW, 1)
    paths.append(Path((_row_launch(kernel, last, rows, "long long", is_chained=False),)))
    return WrittenScan((fill_kernel, kernel), (Step(tuple(paths), product([rows, length])),), (told, ready))


def _row_launch(kernel: Kernel, each: Scan, grid: Expr, index: str, *, is_chained: bool) -> Launch:
    chained = "true" if is_chained else "false"
    template = (index, str(each.vector), str(each.packs), str(each.warps), str(each.rows), chained)
    block = (32 * each.warps * each.rows, 1, 1)
    return Launch(kernel.name, (grid, Num(1), Num(1)), block, index, template=template)


# Along another dimension


def _columns(formula: Formula, found: Running, name: str, wanted: Scan | None) -> WrittenScan:
    outer = product([formula.dims[each] for each in found.rows])
    length = formula.dims[found.along]
    columns = product([formula.dims[each] for each in found.cols])
    most = wanted.vector if wanted is not None else min(4, _vector_of(formula, found))
    chosen = wanted or Scan(8, 1, most, max(1, MOST // (most * found.registers)))
    rows = chosen.warps * chosen.packs
    parts = ceiling(length, rows)
    values, stripes = product([outer, columns]), product([outer, ceiling(columns, 32)])
    wide, told, ready = _between(formula, found, Call("//", (length, Num(rows))), values, stripes)
    text = ScanText(wide, found)
    kernel = columns_kernel(text, name, told, ready, chosen)
    fill_kernel, fill = _cleared(wide, ready, name)
    small = _small(text, product([outer, length, columns]))
    paths: list[Path] = []
    for vector in dict.fromkeys((most, 1)):
        packs = packed(text.moved.values(), [columns], formula.sizes, vector)
        if packs is None:
            continue
        conditions, aligned = packs
        for index, is_chained in product_of(("int", "long long"), (False, True)):
            grid = product([outer, ceiling(columns, 32 * vector), parts if is_chained else Num(1)])
            template = (index, str(vector), "true" if is_chained else "false")
            launch = Launch(kernel.name, (grid, Num(1), Num(1)), (32 * chosen.warps, 1, 1), index, template=template)
            fits = () if is_chained else (Call("<=", (length, Num(rows))),)
            tests = unique((*fits, *conditions, *(small if index == "int" else ())))
            launches = (fill, launch) if is_chained else (launch,)
            said = "Long columns are cut into parts." if is_chained else ""
            paths.append(Path(launches, tests, aligned, said, replace(chosen, vector=vector)))
    return WrittenScan((fill_kernel, kernel), (Step(tuple(paths), product([outer, length, columns])),), (told, ready))


# What both have in common


def _vector_of(formula: Formula, found: Running) -> int:
    """How many elements are 16 bytes of the narrowest array that is read or written in packs."""
    sizes = [max(1, TYPES[kind].bits // 8) for _, kind, _ in ScanText(formula, found).moved.values()]
    return max(1, min(16 // min(sizes), 32 // max(sizes), 64 // (found.kind.bits // 8))) if sizes else 1


def _between(
    formula: Formula, found: Running, parts: Expr, values: Expr, chains: Expr
) -> tuple[Formula, Tensor, Tensor]:
    """The formula with two arrays more: of all parts but the last what each of its values adds up to, and up to where;
    and which of both can be read, behind a counter of the parts that have begun."""
    stem = found.stage.name.replace(".", "_")
    arrays = {each.array for each in formula.tensors.values()}
    taken = {*arrays, *formula.dims, *formula.sizes, *formula.scalars, *(s.name for s in formula.stages)}
    names = [
        next(n for n in (own, f"{own}_", f"{own}__") if n not in taken) for own in (f"{stem}_parts", f"{stem}_ready")
    ]
    words = 2 if found.exponentials is None else 4
    told = Tensor(names[0], found.kind.name, (Num(words), parts, values), "out")
    flags = Call("+", (product([Num(2), parts, chains]), Num(1)))
    ready = Tensor(names[1], "i32", (flags,), "out")
    return replace(formula, tensors={**formula.tensors, told.name: told, ready.name: ready}), told, ready


def _cleared(formula: Formula, ready: Tensor, name: str) -> tuple[Kernel, Launch]:
    dim = f"{ready.name}_0"
    stage = Stage(ready.name, (dim,), Num(0), "i32")
    wide = replace(formula, dims={**formula.dims, dim: ready.extents[0]})
    kernel, step = pointwise(wide, Group((dim,), (stage,), frozenset()), f"{name}_begin")
    return kernel, step.paths[-1].launches[0]


def _small(text: ScanText, count: Expr) -> list[Expr]:
    """When indices of 32 bits reach all elements, and a tile behind the last one."""
    whole = polynomial(count)
    others = [reach(each) for each in text.scope.touched()]
    ends = [each for each in others if polynomial(each) != whole and not isinstance(each, Num)]
    return [Call("<=", (count, Num(MOST_INDEX - 2 * SHORT))), *(Call("<=", (each, Num(MOST_INDEX))) for each in ends)]
