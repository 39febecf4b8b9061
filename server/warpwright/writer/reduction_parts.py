"""The first of two kernels of a round: what each block reduces."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from warpwright.formulas.bounds import Polynomial
from warpwright.formulas.model import Formula, Stage
from warpwright.formulas.normal import identity
from warpwright.formulas.tree import Expr, Load, Num, Reduce, product, walk
from warpwright.formulas.types import TYPES, ElementType, computed
from warpwright.schedules.access import along, varies
from warpwright.schedules.model import Columns
from warpwright.writer.code import Kernel
from warpwright.writer.expressions import PRODUCT
from warpwright.writer.places import base_expression, coordinates, inner_loads
from warpwright.writer.pointwise import combined
from warpwright.writer.reduction_rounds import THREADS, Round, parts_of, use_of
from warpwright.writer.scope import Scope
from warpwright.writer.text import Text
from warpwright.writer.types import NAMES, literal


@dataclass
class Parts:
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
        self.element = self.scope.free("j", "k", "m", "j_")
        self.first, self.at = self.scope.free("first"), self.scope.free("at")
        self.column = self.scope.free("column")
        dims_here = self.round.dims
        self.result = dims_here[0] if len(dims_here) == 1 else self.scope.free("result")
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
                if scope.read_pack(loop, load, scope.behind(tensor.array, at, self.column), packs, self.element):
                    self.moved.append((tensor.array, tensor.type, base))
        for stage in found.reductions:
            node, of_body, kind = self._kinds(stage)
            is_place = node.op.startswith("arg")
            value = scope.expressions.of(node.body, wanted=of_body if is_place else kind)
            target = stage.name if found.inner else f"{stage.name}[{self.element}]"
            lines = combined(scope, node, self._local(target), value, of_body, kind)
            inner.add(lines)
        body = self._inner(loop, inner) if found.inner else self._columns(loop, inner)
        threads = THREADS if found.inner else 32 * self.schedule.warps
        return scope.kernel(name, threads, body.lines, "typename Index, int kVector")

    def _local(self, name: str) -> str:
        base, bracket, rest = name.partition("[")
        own = base if base not in self.formula.tensors else f"{base}_part"
        return f"{own}{bracket}{rest}"

    def _kinds(self, stage: Stage) -> tuple[Reduce, ElementType, ElementType]:
        node = stage.value
        assert isinstance(node, Reduce)
        kind = TYPES[node.accumulate] if node.accumulate else computed(TYPES[stage.type])
        return node, self.scope.expressions.type_of(node.body), kind

    def _coordinates(self, body: Text, dims: tuple[str, ...], flat: str, text: str) -> None:
        body.add(coordinates(self.scope.expressions, dims, self.formula.dims, flat, text))

    def _elements(self, body: Text, loop: Text, inner: Text, cols: tuple[str, ...]) -> None:
        lift = "    " * (body.depth - 2)
        body.lines += [f"{lift}{line}" for line in loop.lines]
        with body.unrolled(self.element, "kVector"):
            self._coordinates(body, cols, f"({self.column} + {self.element})", str(inner))
            body.lines += [f"{lift}{line}" for line in inner.lines]

    def _inner(self, loop: Text, inner: Text) -> Text:
        """A block for each result and part of what is reduced."""
        scope, found, body = self.scope, self.round, Text(depth=1)
        text = f"{loop}\n{inner}"
        body("// Blocks along y share what is reduced to one result; the second kernel brings their parts together.")
        body(f"constexpr int kBlocks = {self.schedule.split};")
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
                body(f"{NAMES[kind.name]} {name} = {scope.expressions.nothing(node, kind)};")
        begin = f"(static_cast<Index>(blockIdx.y) * {THREADS} + threadIdx.x) * kVector"
        total = scope.expressions.of(self.total, PRODUCT)
        body("#pragma unroll 4")
        step = f"kBlocks * {THREADS} * kVector"
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
            parts = [f"{stage.name}_{suffix}" for suffix, _ in parts_of(self.formula, stage)]
            for each in parts:
                scope.used[each] = scope.stored[each] = None
            use = use_of(found, stage)
            if len(parts) == 2:
                body(f"{helper}<{THREADS}{use}>({name}_best, {name});")
                lines.append(f"{parts[0]}[{place}] = {name}_best;")
            else:
                body(f"{name} = {helper}<{THREADS}{use}>({name});")
            lines.append(f"{parts[-1]}[{place}] = {name};")
        with body.block("if (threadIdx.x == 0)"):
            body.add(lines)
        return body

    def _columns(self, loop: Text, inner: Text) -> Text:
        """Lanes run along the results, warps and blocks share what is reduced."""
        scope, found, body = self.scope, self.round, Text(depth=1)
        text = f"{loop}\n{inner}"
        warps = self.schedule.warps
        body("// Lanes run along the results. Warps and blocks along y share what is reduced.")
        body(f"constexpr int kBlocks = {self.schedule.split};")
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
            start = scope.expressions.nothing(node, kind)
            body(f"{NAMES[kind.name]} {self._local(stage.name)}[kVector];")
            each = f"for (int {self.element} = 0; {self.element} < kVector; ++{self.element})"
            body("#pragma unroll")
            body(f"{each} {self._local(stage.name)}[{self.element}] = {start};")
        results = self.factor(self.results)
        with body.block(f"if ({flat} < {results})"):
            single = len(found.over) == 1
            at = found.over[0] if single else self.at
            body("#pragma unroll 4")
            step = f"kBlocks * {warps}"
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
            body.add(lines)
        return body
