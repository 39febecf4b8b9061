"""Reductions over pairs: several results for each thread, the others by tiles in shared memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from warpwright.formulas.model import Formula, Stage, Tensor
from warpwright.formulas.normal import identity
from warpwright.formulas.tree import Call, Expr, Load, Num, Reduce, product
from warpwright.formulas.types import TYPES, ElementType, computed
from warpwright.schedules.pairs import AllPairs, Pairs, all_pairs
from warpwright.writer.code import MOST_INDEX, Kernel, Launch, Path, ceiling
from warpwright.writer.expressions import PRODUCT
from warpwright.writer.partition import Group
from warpwright.writer.places import coordinate, unique
from warpwright.writer.pointwise import combined, reach, store
from warpwright.writer.scope import Scope
from warpwright.writer.text import Text
from warpwright.writer.types import NAMES, literal, read

THREADS = 256
SHARED = 48 * 1024
"""Bytes of shared memory that a block has without asking for more."""
MOST_BATCH = 65535
"""Of a grid's second dimension."""
TIERS = ((4, 1, 1 << 20), (4, 4, 1 << 18), (4, 16, 1 << 14), (1, 16, 1 << 12), (1, 1, 1 << 15))
"""Bodies and parts, and the least number of results that keep a large GPU busy with them; the last for results that are
not brought together from parts."""


def pairs(formula: Formula, group: Group, name: str, wanted: Pairs | None) -> tuple[Kernel, list[Path]] | str:
    """The kernel of a group, and the paths that launch it; or why none is made."""
    found = all_pairs(formula, group.dims, group.stages) if not group.is_scatter else "Results go to computed places."
    if isinstance(found, str):
        return found
    writer = _Pairs(formula, group, found, Scope(formula))
    if wanted is not None and (reason := writer.refusal(wanted)):
        return reason
    return writer.kernel(name), writer.paths(name, wanted)


@dataclass
class _Pairs:
    """One kernel being written."""

    formula: Formula
    group: Group
    found: AllPairs
    scope: Scope
    body: Text = field(default_factory=lambda: Text(depth=1))

    def __post_init__(self) -> None:
        free = self.scope.free
        self.scope.index_type = "int"
        self.first, self.other_first, self.at = (
            free(f"{self.found.own}_first"),
            free(f"{self.found.other}_first"),
            free("at"),
        )
        self.lane, self.part, self.nth = free("lane"), free("part"), free("body")
        self.count, self.share, self.end, self.from_ = free("count"), free("share"), free("end"), free("from")

    def refusal(self, schedule: Pairs) -> str:
        """Why no kernel can be launched so; "" where one can."""
        if schedule.parts < 1 or THREADS % schedule.parts or schedule.bodies < 1:
            return f"{THREADS} threads are not shared out among {schedule.parts} parts."
        if schedule.parts == 1:
            return ""
        if any(self._kinds(each)[0].op.startswith("arg") for each in self.found.reductions):
            return "Places are not brought together from parts."
        bits = sum(self._kinds(each)[1].bits for each in self.found.reductions)
        size = bits // 8 * THREADS * schedule.bodies + self._tile_bytes() * self.tile
        return "" if size <= SHARED else f"About {size} bytes of shared memory are more than {SHARED}."

    def _tile_bytes(self) -> int:
        return sum(TYPES[tensor.type].bits for tensor, _ in self.found.tiles) // 8

    @property
    def tile(self) -> int:
        """Elements of a tile: many, so that threads seldom wait for each other."""
        return next((size for size in (1024, 512) if size * self._tile_bytes() <= SHARED // 2), THREADS)

    # The kernel

    def kernel(self, name: str) -> Kernel:
        scope, body, found = self.scope, self.body, self.found
        own, other = self._extent(found.own), self._extent(found.other)
        tiles = self._tiles()
        held = self._held()
        loop = self._loop()
        body(f"constexpr int kTile = {self.tile};  // of {found.other}")
        body("constexpr int kLanes = kThreads / kParts;  // threads beside each other along " + found.own)
        for text, tensor in tiles.values():
            body(f"__shared__ {NAMES[tensor.type]} {text}[kTile];")
        body(f"const int {self.lane} = threadIdx.x % kLanes;")
        body(f"const int {self.part} = threadIdx.x / kLanes;")
        body(f"const int {self.first} = blockIdx.x * (kLanes * kBodies) + {self.lane};")
        self._batch(body, f"{loop}{held}{tiles}")
        body()
        body.lines += held.lines
        for stage in found.reductions:
            self._begin(stage)
        with body.block(f"for (int {self.other_first} = 0; {self.other_first} < {other}; {self.other_first} += kTile)"):
            body("#pragma unroll")
            with body.block(f"for (int {self.at} = threadIdx.x; {self.at} < kTile; {self.at} += kThreads)"):
                body(f"const int {found.other} = {self.other_first} + {self.at};")
                body(f"if ({found.other} >= {other}) break;")
                for load, (text, _) in tiles.items():
                    body(f"{text}[{self.at}] = {self._element(load)};")
            body("__syncthreads();")
            body.lines += loop.lines
            body("__syncthreads();  // the next tile takes its place")
        self._meet()
        self._results(own)
        said = (
            f"// A thread computes kBodies of {found.own}; tiles of {found.other} pass through shared memory,\n"
            "// and kParts groups of threads share each."
        )
        template = "int kThreads, int kBodies, int kParts"
        return scope.kernel(name, "kThreads", body.lines, template, "int", said)

    def _extent(self, dim: str) -> str:
        return self.scope.expressions.of(self.formula.dims[dim], PRODUCT)

    def _element(self, load: Load) -> str:
        return self.scope.element(self.scope.tensors[load.tensor], load.index)

    def _tiles(self) -> dict[Load, tuple[str, Tensor]]:
        """Loads along the other dimension stand for elements of the tile."""
        made: dict[Load, tuple[str, Tensor]] = {}
        for tensor, load in self.found.tiles:
            name = self.scope.free(f"{tensor.array}_tile")
            while name in [text for text, _ in made.values()]:
                name += "_"
            made[load] = (name, tensor)
        return made

    def _batch(self, body: Text, text: str) -> None:
        for dim in self.found.batch:
            value = coordinate(self.scope.expressions, self.found.batch, self.formula.dims, "blockIdx.y", dim)
            body(f"const int {dim} = {value};")

    def _factor(self, node: Expr) -> str:
        return self.scope.expressions.of(node, PRODUCT + 1)

    @contextmanager
    def _bodies(self, body: Text) -> Iterator[None]:
        with body.unrolled(self.nth, "kBodies"):
            yield

    def _own(self, body: Text) -> None:
        """The result's own dimension: beyond its end the last one is computed again, and not stored."""
        last = self.scope.expressions.of(Call("-", (self.formula.dims[self.found.own], Num(1))))
        body(f"const int {self.found.own} = min({self.first} + {self.nth} * kLanes, {last});")

    def _held(self) -> Text:
        """What a thread reads of its own elements, once."""
        scope, text = self.scope, Text(depth=1)
        lines: list[str] = []
        for load in self.found.held:
            kind = TYPES[scope.tensors[load.tensor].type]
            name = scope.free(f"{scope.tensors[load.tensor].array}_own")
            while any(line.startswith(f"{name}[") for line in lines):
                name += "_"
            text(f"{NAMES[computed(kind).name]} {name}[kBodies];")
            lines.append(f"{name}[{self.nth}] = {scope.place(load)[0]};")
            scope.places[load] = (f"{name}[{self.nth}]", computed(kind))
        with self._bodies(text):
            self._own(text)
            text.add(lines)
        return text

    def _kinds(self, stage: Stage) -> tuple[Reduce, ElementType]:
        node = stage.value
        assert isinstance(node, Reduce)
        return node, TYPES[node.accumulate] if node.accumulate else computed(TYPES[stage.type])

    def _local(self, stage: Stage) -> str:
        inner = stage.temporary and stage.name not in self.group.kept
        return stage.name if inner else self.scope.free(f"{stage.name}_{self._kinds(stage)[0].op}")

    def _begin(self, stage: Stage) -> None:
        node, kind = self._kinds(stage)
        name, body = self._local(stage), self.body
        if node.op.startswith("arg"):
            kind = self.scope.expressions.type_of(node.body)
            body(f"long long {name}[kBodies] = {{}};")
            name, begin = f"{name}_best", literal(identity(node.op, kind), kind)
        else:
            begin = self.scope.expressions.nothing(node, kind)
        if begin in ("0", "0.0f", "0.0", "false"):
            body(f"{NAMES[kind.name]} {name}[kBodies] = {{}};")
            return
        body(f"{NAMES[kind.name]} {name}[kBodies];")
        with self._bodies(body):
            body(f"{name}[{self.nth}] = {begin};")

    def _loop(self) -> Text:
        """Goes through the thread's part of a tile."""
        scope, found = self.scope, self.found
        loop, inner = Text(depth=2), Text(depth=4)
        for load, (name, tensor) in self._tiles().items():
            scope.places[load] = (read(TYPES[tensor.type], f"{name}[{self.at}]"), computed(TYPES[tensor.type]))
        for stage in found.locals:
            kind = computed(TYPES[stage.type])
            exact = stage.value if kind == TYPES[stage.type] else Call(stage.type, (stage.value,))
            inner(f"const {NAMES[kind.name]} {stage.name} = {scope.expressions.of(exact, wanted=kind)};")
            scope.places[Load(stage.name, stage.own_index)] = (stage.name, kind)
        for stage in found.reductions:
            node, kind = self._kinds(stage)
            of_body = scope.expressions.type_of(node.body)
            name = self._local(stage)
            value = scope.expressions.of(node.body, wanted=of_body if node.op.startswith("arg") else kind)
            for line in combined(scope, node, name, value, of_body, kind):
                inner(re.sub(rf"(?<!\w)({name}(_best)?)(?!\w)", rf"\1[{self.nth}]", line))
        text = str(inner)
        loop(f"const int {self.count} = min({self._extent(found.other)} - {self.other_first}, kTile);")
        loop(f"const int {self.share} = ({self.count} + kParts - 1) / kParts;")
        loop(f"const int {self.end} = min({self.count}, ({self.part} + 1) * {self.share});")
        loop("#pragma unroll 4")
        with loop.block(f"for (int {self.at} = {self.part} * {self.share}; {self.at} < {self.end}; ++{self.at})"):
            if re.search(rf"\b{found.other}\b", text):
                loop(f"const int {found.other} = {self.other_first} + {self.at};")
            with self._bodies(loop):
                if re.search(rf"\b{found.own}\b", text):
                    self._own(loop)
                loop.lines += inner.lines
        return loop

    def _meet(self) -> None:
        """The parts of a result are brought together, in their order."""
        scope, body = self.scope, self.body
        if self.refusal(Pairs(1, 2)):
            return
        with body.block("if constexpr (kParts > 1)"):
            for stage in self.found.reductions:
                _, kind = self._kinds(stage)
                body(f"__shared__ {NAMES[kind.name]} {self._parts(stage)}[kParts][kLanes * kBodies];")
            with self._bodies(body):
                for stage in self.found.reductions:
                    place = f"[{self.part}][{self.nth} * kLanes + {self.lane}]"
                    body(f"{self._parts(stage)}{place} = {self._local(stage)}[{self.nth}];")
            body("__syncthreads();")
            body(f"if ({self.part} > 0) return;")
            with self._bodies(body), body.block("for (int from = 1; from < kParts; ++from)"):
                for stage in self.found.reductions:
                    node, kind = self._kinds(stage)
                    value = f"{self._parts(stage)}[{self.from_}][{self.nth} * kLanes + {self.lane}]"
                    body.add(combined(scope, node, f"{self._local(stage)}[{self.nth}]", value, kind, kind))

    def _parts(self, stage: Stage) -> str:
        return self.scope.free(f"{stage.name}_parts")

    def _results(self, own: str) -> None:
        scope, body = self.scope, self.body
        for stage in self.found.reductions:
            scope.locals[stage.name] = (f"{self._local(stage)}[{self.nth}]", computed(TYPES[stage.type]))
        with self._bodies(body):
            body(f"const int {self.found.own} = {self.first} + {self.nth} * kLanes;")
            body(f"if ({self.found.own} >= {own}) break;")
            for stage in self.group.stages:
                kind = computed(TYPES[stage.type])
                value = ""
                if isinstance(stage.value, Reduce):
                    value = f"{self._local(stage)}[{self.nth}]"
                elif stage.temporary:
                    held = scope.expressions.held(stage.value, TYPES[stage.type])
                    body(f"const {NAMES[kind.name]} {stage.name} = {held};")
                    scope.locals[stage.name] = (stage.name, kind)
                    value = stage.name
                if not stage.temporary or stage.name in self.group.kept:
                    store(body, scope, stage, value)

    # Launches

    def paths(self, name: str, wanted: Pairs | None) -> list[Path]:
        formula, found = self.formula, self.found
        count = product([formula.dims[each] for each in self.group.dims])
        batch = product([formula.dims[each] for each in found.batch])
        limits = [reach(each) for each in self.scope.touched()]
        small = unique(Call("<=", (each, Num(MOST_INDEX - 4096))) for each in [*limits, formula.dims[found.other]])
        tiers = [(Pairs(bodies, parts), least) for bodies, parts, least in TIERS]
        chosen = [(wanted, 0)] if wanted else [each for each in tiers if not self.refusal(each[0])]
        if wanted is None and any(each.parts > 1 for each, _ in chosen):
            chosen.pop()
        made = []
        for schedule, least in chosen:
            blocks = ceiling(formula.dims[found.own], THREADS // schedule.parts * schedule.bodies)
            template = (str(THREADS), str(schedule.bodies), str(schedule.parts))
            launch = Launch(name, (blocks, batch, Num(1)), (THREADS, 1, 1), template=template)
            many = [Call(">=", (count, Num(least)))] if least else []
            fits = [Call("<=", (batch, Num(MOST_BATCH)))] if found.batch else []
            reason = "Groups of threads share what is reduced." if schedule.parts > 1 else ""
            made.append(Path((launch,), (*many, *fits, *small), reason=reason, schedule=schedule))
        return made
