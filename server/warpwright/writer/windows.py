"""Stencils, pooling, filters and convolutions: a thread computes several neighbours from elements that it holds in
registers, read by packs where they lie inside of their array."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from warpwright.formulas.model import Formula, Stage
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, Reduce
from warpwright.formulas.types import TYPES, computed
from warpwright.schedules.windows import Box, Pass, Windows, fixed_extent, neighbours, strides_of, with_outside
from warpwright.writer.code import Kernel, Path
from warpwright.writer.partition import Group
from warpwright.writer.pointwise import combined
from warpwright.writer.scope import Scope
from warpwright.writer.text import Text
from warpwright.writer.types import NAMES
from warpwright.writer.window_boxes import Boxes
from warpwright.writer.window_frame import Frame, is_named
from warpwright.writer.window_launch import paths


def windows(formula: Formula, group: Group, name: str, wanted: Windows | None) -> tuple[Kernel, list[Path]] | str:
    """The kernel of a group, and the paths that launch it where indices of 32 bits reach all; or why none is made."""
    if group.is_scatter:
        return "Results go to computed places."
    group = replace(group, stages=tuple(with_outside(formula, each) for each in group.stages))
    found = neighbours(formula, group.dims, group.stages, wanted)
    if isinstance(found, str):
        return found
    frame = Frame(formula, group, found, Scope(formula))
    for each in frame.stored:
        if strides_of(frame.scope.tensors[each.name])[each.own_index.index(Name(found.col))] != {(): 1}:
            return f"The elements of {each.name} do not lie side by side."
    writer = _Windows(frame)
    return writer.kernel(name), paths(frame, writer.boxes, name, wanted)


@dataclass
class _Windows:
    """One kernel being written."""

    frame: Frame
    boxes: Boxes = field(init=False)

    def __post_init__(self) -> None:
        self.boxes = Boxes(self.frame)

    def kernel(self, name: str) -> Kernel:
        scope, found, schedule = self.frame.scope, self.frame.found, self.frame.found.schedule
        for number, each in enumerate(found.passes):
            if number:
                self.frame.body()
            self._pass(each)
        text = str(self.frame.body)
        head = Text(depth=1)
        if any(each.stepped for each in found.passes):
            head(f"constexpr int kStep = {schedule.step};  // elements of a window at a time")
        self._place(head, text)
        head()
        said = (
            f"// A thread computes kCols neighbours along {found.col}{self._beside()}; what several of them read\n"
            "// stays in registers. kVector elements are moved at once: several where rows are whole packs, else 1."
        )
        template = f"int kVector, {', '.join(f'int {size}' for _, size in self.frame.tiles.values())}"
        return scope.kernel(name, self.frame.threads, [*head.lines, text], template, "int", said)

    def _beside(self) -> str:
        made = [f"{size} along {dim}" for dim, (_, size) in self.frame.tiles.items() if size != "kCols"]
        return f", {' and '.join(made)}" if made else ""

    def _place(self, head: Text, text: str) -> None:
        """The dimensions of the thread's first result. Where memory bounds the kernel, a block has a tile of columns
        and lines, whose threads find each other's neighbours in L1; else threads are numbered through."""
        found, dims, scope = self.frame.found, self.frame.found.dims, self.frame.scope
        col, first = found.col, self.frame.firsts[found.col]
        others = [each for each in reversed(dims[:-1]) if each != found.out]
        length = self.frame.factor(self.frame.formula.dims[col])
        if found.is_heavy:
            at, tests = scope.free("cell"), []
            head(
                f"const int {at} = {'blockIdx.y' if found.out else 'blockIdx.x'} * {self.frame.threads} + threadIdx.x;"
            )
            if others:
                columns = scope.free(f"cells_{col}")
                head(f"const int {columns} = ({length} + kCols - 1) / kCols;")
                head(f"const int {first} = {at} % {columns} * kCols;")
                at = f"{at} / {columns}"
            else:
                head(f"const int {first} = {at} * kCols;")
                tests.append(f"{first} >= {self.frame.extent(col)}")
        elif others:
            is_row = len(others) == 1 and others[0] not in self.frame.tiles
            columns, at = scope.free(f"tiles_{col}"), others[0] if is_row else scope.free("line")
            head(f"const int {columns} = ({length} + blockDim.x * kCols - 1) / (blockDim.x * kCols);")
            head(f"const int {first} = (blockIdx.x % {columns} * blockDim.x + threadIdx.x) * kCols;")
            head(f"const int {at} = blockIdx.x / {columns} * blockDim.y + threadIdx.y;")
            tests = [f"{first} >= {self.frame.extent(col)}"]
        else:
            head(f"const int {first} = (blockIdx.x * {self.frame.threads} + threadIdx.x) * kCols;")
            at, tests = "", [f"{first} >= {self.frame.extent(col)}"]
        for number, dim in enumerate(others):
            count = self.frame.factor(self.frame.formula.dims[dim])
            is_last = number + 1 == len(others)
            if dim in self.frame.tiles and not is_last:
                held = scope.free(f"cells_{dim}")
                head(f"const int {held} = ({count} + {self.frame.tiles[dim][1]} - 1) / {self.frame.tiles[dim][1]};")
                count = held
            own = at if is_last else f"{at} % {count}"
            if dim in self.frame.tiles:
                head(f"const int {self.frame.firsts[dim]} = {own} * {self.frame.tiles[dim][1]};")
            elif own != dim and (is_last or is_named(dim, text)):
                head(f"const int {dim} = {own};")
            if is_last:
                tests.append(f"{self.frame.firsts.get(dim, dim)} >= {self.frame.extent(dim)}")
            at = f"{at} / {count}"
        head(f"if ({' || '.join(tests)}) return;")
        if found.out:
            head(f"const int {self.frame.firsts[found.out]} = blockIdx.x * kOuts;")

    # Passes

    def _pass(self, each: Pass) -> None:
        scope, body = self.frame.scope, self.frame.body
        for stage in each.stages:
            if isinstance(stage.value, Reduce):
                self._sums(stage)
        depth = body.depth
        for loop in each.loops:
            first = scope.free(f"{loop}_first") if loop == each.stepped else loop
            step = f"{first} += kStep" if loop == each.stepped else f"++{first}"
            body(f"for (int {first} = 0; {first} < {self.frame.extent(loop)}; {step}) {{")
            body.depth += 1
        own: dict[Load, tuple[Box, str]] = {}
        for box in each.boxes:
            name = self.boxes.loaded(box, each)
            own.update(dict.fromkeys(box.loads, (box, name)))
        for stage in each.stages:
            if isinstance(stage.value, Reduce):
                self._reduced(stage, stage.value, each, own)
            elif stage.temporary and stage.name not in self.frame.group.kept:
                self._temporary(stage, each, own)
        body.end(depth)
        self._stores(each, own)

    def _local(self, stage: Stage) -> str:
        inner = stage.temporary and stage.name not in self.frame.group.kept
        op = stage.value.op if isinstance(stage.value, Reduce) else "value"
        return stage.name if inner else self.frame.scope.free(f"{stage.name}_{op}")

    def _counts(self) -> str:
        return "".join(f"[{size}]" for _, size in self.frame.tiles.values())

    def _at(self) -> str:
        return "".join(f"[{var}]" for var, _ in self.frame.tiles.values())

    def _sums(self, stage: Stage) -> None:
        """The variables that a reduction is gathered in."""
        node = stage.value
        assert isinstance(node, Reduce)
        kind = TYPES[node.accumulate] if node.accumulate else computed(TYPES[stage.type])
        name, begin = self._local(stage), self.frame.scope.expressions.nothing(node, kind)
        declared = f"{NAMES[kind.name]} {name}{self._counts()}"
        if begin in ("0", "0.0f", "0.0", "false"):
            self.frame.body(f"{declared} = {{}};")
        else:
            self.frame.body(f"{declared};")
            with self._results(""):
                self.frame.body(f"{name}{self._at()} = {begin};")

    @contextmanager
    def _results(self, text: str) -> Iterator[None]:
        """Loops over the results. `text` is what they compute: no dimension that it names is beyond its end."""
        body = self.frame.body
        depth = body.depth
        for dim, (var, size) in self.frame.tiles.items():
            body.begin_unrolled(var, size)
            self._named(dim, text)
        yield
        body.end(depth)

    def _named(self, dim: str, text: str) -> None:
        if is_named(dim, text):
            var, first = self.frame.tiles[dim][0], self.frame.firsts[dim]
            last = self.frame.scope.expressions.of(Call("-", (self.frame.formula.dims[dim], Num(1))))
            self.frame.body(f"const int {dim} = min({first} + {var}, {last});")

    def _reduced(self, stage: Stage, node: Reduce, each: Pass, own: dict[Load, tuple[Box, str]]) -> None:
        scope, body = self.frame.scope, self.frame.body
        self.boxes.put(each, own)
        kind = TYPES[node.accumulate] if node.accumulate else computed(TYPES[stage.type])
        of_body = scope.expressions.type_of(node.body)
        name = self._local(stage)
        value = scope.expressions.of(node.body, wanted=kind)
        lines = combined(scope, node, f"{name}{self._at()}", value, of_body, kind)
        depth = body.depth
        text = "\n".join(lines)
        stepped = each.stepped if each.stepped in {part.name for part in node.ranges} else ""
        var, first = self.frame.step_names(stepped)
        if stepped:
            add = scope.free(f"add_{stage.name}")
            body(f"const auto {add} = [&](int {var}) {{")
            body.depth += 1
            if is_named(stepped, text):
                body(f"const int {stepped} = {first} + {var};")
        for part in node.ranges:
            if part.name not in each.loops:
                body.begin_unrolled(part.name, fixed_extent(self.frame.formula, part.name))
        with self._results(text):
            body.add(lines)
        body.end(depth + bool(stepped))
        if stepped:
            body.depth -= 1
            body("};")
            loop = f"for (int {var} = 0; {var} < kStep; ++{var})"
            with body.block(f"if ({first} + kStep <= {self.frame.extent(stepped)})", "} else {"):
                body("#pragma unroll")
                body(f"{loop} {add}({var});")
            body.depth += 1
            body("#pragma unroll")
            with body.block(loop):
                body(f"if ({first} + {var} < {self.frame.extent(stepped)}) {add}({var});")
            body.depth -= 1
            body("}")
        scope.locals[stage.name] = (f"{name}{self._at()}", computed(TYPES[stage.type]))

    def _temporary(self, stage: Stage, each: Pass, own: dict[Load, tuple[Box, str]]) -> None:
        scope = self.frame.scope
        self.boxes.put(each, own)
        kind = computed(TYPES[stage.type])
        exact = stage.value if kind == TYPES[stage.type] else Call(stage.type, (stage.value,))
        text = scope.expressions.of(exact, wanted=kind)
        self.frame.body(f"{NAMES[kind.name]} {stage.name}{self._counts()};")
        with self._results(text):
            self.frame.body(f"{stage.name}{self._at()} = {text};")
        scope.locals[stage.name] = (f"{stage.name}{self._at()}", kind)

    def _stores(self, each: Pass, own: dict[Load, tuple[Box, str]]) -> None:
        """The results that the pass gives, row by row."""
        scope, body, found = self.frame.scope, self.frame.body, self.frame.found
        self.boxes.put(each, own)
        stored = [s for s in each.stages if not s.temporary or s.name in self.frame.group.kept]
        if not stored:
            return
        values, col = [], self.frame.tiles[found.col][0]
        for stage in stored:
            kind = TYPES[stage.type]
            if isinstance(stage.value, Reduce):
                held, own_kind = scope.locals[stage.name]
                values.append(scope.expressions.written(kind, held, own_kind))
            else:
                values.append(scope.expressions.stored(stage.value, kind))
        text = "\n".join(values)
        depth = body.depth
        for dim, (var, size) in self.frame.tiles.items():
            if dim == found.col:
                continue
            body.begin_unrolled(var, size)
            body(f"if ({self.frame.firsts[dim]} + {var} >= {self.frame.extent(dim)}) break;")
            if is_named(dim, text):
                body(f"const int {dim} = {self.frame.firsts[dim]} + {var};")
        packs = [scope.free(f"{stage.name}_row") for stage in stored]
        for stage, pack in zip(stored, packs, strict=True):
            body(f"{NAMES[stage.type]} {pack}[kCols];")
        with body.unrolled(col, "kCols"):
            self._named(found.col, text)
            for pack, value in zip(packs, values, strict=True):
                body(f"{pack}[{col}] = {value};")
        scope.expressions.helpers.add("store_near")
        for stage, pack in zip(stored, packs, strict=True):
            tensor = scope.tensors[stage.name]
            scope.stored[tensor.array] = scope.used[tensor.array] = None
            at = [self._first_at(each) for each in stage.own_index]
            left = f"{self.frame.extent(found.col)} - {self.frame.firsts[found.col]}"
            body(f"store_near<kVector>(&{scope.element(tensor, at)}, {pack}, {left});")
        body.end(depth)

    def _first_at(self, index: Expr) -> Expr:
        """An index of the first of the results that are stored at once."""
        if not isinstance(index, Name) or index.name not in self.frame.tiles:
            return index
        first = Name(self.frame.firsts[index.name])
        return (
            first if index.name == self.frame.found.col else Call("+", (first, Name(self.frame.tiles[index.name][0])))
        )
