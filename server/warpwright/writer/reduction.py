"""Reductions of much to little: blocks share what is reduced, and a second launch brings their results together. The
result does not hang on the order in which blocks end."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from warpwright.formulas.bounds import Polynomial, polynomial
from warpwright.formulas.model import Formula, Stage, Tensor
from warpwright.formulas.normal import identity
from warpwright.formulas.tree import Call, Expr, Load, Num, Reduce, product, walk
from warpwright.formulas.types import TYPES, ElementType, computed
from warpwright.schedules.access import along, varies
from warpwright.schedules.model import Columns
from warpwright.writer.code import MOST_INDEX, Kernel, Launch, Path, ceiling
from warpwright.writer.expressions import PRODUCT
from warpwright.writer.places import base_expression, divisible, inner_loads, unique
from warpwright.writer.pointwise import combined, store
from warpwright.writer.scope import Scope
from warpwright.writer.text import Text, listed
from warpwright.writer.types import NAMES, literal, read

THREADS = 256
"""Of a block that reduces to one result, and of one of the second launch."""
LEAST = 4096
"""Elements below which one thread for each result is as fast."""


@dataclass(frozen=True)
class Round:
    """Reductions over the same dimensions that read no result of each other, and what is computed of their results.
    `cols` are the dimensions that packs lie along: the last ones of the result, or, where `inner`, of what is reduced.
    """

    dims: tuple[str, ...]
    over: tuple[str, ...]
    reductions: tuple[Stage, ...]
    after: tuple[Stage, ...]
    cols: tuple[str, ...]
    inner: bool


@dataclass(frozen=True)
class Reduced:
    """Kernels, the paths of a step and the arrays between its launches."""

    kernels: tuple[Kernel, ...]
    paths: tuple[Path, ...]
    temporaries: tuple[Tensor, ...]


def rounds(formula: Formula, stages: Sequence[Stage]) -> tuple[Round, ...] | str:
    """The stages of a group as rounds, one after the other; or why they are none."""
    found: list[Round] = []
    pending: list[Stage] = []
    after: list[Stage] = []

    def close() -> str:
        if not pending:
            return "A result stands before all reductions."
        made = _round(formula, pending, after)
        if isinstance(made, str):
            return made
        found.append(made)
        pending.clear()
        after.clear()
        return ""

    for stage in stages:
        reads = {n.tensor for n in walk(stage.value) if isinstance(n, Load)}
        is_reduction = isinstance(stage.value, Reduce)
        if (
            is_reduction
            and pending
            and (after or reads & {each.name for each in pending} or not _same_ranges(formula, pending[0], stage))
            and (reason := close())
        ):
            return reason
        (pending if is_reduction else after).append(stage)
    return close() or tuple(found)


def _same_ranges(formula: Formula, one: Stage, other: Stage) -> bool:
    def extents(stage: Stage) -> list[tuple[str, Polynomial | None]]:
        assert isinstance(stage.value, Reduce)
        return [(each.name, polynomial(formula.dims[each.name])) for each in stage.value.ranges]

    return extents(one) == extents(other)


def _round(formula: Formula, pending: list[Stage], after: list[Stage]) -> Round | str:
    first = pending[0].value
    assert isinstance(first, Reduce)
    dims, over = pending[0].dims, tuple(each.name for each in first.ranges)
    for stage in pending:
        assert isinstance(stage.value, Reduce)
        if any(each.lower is not None or each.upper is not None for each in stage.value.ranges):
            return f"{stage.name} is reduced over a part of a dimension."
        if TYPES[stage.type].kind == "complex" or stage.primed or stage.combine:
            return f"{stage.name} is not brought together from parts."
    scope = Scope(replace(formula, stages=(*formula.stages,)))
    loads = [n for s in pending for n in walk(s.value) if isinstance(n, Load) and varies(n.index, (*dims, *over))]
    arrays = [n for n in loads if varies(n.index, over)]
    for inner, own in ((True, over), (False, dims)):
        for start in range(len(own)):
            cols = own[start:]
            runs = [along(scope.tensors[n.tensor], n, cols, formula.dims) is not None for n in arrays]
            moving = [
                along(scope.tensors[n.tensor], n, cols, formula.dims) is not None
                for n in loads
                if varies(n.index, cols)
            ]
            # What blocks share along their own elements may be gathered beside; lanes along results read packs alone.
            if arrays and any(runs) and (inner or all(moving)):
                places = any(isinstance(s.value, Reduce) and s.value.op.startswith("arg") for s in pending)
                if places and not inner:
                    return "Places are brought together along what is reduced alone."
                return Round(dims, over, tuple(pending), tuple(after), cols, inner)
    return "No array runs along a dimension."


def reduced(formula: Formula, found: Round, kept: frozenset[str], name: str, schedule: Columns) -> Reduced:
    """The two kernels of a round, and the paths that launch them where enough is reduced."""
    results = product([formula.dims[each] for each in found.dims])
    partials: list[Tensor] = []
    for stage in found.reductions:
        for suffix, kind in _parts_of(formula, stage):
            extents = (Num(schedule.split), *(formula.dims[each] for each in found.dims))
            partials.append(Tensor(f"{stage.name}_{suffix}", kind, extents, "out"))
    wide = replace(formula, tensors={**formula.tensors, **{each.name: each for each in partials}})
    writer = _Parts(wide, found, schedule, results)
    first = writer.write(f"{name}_parts")
    last = _finish(wide, found, kept, f"{name}_whole", schedule, results)
    paths = _paths(writer, first, last, schedule)
    return Reduced((first, last), tuple(paths), tuple(partials))


def _parts_of(formula: Formula, stage: Stage) -> list[tuple[str, str]]:
    node = stage.value
    assert isinstance(node, Reduce)
    if node.op.startswith("arg"):
        return [("best_parts", Scope(formula).expressions.type_of(node.body).name), ("parts", "i64")]
    return [("parts", node.accumulate or computed(TYPES[stage.type]).name)]


@dataclass
class _Parts:
    """The first kernel being written: what each block reduces."""

    formula: Formula
    round: Round
    schedule: Columns
    results: Expr
    moved: list[tuple[str, str, Polynomial]] = field(default_factory=list)
    scope: Scope = field(init=False)

    def __post_init__(self) -> None:
        self.scope = Scope(self.formula)
        self.scope.index_type = "Index"
        dims = self.formula.dims
        taken = {*dims, *self.scope.tensors, *self.formula.scalars, *self.formula.sizes}
        self.element = next(n for n in ("j", "k", "m", "j_") if n not in taken)
        self.first, self.at = self.scope.free("first"), self.scope.free("at")
        self.column, self.result = self.scope.free("column"), self.scope.free("result")
        self.total = product([dims[each] for each in self.round.over])
        self.length = product([dims[each] for each in self.round.cols])

    def factor(self, node: Expr) -> str:
        return self.scope.expressions.of(node, PRODUCT + 1)

    def write(self, name: str) -> Kernel:
        """A template over the type of indices and the width of packs."""
        scope, found = self.scope, self.round
        loop, inner = Text(depth=2), Text(depth=3)
        own = {each.name for each in found.reductions}
        packs: dict[str, str] = {}
        for stage in found.reductions:
            for load in (n for n in walk(stage.value) if isinstance(n, Load) and n.tensor not in own):
                if load in scope.places or not varies(load.index, found.cols):
                    continue
                tensor = scope.tensors[load.tensor]
                base = along(tensor, load, found.cols, self.formula.dims)
                if base is None:
                    continue
                at = base_expression(base, (), "", self.formula.dims, Num(0), inner_loads(load))
                before = "" if at == Num(0) else f"{scope.expressions.of(at, PRODUCT)} + "
                text = f"{tensor.array} + {before}{self.column}"
                if text not in packs:
                    packs[text] = scope.free(f"{tensor.array}_pack")
                    while list(packs.values()).count(packs[text]) > 1:
                        packs[text] += "_"
                    scope.used[tensor.array] = None
                    scope.expressions.helpers.add("load_pack")
                    self.moved.append((tensor.array, tensor.type, base))
                    loop(f"const Pack<{NAMES[tensor.type]}, kVector> {packs[text]} = load_pack<kVector>({text});")
                scope.places[load] = (
                    read(TYPES[tensor.type], f"{packs[text]}.at[{self.element}]"),
                    computed(TYPES[tensor.type]),
                )
        for stage in found.reductions:
            node, of_body, kind = self._kinds(stage)
            is_place = node.op.startswith("arg")
            value = scope.expressions.of(node.body, wanted=of_body if is_place else kind)
            target = stage.name if found.inner else f"{stage.name}[{self.element}]"
            lines = combined(scope, node, self._local(target), value, of_body, kind)
            for line in lines:
                inner(line)
        body = self._inner(loop, inner) if found.inner else self._columns(loop, inner)
        texts, parameters = scope.parameters("Index")
        threads = THREADS if found.inner else 32 * self.schedule.warps
        head = ["template <typename Index, int kVector>"]
        head += listed(texts, f"__global__ void __launch_bounds__({threads}) {name}(", ") {")
        types = {scope.type_named(each).name for each in scope.used if each in scope.tensors}
        text = "\n".join([*head, *body.lines, "}"])
        helpers = frozenset(scope.expressions.helpers | {"Pack"})
        return Kernel(name, text, parameters, True, "long long", helpers, frozenset(types | scope.expressions.types))

    def _local(self, name: str) -> str:
        base, bracket, rest = name.partition("[")
        own = base if base not in self.formula.tensors else f"{base}_part"
        return f"{own}{bracket}{rest}"

    def _kinds(self, stage: Stage) -> tuple[Reduce, ElementType, ElementType]:
        node = stage.value
        assert isinstance(node, Reduce)
        kind = TYPES[node.accumulate] if node.accumulate else computed(TYPES[stage.type])
        return node, self.scope.expressions.type_of(node.body), kind

    def _coordinates(
        self, body: Text, dims: tuple[str, ...], flat: str, text: str, names: set[str] | None = None
    ) -> None:
        """The dimensions that a text names, of a flat index over all of them."""
        for place, dim in enumerate(dims):
            if not re.search(rf"\b{dim}\b", text) or (names is not None and dim not in names):
                continue
            behind = product([self.formula.dims[each] for each in dims[place + 1 :]])
            whole = flat if behind == Num(1) else f"{flat} / {self.factor(behind)}"
            body(f"const Index {dim} = {whole}{f' % {self.factor(self.formula.dims[dim])}' if place else ''};")

    def _elements(self, body: Text, loop: Text, inner: Text, cols: tuple[str, ...]) -> None:
        lift = "    " * (body.depth - 2)
        body.lines += [f"{lift}{line}" for line in loop.lines]
        body("#pragma unroll")
        with body.block(f"for (int {self.element} = 0; {self.element} < kVector; ++{self.element})"):
            text = str(inner)
            at = f"({self.column} + {self.element})"
            for place in range(len(cols) - 1, -1, -1):
                if re.search(rf"\b{cols[place]}\b", text):
                    behind = product([self.formula.dims[each] for each in cols[place + 1 :]])
                    whole = at if behind == Num(1) else f"{at} / {self.factor(behind)}"
                    wrap = f" % {self.factor(self.formula.dims[cols[place]])}" if place else ""
                    body(f"const Index {cols[place]} = {whole}{wrap};")
            body.lines += [f"{lift}{line}" for line in inner.lines]

    def _inner(self, loop: Text, inner: Text) -> Text:
        """A block for each result and part of what is reduced."""
        scope, found, body = self.scope, self.round, Text(depth=1)
        text = f"{loop}\n{inner}"
        body("// Blocks along y share what is reduced to one result; the second kernel brings their parts together.")
        split = self.schedule.split
        if found.dims:
            body(f"const Index {self.result} = blockIdx.x;")
            self._coordinates(body, found.dims, self.result, text)
        for stage in found.reductions:
            node, of_body, kind = self._kinds(stage)
            name = self._local(stage.name)
            if node.op.startswith("arg"):
                body(f"{NAMES[of_body.name]} {name}_best = {literal(identity(node.op, of_body), of_body)};")
                body(f"long long {name} = 0;")
            else:
                body(f"{NAMES[kind.name]} {name} = {self.scope.expressions.nothing(node, kind)};")
        begin = f"(static_cast<Index>(blockIdx.y) * {THREADS} + threadIdx.x) * kVector"
        total = scope.expressions.of(self.total, PRODUCT)
        body("#pragma unroll 4")
        step = f"{split * THREADS} * kVector"
        outer = found.over[: -len(found.cols)]
        flat = self.first if outer else self.column
        with body.block(f"for (Index {flat} = {begin}; {flat} < {total}; {flat} += {step})"):
            if outer:
                row = self.scope.free("outer")
                if any(re.search(rf"\b{each}\b", text) for each in outer):
                    body(f"const Index {row} = {self.first} / {self.factor(self.length)};")
                    self._coordinates(body, outer, row, text)
                body(f"const Index {self.column} = {self.first} % {self.factor(self.length)};")
            self._elements(body, loop, inner, found.cols)
        lines: list[str] = []
        place = f"blockIdx.y * {self.factor(self.results)} + {self.result}" if found.dims else "blockIdx.y"
        for stage in found.reductions:
            node, _, _ = self._kinds(stage)
            name = self._local(stage.name)
            helper = f"row_{node.op}"
            scope.expressions.helpers.add(helper)
            parts = [f"{stage.name}_{suffix}" for suffix, _ in _parts_of(self.formula, stage)]
            for each in parts:
                scope.used[each] = scope.stored[each] = None
            if len(parts) == 2:
                body(f"{helper}<{THREADS}>({name}_best, {name});")
                lines.append(f"{parts[0]}[{place}] = {name}_best;")
            else:
                body(f"{name} = {helper}<{THREADS}>({name});")
            lines.append(f"{parts[-1]}[{place}] = {name};")
        with body.block("if (threadIdx.x == 0)"):
            for line in lines:
                body(line)
        return body

    def _columns(self, loop: Text, inner: Text) -> Text:
        """Lanes run along the results, warps and blocks share what is reduced."""
        scope, found, body = self.scope, self.round, Text(depth=1)
        text = f"{loop}\n{inner}"
        warps = self.schedule.warps
        body("// Lanes run along the results. Warps and blocks along y share what is reduced.")
        body("const int lane = threadIdx.x % 32;")
        body("const int warp = threadIdx.x / 32;")
        outer = found.dims[: -len(found.cols)]
        flat = self.first if outer else self.column
        body(f"const Index {flat} = (static_cast<Index>(blockIdx.x) * 32 + lane) * kVector;")
        if outer:
            row = scope.free("outer")
            if any(re.search(rf"\b{each}\b", text) for each in outer):
                body(f"const Index {row} = {self.first} / {self.factor(self.length)};")
                self._coordinates(body, outer, row, text)
            body(f"const Index {self.column} = {self.first} % {self.factor(self.length)};")
        for stage in found.reductions:
            node, _, kind = self._kinds(stage)
            start = self.scope.expressions.nothing(node, kind)
            body(f"{NAMES[kind.name]} {self._local(stage.name)}[kVector];")
            each = f"for (int {self.element} = 0; {self.element} < kVector; ++{self.element})"
            body("#pragma unroll")
            body(f"{each} {self._local(stage.name)}[{self.element}] = {start};")
        results = self.factor(self.results)
        with body.block(f"if ({flat} < {results})"):
            single = len(found.over) == 1
            at = found.over[0] if single else self.at
            body("#pragma unroll 4")
            step = f"{warps * self.schedule.split}"
            total = scope.expressions.of(self.total, PRODUCT)
            begin = f"static_cast<Index>(blockIdx.y) * {warps} + warp"
            with body.block(f"for (Index {at} = {begin}; {at} < {total}; {at} += {step})"):
                if not single:
                    self._coordinates(body, found.over, at, text)
                self._elements(body, loop, inner, found.cols)
        each = f"for (int {self.element} = 0; {self.element} < kVector; ++{self.element})"
        body()
        lines: list[str] = []
        for stage in found.reductions:
            node, _, kind = self._kinds(stage)
            shared = scope.free(f"{stage.name}_warps")
            body(f"__shared__ {NAMES[kind.name]} {shared}[{warps}][32 * kVector];")
            body("#pragma unroll")
            body(f"{each} {shared}[warp][lane * kVector + {self.element}] = {self._local(stage.name)}[{self.element}];")
            part = f"{stage.name}_parts"
            scope.used[part] = scope.stored[part] = None
            total = scope.free(f"{stage.name}_total")
            lines.append(f"{NAMES[kind.name]} {total} = {shared}[0][threadIdx.x];")
            lines.append("#pragma unroll")
            joined = combined(scope, node, total, f"{shared}[other][threadIdx.x]", kind, kind)
            lines.append(f"for (int other = 1; other < {warps}; ++other) {joined[0]}")
            lines.append(f"{part}[static_cast<Index>(blockIdx.y) * {results} + own] = {total};")
        body("__syncthreads();")
        body("const Index own = static_cast<Index>(blockIdx.x) * 32 * kVector + threadIdx.x;")
        with body.block(f"if (threadIdx.x < 32 * kVector && own < {results})"):
            for line in lines:
                body(line)
        return body


def _finish(
    formula: Formula, found: Round, kept: frozenset[str], name: str, schedule: Columns, results: Expr
) -> Kernel:
    """The second kernel: kLanes threads for each result."""
    scope = Scope(formula)
    scope.index_type = "Index"
    body = Text(depth=1)
    taken = {*formula.dims, *scope.tensors, *formula.scalars, *formula.sizes}
    part = next(n for n in ("part", "part_") if n not in taken)
    result = scope.free("result")
    count = scope.expressions.of(results, PRODUCT + 1)
    if found.dims:
        body("// kLanes threads share a result. All stay for the shuffles; those beyond the last one repeat it.")
        body("const int lane = threadIdx.x % kLanes;")
        body(f"const Index wanted = (static_cast<Index>(blockIdx.x) * {THREADS} + threadIdx.x) / kLanes;")
        body(f"const bool is_result = wanted < {count};")
        body(f"const Index {result} = is_result ? wanted : {count} - 1;")
    else:
        body("const int lane = threadIdx.x;")
    after = Text(depth=1)
    for stage in found.reductions:
        node = stage.value
        assert isinstance(node, Reduce)
        is_place = node.op.startswith("arg")
        of_body = scope.expressions.type_of(node.body)
        kind = TYPES[node.accumulate] if node.accumulate else computed(TYPES[stage.type])
        parts = [f"{stage.name}_{suffix}" for suffix, _ in _parts_of(formula, stage)]
        for each in parts:
            scope.used[each] = None
        own = stage.name if stage.temporary and stage.name not in kept else scope.free(f"{stage.name}_{node.op}")
        at = f"static_cast<Index>({part}) * {count} + {result}" if found.dims else part
        helper = f"row_{node.op}"
        scope.expressions.helpers.add(helper)
        if is_place:
            after(f"{NAMES[of_body.name]} {own}_best = {literal(identity(node.op, of_body), of_body)};")
            after(f"long long {own} = LLONG_MAX;  // of equal values the lowest place wins")
            sign = ">" if node.op == "argmax" else "<"
            with after.block(f"for (int {part} = lane; {part} < {schedule.split}; {part} += kLanes)"):
                after(f"const {NAMES[of_body.name]} other = {parts[0]}[{at}];")
                after(f"const long long other_place = {parts[1]}[{at}];")
                best = f"{own}_best"
                nan = f"other != other && {best} == {best} || " if of_body.is_float else ""
                same = f"(other == {best} || (other != other && {best} != {best})) && other_place < {own}"
                nan = nan and f"({nan.removesuffix(' || ')}) || "
                with after.block(f"if (other {sign} {best} || {nan}({same}))"):
                    after(f"{best} = other;")
                    after(f"{own} = other_place;")
            after(f"{helper}<kLanes>({own}_best, {own});")
            kind = TYPES["i64"]
        else:
            after(f"{NAMES[kind.name]} {own} = {scope.expressions.nothing(node, kind)};")
            with after.block(f"for (int {part} = lane; {part} < {schedule.split}; {part} += kLanes)"):
                for line in combined(scope, node, own, f"{parts[0]}[{at}]", kind, kind):
                    after(line)
            after(f"{own} = {helper}<kLanes>({own});")
        scope.locals[stage.name] = (own, kind)
    stores: list[tuple[Stage, str]] = [
        (each, scope.locals[each.name][0]) for each in found.reductions if not each.temporary or each.name in kept
    ]
    for stage in found.after:
        kind = computed(TYPES[stage.type])
        own = stage.name if stage.temporary and stage.name not in kept else scope.free(f"{stage.name}_value")
        after(f"const {NAMES[kind.name]} {own} = {scope.expressions.held(stage.value, TYPES[stage.type])};")
        scope.locals[stage.name] = (own, kind)
        if not stage.temporary or stage.name in kept:
            stores.append((stage, own))
    with after.block("if (lane == 0 && is_result)" if found.dims else "if (lane == 0)"):
        for stage, value in stores:
            store(after, scope, stage, value)
    coordinates = Text(depth=1)
    for place, dim in enumerate(found.dims):
        if re.search(rf"\b{dim}\b", str(after)):
            behind = product([formula.dims[each] for each in found.dims[place + 1 :]])
            whole = result if behind == Num(1) else f"{result} / {scope.expressions.of(behind, PRODUCT + 1)}"
            wrap = f" % {scope.expressions.of(formula.dims[dim], PRODUCT + 1)}" if place else ""
            coordinates(f"const Index {dim} = {whole}{wrap};")
    texts, parameters = scope.parameters("Index")
    head = ["template <typename Index, int kLanes>"]
    head += listed(texts, f"__global__ void __launch_bounds__({THREADS}) {name}(", ") {")
    types = {scope.type_named(each).name for each in scope.used if each in scope.tensors}
    text = "\n".join([*head, *body.lines, *coordinates.lines, *after.lines, "}"])
    helpers = frozenset(scope.expressions.helpers)
    return Kernel(name, text, parameters, True, "long long", helpers, frozenset(types | scope.expressions.types))


def _paths(writer: _Parts, first: Kernel, last: Kernel, schedule: Columns) -> list[Path]:
    formula, found = writer.formula, writer.round
    results, split = writer.results, schedule.split
    paths: list[Path] = []
    arrays = [t for n, t in writer.scope.tensors.items() if n in writer.scope.used]
    margin = split * max(THREADS, 32 * schedule.warps) * 16
    reach = [Call("<=", (product(list(t.extents)), Num(MOST_INDEX - margin))) for t in arrays if t.strides is None]
    narrow = ["int"] if all(t.strides is None for t in arrays) else []
    enough: list[Expr] = [Call(">=", (writer.total, Num(LEAST if found.inner else 64)))]
    if not found.inner:
        enough.append(Call(">=", (product([writer.total, results]), Num(65536))))
    for vector in dict.fromkeys((schedule.vector, 1)):
        conditions: list[Expr] = []
        aligned: dict[str, int] = {}
        fits = True
        length = {("@", *key): factor for key, factor in (polynomial(writer.length) or {}).items()}
        for base in (length, *(base for _, _, base in writer.moved)):
            more = divisible(base, formula.sizes, vector)
            fits = fits and more is not None
            conditions += more or []
        if not fits:
            continue
        if vector > 1:
            aligned = {a: min(16, vector * TYPES[kind].bits // 8) for a, kind, _ in writer.moved}
        if found.inner:
            grid: tuple[Expr, Expr, Expr] = (results, Num(split), Num(1))
            block, lanes = THREADS, 32 if found.dims else THREADS
        else:
            grid = (ceiling(results, 32 * vector), Num(split), Num(1))
            block, lanes = 32 * schedule.warps, 1
        blocks_at_end = ceiling(product([results, Num(lanes)]), THREADS) if found.dims else Num(1)
        end = (blocks_at_end, Num(1), Num(1))
        for index in (*narrow, "long long"):
            launches = (
                Launch(first.name, grid, (block, 1, 1), index, template=(index, str(vector))),
                Launch(last.name, end, (THREADS, 1, 1), index, template=(index, str(lanes))),
            )
            both = (*enough, *conditions, *(reach if index == "int" else ()))
            blocks = Call("<=", (product([results, Num(lanes)]), Num(MOST_INDEX)))
            known = unique((*both, blocks))
            paths.append(Path(launches, known, aligned, "Blocks share what is reduced."))
    return paths
