"""Reductions over segments, `y[r] = sum[first[r] <= e < first[r + 1]] x[e]`: sparse matrices by rows, graphs. Threads
share a segment, or each has columns of the result of its own."""

from __future__ import annotations

from dataclasses import dataclass, field

from warpwright.formulas.bounds import Polynomial, from_memory, polynomial
from warpwright.formulas.model import Formula, Stage
from warpwright.formulas.normal import identity
from warpwright.formulas.tree import Call, Expr, Load, Num, Range, Reduce, product, walk
from warpwright.formulas.types import TYPES, ElementType, computed
from warpwright.schedules.access import along, varies
from warpwright.schedules.model import Segments
from warpwright.writer.code import MOST_INDEX, Kernel, Launch, Path, ceiling
from warpwright.writer.expressions import PRODUCT
from warpwright.writer.partition import Group
from warpwright.writer.places import base_expression, coordinates, inner_loads, packed, unique
from warpwright.writer.pointwise import combined, reach, store
from warpwright.writer.scope import Scope
from warpwright.writer.text import Text
from warpwright.writer.types import NAMES, literal

THREADS = 256
LANES = ((2, 8), (4, 16), (8, 32), (16, 64), (32, 2048), (THREADS, 0))
"""How many threads share a segment, and up to which mean length: some elements each, so that loads overlap."""


@dataclass(frozen=True)
class Segmented:
    """Reductions over segments of the same dimension, and what is computed of them. `cols` are the dimensions of the
    result along which every array runs that depends on them; none where threads share a segment."""

    dims: tuple[str, ...]
    over: str
    stages: tuple[Stage, ...]
    kept: frozenset[str]
    cols: tuple[str, ...]

    @property
    def results(self) -> tuple[Stage, ...]:
        """The stages that are kept in memory."""
        return tuple(each for each in self.stages if not each.temporary or each.name in self.kept)


def segmented_of(formula: Formula, group: Group) -> Segmented | str:
    """The segments that a group reduces, or why it does not."""
    reductions = [each for each in group.stages if isinstance(each.value, Reduce)]
    if group.is_scatter or not reductions or not group.dims:
        return "Nothing is reduced."
    over = ""
    for stage in reductions:
        only = _range(stage)
        if only is None or only.lower is None or only.upper is None:
            return f"{stage.name} is not reduced over segments."
        if not (from_memory(only.lower) and from_memory(only.upper)) or (over and not _same(formula, over, only.name)):
            return f"{stage.name} is not reduced over segments."
        over = over or only.name
    if any(TYPES[each.type].kind == "complex" or each.primed for each in group.stages):
        return "Its values are not brought together from lanes."
    cols = _columns(formula, group, reductions)
    return Segmented(group.dims, over, group.stages, group.kept, cols)


def _range(stage: Stage) -> Range | None:
    assert isinstance(stage.value, Reduce)
    return stage.value.ranges[0] if len(stage.value.ranges) == 1 else None


def _same(formula: Formula, one: str, other: str) -> bool:
    return polynomial(formula.dims[one]) == polynomial(formula.dims[other])


def _columns(formula: Formula, group: Group, reductions: list[Stage]) -> tuple[str, ...]:
    """The last dimensions of the result that no segment depends on and that arrays run along."""
    scope = Scope(formula)
    own = {each.name for each in group.stages}
    loads = [n for each in group.stages for n in walk(each.value) if isinstance(n, Load) and n.tensor not in own]
    stored = [Load(each.name, each.own_index) for each in group.stages if not each.temporary or each.name in group.kept]
    if any(isinstance(each.value, Reduce) and each.value.op.startswith("arg") for each in reductions):
        return ()
    for first in range(1, len(group.dims)):
        cols = group.dims[first:]
        ends = [end for each in reductions for end in _ends(each)]
        moving = [*(n for n in loads if varies(n.index, cols)), *stored]
        if not varies(ends, cols) and all(_along(scope, n, cols) is not None for n in moving):
            return cols
    return ()


def _ends(stage: Stage) -> list[Expr]:
    only = _range(stage)
    return [] if only is None else [each for each in (only.lower, only.upper) if each is not None]


def _along(scope: Scope, load: Load, cols: tuple[str, ...]) -> Polynomial | None:
    return along(scope.tensors[load.tensor], load, cols, scope.formula.dims)


@dataclass
class _Text:
    """One kernel being written; `moved` are the arrays of which packs are read or written."""

    formula: Formula
    found: Segmented
    scope: Scope = field(init=False)
    moved: list[tuple[str, str, Polynomial]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scope = Scope(self.formula)
        self.scope.index_type = "Index"
        self.element = self.scope.free("k", "m", "element")
        found = self.found
        self.rows = found.dims[: len(found.dims) - len(found.cols)]
        free = self.scope.free
        self.row = self.rows[0] if len(self.rows) == 1 else free("row")
        self.column, self.lane = free("column"), free("lane")

    def extent(self, dims: tuple[str, ...], least: int = PRODUCT) -> str:
        return self.scope.expressions.of(product([self.formula.dims[each] for each in dims]), least)

    def kernel(self, name: str) -> Kernel:
        """A template over the type of indices and the threads of a segment, or the width of packs."""
        scope, found = self.scope, self.found
        inner = Text(depth=1)
        for stage in found.stages:
            if isinstance(stage.value, Reduce):
                self._reduced(inner, stage, stage.value)
        self._results(inner)
        body = Text(depth=1)
        rows = self.extent(self.rows)
        thread = scope.free("thread")
        body(f"const Index {thread} = static_cast<Index>(blockIdx.x) * {THREADS} + threadIdx.x;")
        if found.cols:
            columns = f"({self.extent(found.cols)} / kVector)"
            body(f"const Index {self.row} = {thread} / {columns};")
            body(f"if ({self.row} >= {rows}) return;")
            body(f"const Index {self.column} = {thread} % {columns} * kVector;")
        else:
            # All lanes of a warp take part in what they share.
            body(f"const bool is_row = {thread} / kLanes < {rows};")
            body(f"const Index {self.row} = is_row ? {thread} / kLanes : {rows} - 1;")
            body(f"const int {self.lane} = threadIdx.x % kLanes;")
        if len(self.rows) > 1:
            body.add(coordinates(scope.expressions, self.rows, self.formula.dims, self.row, str(inner)))
        body.lines += inner.lines
        if found.cols:
            width, said = "kVector", "// Each thread has kVector columns of a segment's result."
        else:
            width, said = "kLanes", "// kLanes threads share a segment."
        return scope.kernel(name, THREADS, body.lines, f"typename Index, int {width}", said=said)

    def _reduced(self, body: Text, stage: Stage, node: Reduce) -> None:
        scope, expressions, only = self.scope, self.scope.expressions, node.ranges[0]
        kind = TYPES[node.accumulate] if node.accumulate else computed(TYPES[stage.type])
        of_body = expressions.type_of(node.body)
        is_place = node.op.startswith("arg")
        inside = stage.temporary and stage.name not in self.found.kept
        name = stage.name if inside else scope.free(f"{stage.name}_{node.op}")
        start = literal(identity(node.op, of_body), of_body) if is_place else expressions.nothing(node, kind)
        assert only.lower is not None and only.upper is not None
        lower, upper = expressions.of(only.lower), expressions.of(only.upper)
        sign = "<=" if only.closed else "<"
        end = scope.free(f"{stage.name}_end")
        target = name
        if self.found.cols:
            target = f"{name}[{self.element}]"
            body(f"{NAMES[kind.name]} {name}[kVector];")
            self._each(body, [f"{target} = {start};"])
        elif is_place:
            body(f"{NAMES[of_body.name]} {name}_best = {start};")
            body(f"long long {name} = 0;")
        else:
            body(f"{NAMES[kind.name]} {name} = {start};")
        body(f"const Index {end} = {upper};")
        begin, step = (lower, f"++{only.name}")
        if not self.found.cols:
            begin, step = f"{expressions.of(only.lower, PRODUCT)} + {self.lane}", f"{only.name} += kLanes"
        body("#pragma unroll 4")
        with body.block(f"for (Index {only.name} = {begin}; {only.name} {sign} {end}; {step})"):
            self._packs(body, [node.body])
            value = expressions.of(node.body, wanted=of_body if is_place else kind)
            lines = combined(scope, node, target, value, of_body, kind)
            if self.found.cols:
                self._each(body, lines)
            else:
                body.add(lines)
        if not self.found.cols:
            helper = f"row_{node.op}"
            expressions.helpers.add(helper)
            body(f"{helper}<kLanes>({name}_best, {name});" if is_place else f"{name} = {helper}<kLanes>({name});")
        self._hold(stage, target, TYPES["i64"] if is_place else kind)

    def _hold(self, stage: Stage, text: str, kind: ElementType) -> None:
        """What reads the stage at its own element has the variable."""
        self.scope.places[Load(stage.name, stage.own_index)] = (text, kind)

    def _packs(self, body: Text, values: list[Expr]) -> None:
        """Packs of what expressions read along the columns."""
        scope, found = self.scope, self.found
        named: dict[str, str] = {}
        for load in dict.fromkeys(n for value in values for n in walk(value) if isinstance(n, Load)):
            if load in scope.places or not found.cols or not varies(load.index, found.cols):
                continue
            scope.read_pack(body, load, self._place(load), named, self.element)

    def _place(self, load: Load) -> str:
        scope, found = self.scope, self.found
        tensor, base = scope.tensors[load.tensor], _along(scope, load, found.cols)
        assert base is not None
        scope.used[tensor.array] = None
        self.moved.append((tensor.array, tensor.type, base))
        length = product([self.formula.dims[each] for each in found.cols])
        at = base_expression(base, self.rows, self.row, self.formula.dims, length, inner_loads(load))
        return scope.behind(tensor.array, at, self.column)

    def _each(self, body: Text, lines: list[str]) -> None:
        """Lines for each element of a pack."""
        with body.unrolled(self.element, "kVector"):
            flat = f"({self.column} + {self.element})"
            text = "\n".join(lines)
            body.add(coordinates(self.scope.expressions, self.found.cols, self.formula.dims, flat, text))
            body.add(lines)

    def _results(self, body: Text) -> None:
        """What is computed of the reductions, and the stores."""
        scope, found = self.scope, self.found
        inner = Text(depth=0)
        self._packs(body, [each.value for each in found.stages if not isinstance(each.value, Reduce)])
        for stage in found.stages:
            if isinstance(stage.value, Reduce):
                continue
            kind = computed(TYPES[stage.type])
            name = scope.free(f"{stage.name}_value")
            inner(f"const {NAMES[kind.name]} {name} = {scope.expressions.held(stage.value, TYPES[stage.type])};")
            self._hold(stage, name, kind)
        if not found.cols:
            with body.block(f"if (is_row && {self.lane} == 0)"):
                body.add(inner.lines)
                for stage in found.results:
                    held = scope.places[Load(stage.name, stage.own_index)]
                    store(body, scope, stage, held[0])
            return
        behind: list[str] = []
        for stage in found.results:
            load, kind = Load(stage.name, stage.own_index), TYPES[stage.type]
            text, own = scope.places[load]
            pack = scope.free(f"{scope.tensors[stage.name].array}_result")
            body(f"Pack<{NAMES[kind.name]}, kVector> {pack};")
            inner(f"{pack}.at[{self.element}] = {scope.expressions.written(kind, text, own)};")
            scope.stored[scope.tensors[stage.name].array] = None
            scope.expressions.helpers.add("store_pack")
            behind.append(f"store_pack({self._place(load)}, {pack});")
        self._each(body, inner.lines)
        body.add(behind)


def segments(formula: Formula, group: Group, name: str, wanted: Segments | None) -> tuple[Kernel, list[Path]] | str:
    """The kernel of a group, and the paths on which it is taken; or why it has none."""
    found = segmented_of(formula, group)
    if isinstance(found, str):
        return found
    text = _Text(formula, found)
    kernel = text.kernel(name)
    rows = product([formula.dims[each] for each in text.rows])
    count = product([formula.dims[each] for each in found.dims])
    arrays = text.scope.touched()
    small: list[Expr] = [Call("<=", (reach(each), Num(MOST_INDEX))) for each in arrays]
    if found.cols:
        return kernel, _column_paths(text, kernel, count, small)
    length = formula.dims[found.over]
    paths: list[Path] = []
    for lanes, mean in LANES if wanted is None else ((wanted.lanes, 0),):
        fits = [Call("<=", (length, Call("*", (Num(mean), rows))))] if mean else []
        ends = Call("<=", (Call("*", (rows, Num(lanes))), Num(MOST_INDEX - THREADS)))
        grid = ceiling(rows, THREADS // lanes)
        launch = Launch(kernel.name, (grid, Num(1), Num(1)), (THREADS, 1, 1), "int", template=("int", str(lanes)))
        said = f"Segments have up to {mean} elements on average." if mean else ""
        paths.append(Path((launch,), unique((*fits, ends, *small)), reason=said, schedule=Segments(lanes)))
    return kernel, paths


def _column_paths(text: _Text, kernel: Kernel, count: Expr, small: list[Expr]) -> list[Path]:
    sizes = [max(1, TYPES[kind].bits // 8) for _, kind, _ in text.moved]
    most = max(1, min(16 // min(sizes), 32 // max(sizes)))
    columns = product([text.formula.dims[each] for each in text.found.cols])
    paths: list[Path] = []
    for vector in dict.fromkeys((most, 1)):
        fits = packed(text.moved, [columns], text.formula.sizes, vector)
        if fits is None:
            continue
        conditions, aligned = fits
        ends = Call("<=", (count, Num(MOST_INDEX - THREADS * vector)))
        grid = (ceiling(count, THREADS * vector), Num(1), Num(1))
        launch = Launch(kernel.name, grid, (THREADS, 1, 1), "int", template=("int", str(vector)))
        said = "Rows are made of whole packs." if vector > 1 else ""
        paths.append(Path((launch,), unique((*conditions, ends, *small)), aligned, said))
    return paths
