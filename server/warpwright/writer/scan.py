"""Scans along the last dimension: `y[r, i] = sum[j <= i] x[r, j]`. A block runs along a row with what came before; a
long row is cut into parts whose totals are known first."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from warpwright.formulas.bounds import polynomial
from warpwright.formulas.model import Formula, Stage, Tensor
from warpwright.formulas.normal import identity
from warpwright.formulas.tree import Call, Expr, Name, Num, Reduce, product, rebuilt
from warpwright.formulas.types import TYPES, ElementType, computed
from warpwright.schedules.access import varies
from warpwright.writer.code import MOST_INDEX, Kernel, Launch, Path, Step
from warpwright.writer.expressions import PRODUCT
from warpwright.writer.partition import Group
from warpwright.writer.pointwise import combined, store
from warpwright.writer.scope import Scope
from warpwright.writer.text import Text, listed
from warpwright.writer.types import NAMES, literal

THREADS, ITEMS, PARTS = 256, 4, 512
"""Of a block; elements of a thread at a time; parts of a long row."""
MANY_ROWS, SHORT = 512, 16384
"""Rows that fill a GPU by themselves, and a row that is not worth parts."""


@dataclass(frozen=True)
class Scan:
    """The reduction over all elements before one of `along`, and what is computed of its result at each element."""

    stage: Stage
    node: Reduce
    body: Expr
    after: tuple[Stage, ...]

    @property
    def along(self) -> str:
        """The dimension that is scanned."""
        return self.stage.dims[-1]

    @property
    def rows(self) -> tuple[str, ...]:
        """The others."""
        return self.stage.dims[:-1]


def scan_of(formula: Formula, group: Group) -> Scan | str:
    """The scan that a group is, or why it is none."""
    stage, node = group.stages[0], group.stages[0].value
    if group.is_scatter or not isinstance(node, Reduce) or not stage.dims:
        return "Nothing is reduced."
    if any(isinstance(each.value, Reduce) for each in group.stages[1:]) or any(e.primed for e in group.stages):
        return "More than one reduction shares the elements."
    along, ranges = stage.dims[-1], node.ranges
    if len(ranges) != 1 or ranges[0].lower is not None or ranges[0].upper != Name(along):
        return "What is reduced does not end at the element."
    if node.op.startswith("arg") or TYPES[stage.type].kind == "complex" or varies([node.body], (along,)):
        return "It is not a running value."
    if polynomial(formula.dims[along]) != polynomial(formula.dims[ranges[0].name]):
        return "The dimensions differ in length."
    inner = ranges[0].name
    body = rebuilt(node.body, lambda each: Name(along) if isinstance(each, Name) and each.name == inner else each)
    return Scan(stage, node, body, group.stages[1:])


def scan(formula: Formula, group: Group, name: str) -> tuple[list[Kernel], Step, tuple[Tensor, ...]] | str:
    """The kernels of a scan, their launches and the array between them; or why the group is none."""
    found = scan_of(formula, group)
    if isinstance(found, str):
        return found
    kind = TYPES[found.node.accumulate] if found.node.accumulate else computed(TYPES[found.stage.type])
    extents = (Num(PARTS), *(formula.dims[each] for each in found.rows))
    parts = Tensor(f"{found.stage.name}_parts", kind.name, extents, "out")
    wide = replace(formula, tensors={**formula.tensors, parts.name: parts})
    totals = _kernel(wide, found, group.kept, f"{name}_totals", kind, parts, last=False)
    whole = _kernel(wide, found, group.kept, name, kind, parts, last=True)
    rows = product([formula.dims[each] for each in found.rows])
    length = formula.dims[found.along]
    grid = Call("min", (rows, Num(MOST_INDEX)))
    one = Path((_launch(whole, grid, 1),))
    few = (Call("<", (rows, Num(MANY_ROWS))), Call(">", (length, Num(SHORT))))
    split = Path(
        (_launch(totals, grid, PARTS), _launch(whole, grid, PARTS)), few, reason="Few long rows are cut into parts."
    )
    return [totals, whole], Step((split, one), product([rows, length])), (parts,)


def _launch(kernel: Kernel, rows: Expr, parts: int) -> Launch:
    return Launch(kernel.name, (rows, Num(parts), Num(1)), (THREADS, 1, 1), template=(str(parts),))


def _kernel(
    formula: Formula, found: Scan, kept: frozenset[str], name: str, kind: ElementType, parts: Tensor, *, last: bool
) -> Kernel:
    """A template over the number of parts: the total of each part, or, where `last`, the running values."""
    scope = Scope(formula)
    expressions = scope.expressions
    node = found.node
    helper = f"running_{node.op}"
    expressions.helpers |= {f"row_{node.op}", *((helper,) if last else ())}
    along = found.along
    taken = {*formula.dims, *scope.tensors, *formula.scalars, *formula.sizes}
    item = next(n for n in ("k", "m", "item") if n not in taken)
    row = found.rows[0] if len(found.rows) == 1 else scope.free("own_row")
    begin, end, first, carry = (scope.free(each) for each in ("begin", "end", "first", "so_far"))
    rows = expressions.of(product([formula.dims[each] for each in found.rows]), PRODUCT + 1)
    length = expressions.of(formula.dims[along], PRODUCT + 1)
    start = literal(identity(node.op, kind), kind)
    type_name = NAMES[kind.name]
    scope.used[parts.name] = None
    inner = Text(depth=2)
    inner(f"const long long {begin}_part = ({length} + kParts - 1) / kParts * blockIdx.y;")
    inner(f"const long long {end} = min({begin}_part + ({length} + kParts - 1) / kParts, {length});")
    inner(f"{type_name} {carry} = {start};")
    value = expressions.of(found.body, wanted=kind)
    if not last:
        scope.stored[parts.name] = None
        head = f"for (long long {along} = {begin}_part + threadIdx.x; {along} < {end}; {along} += {THREADS})"
        with inner.block(head):
            for line in combined(scope, node, carry, value, kind, kind):
                inner(line)
        inner(f"{carry} = row_{node.op}<{THREADS}>({carry});")
        inner(f"if (threadIdx.x == 0) {parts.name}[blockIdx.y * {rows} + {row}] = {carry};")
    else:
        with inner.block("if constexpr (kParts > 1)"):
            with inner.block(f"for (int part = threadIdx.x; part < static_cast<int>(blockIdx.y); part += {THREADS})"):
                for line in combined(scope, node, carry, f"{parts.name}[part * {rows} + {row}]", kind, kind):
                    inner(line)
            inner(f"{carry} = row_{node.op}<{THREADS}>({carry});")
        tile = f"{THREADS} * {ITEMS}"
        with inner.block(f"for (long long {begin} = {begin}_part; {begin} < {end}; {begin} += {tile})"):
            inner(f"const long long {first} = {begin} + threadIdx.x * {ITEMS};")
            inner(f"{type_name} values[{ITEMS}];")
            inner(f"{type_name} total = {start};")
            each = f"for (int {item} = 0; {item} < {ITEMS}; ++{item})"
            inner("#pragma unroll")
            with inner.block(each):
                inner(f"const long long {along} = {first} + {item};")
                if not node.ranges[0].closed:
                    inner(f"values[{item}] = total;")
                with inner.block(f"if ({along} < {end})"):
                    for line in combined(scope, node, "total", value, kind, kind):
                        inner(line)
                if node.ranges[0].closed:
                    inner(f"values[{item}] = total;")
            inner(f"{type_name} before = running_{node.op}<{THREADS}, {type_name}>({start}, total);")
            for line in combined(scope, node, "before", carry, kind, kind):
                inner(line)
            inner("#pragma unroll")
            with inner.block(each):
                inner(f"const long long {along} = {first} + {item};")
                inner(f"if ({along} >= {end}) break;")
                own = scope.free(f"{found.stage.name}_{node.op}")
                inner(f"{type_name} {own} = before;")
                for line in combined(scope, node, own, f"values[{item}]", kind, kind):
                    inner(line)
                scope.locals[found.stage.name] = (own, kind)
                stores = [(found.stage, own)]
                for stage in found.after:
                    kind_after = computed(TYPES[stage.type])
                    result = scope.free(f"{stage.name}_value")
                    value_after = expressions.held(stage.value, TYPES[stage.type])
                    inner(f"const {NAMES[kind_after.name]} {result} = {value_after};")
                    scope.locals[stage.name] = (result, kind_after)
                    stores.append((stage, result))
                for stage, result in stores:
                    if not stage.temporary or stage.name in kept:
                        store(inner, scope, stage, result)
            for line in combined(scope, node, carry, "total", kind, kind):
                inner(line)
    body = Text(depth=1)
    with body.block(f"for (long long {row} = blockIdx.x; {row} < {rows}; {row} += gridDim.x)"):
        for place, dim in enumerate(found.rows):
            if len(found.rows) > 1 and re.search(rf"\b{dim}\b", str(inner)):
                behind = product([formula.dims[each] for each in found.rows[place + 1 :]])
                whole = row if behind == Num(1) else f"{row} / {expressions.of(behind, PRODUCT + 1)}"
                wrap = f" % {expressions.of(formula.dims[dim], PRODUCT + 1)}" if place else ""
                body(f"const long long {dim} = {whole}{wrap};")
        body.lines += inner.lines
    texts, parameters = scope.parameters("long long")
    head_lines = ["template <int kParts>"]
    head_lines += listed(texts, f"__global__ void __launch_bounds__({THREADS}) {name}(", ") {")
    types = {scope.type_named(each).name for each in scope.used if each in scope.tensors}
    text = "\n".join([*head_lines, *body.lines, "}"])
    return Kernel(
        name, text, parameters, False, "long long", frozenset(expressions.helpers), frozenset(types | expressions.types)
    )
