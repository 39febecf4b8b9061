"""Scatters of rows, `y[ids[t], d] += x[t, d]`: elements side by side meet those side by side in memory, several in one
atomic operation."""

from __future__ import annotations

from warpwright.formulas.bounds import Polynomial
from warpwright.formulas.model import Formula
from warpwright.formulas.tree import Call, Expr, Load, Num, Reduce, product, walk
from warpwright.formulas.types import TYPES
from warpwright.schedules.access import along, varies
from warpwright.writer.code import MOST_INDEX, Kernel, Launch, Path, ceiling
from warpwright.writer.expressions import PRODUCT
from warpwright.writer.partition import Group
from warpwright.writer.places import base_expression, coordinates, inner_loads, packed, unique
from warpwright.writer.pointwise import reach
from warpwright.writer.scope import Scope
from warpwright.writer.text import Text
from warpwright.writer.types import NAMES

THREADS = 256
VECTORS = {"f32": 4, "f16": 8, "bf16": 8}
"""Elements of a pack that is added at once, by type."""


def columns_of(formula: Formula, group: Group) -> tuple[str, ...] | str:
    """The last dimensions along which values lie as their places do; or why there are none."""
    stage = group.stages[0]
    if stage.combine != "+" or stage.type not in VECTORS or isinstance(stage.value, Reduce):
        return "No packs are added in memory."
    scope = Scope(formula)
    target = Load(stage.name, stage.own_index)
    loads = [n for part in (stage.value, *stage.index) for n in walk(part) if isinstance(n, Load)]
    for first in range(1, len(group.dims)):
        cols = group.dims[first:]
        moving = [target, *(n for n in loads if varies(n.index, cols))]
        if all(along(scope.tensors[n.tensor], n, cols, formula.dims) is not None for n in moving):
            return cols
    return "Places do not lie side by side."


def scatter_packs(formula: Formula, group: Group, name: str) -> tuple[Kernel, list[Path]] | str:
    """The kernel, and the paths on which rows are made of whole packs; or why there is none."""
    cols = columns_of(formula, group)
    if isinstance(cols, str):
        return cols
    stage, scope = group.stages[0], Scope(formula)
    scope.index_type = "Index"
    expressions, dims, vector = scope.expressions, formula.dims, VECTORS[stage.type]
    rows = group.dims[: -len(cols)]
    element = scope.free("k", "m", "element")
    first, column, added = (scope.free(n) for n in ("first", "column", f"{stage.name}_added"))
    row = rows[0] if len(rows) == 1 else scope.free("row")
    columns = product([dims[each] for each in cols])
    count = product([dims[each] for each in group.dims])
    moved: list[tuple[str, str, Polynomial]] = []

    def place(load: Load) -> str:
        tensor = scope.tensors[load.tensor]
        base = along(tensor, load, cols, dims)
        assert base is not None
        scope.used[tensor.array] = None
        moved.append((tensor.array, tensor.type, base))
        at = base_expression(base, rows, row, dims, columns, inner_loads(load))
        return scope.behind(tensor.array, at, column)

    inner = Text(depth=1)
    packs: dict[str, str] = {}
    for load in dict.fromkeys(n for n in walk(stage.value) if isinstance(n, Load) and varies(n.index, cols)):
        scope.read_pack(inner, load, place(load), packs, element)
    line = f"{added}.at[{element}] = {expressions.stored(stage.value, TYPES[stage.type])};"
    inner(f"Pack<{NAMES[stage.type]}, kVector> {added};")
    with inner.unrolled(element, "kVector"):
        inner.add(coordinates(expressions, cols, dims, f"({column} + {element})", line))
        inner(line)
    scope.stored[scope.tensors[stage.name].array] = None
    expressions.helpers.add(f"add_pack_{stage.type}")
    inner(f"add_pack({place(Load(stage.name, stage.own_index))}, {added});")

    body = Text(depth=1)
    body(f"constexpr int kVector = {vector};")
    body(f"const Index {first} = (static_cast<Index>(blockIdx.x) * {THREADS} + threadIdx.x) * kVector;")
    body(f"if ({first} >= {expressions.of(count, PRODUCT)}) return;")
    length = expressions.of(columns, PRODUCT + 1)
    body(f"const Index {row} = {first} / {length};")
    body(f"const Index {column} = {first} % {length};")
    if len(rows) > 1:
        body.add(coordinates(expressions, rows, dims, row, str(inner)))
    body.lines += inner.lines
    said = "// Each thread adds kVector elements side by side."
    kernel = scope.kernel(name, THREADS, body.lines, "typename Index", said=said)
    return kernel, _paths(scope, kernel, count, columns, moved, vector)


def _paths(
    scope: Scope, kernel: Kernel, count: Expr, columns: Expr, moved: list[tuple[str, str, Polynomial]], vector: int
) -> list[Path]:
    fits = packed(moved, [columns], scope.formula.sizes, vector)
    if fits is None:
        return []
    conditions, aligned = fits
    ends = [each for each in map(reach, scope.touched()) if not isinstance(each, Num)]
    small: list[Expr] = [Call("<=", (count, Num(MOST_INDEX - THREADS * vector)))]
    small += [Call("<=", (each, Num(MOST_INDEX))) for each in ends]
    grid = (ceiling(count, THREADS * vector), Num(1), Num(1))
    return [
        Path(
            (Launch(kernel.name, grid, (THREADS, 1, 1), index),),
            unique(tests),
            aligned,
            "Rows are made of whole packs.",
        )
        for index, tests in (("int", [*conditions, *small]), ("long long", conditions))
    ]
