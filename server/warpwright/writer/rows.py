"""Rows: lanes share a row, keep it in registers or read it anew for each pass, and meet in reductions over it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from warpwright.formulas.bounds import Polynomial, polynomial
from warpwright.formulas.model import Formula, Stage
from warpwright.formulas.normal import identity
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, Reduce, product, walk
from warpwright.formulas.types import TYPES, ElementType, computed
from warpwright.schedules.access import along
from warpwright.schedules.model import Rows
from warpwright.schedules.shape import RowShape, is_sum_of_shifted, without_full_temporaries
from warpwright.writer.code import MOST_INDEX, Kernel, Launch, Path, ceiling
from warpwright.writer.expressions import PRODUCT
from warpwright.writer.places import base_expression, divisible, inner_loads, is_constant, unique
from warpwright.writer.pointwise import combined
from warpwright.writer.row_stages import prepared
from warpwright.writer.scope import Scope
from warpwright.writer.text import Text, listed
from warpwright.writer.types import NAMES, literal, read
from warpwright.writer.types import written as as_stored

VECTOR = "kVector"


@dataclass(frozen=True)
class Packs:
    """An array that is read by packs: where its row begins, and the passes that read it."""

    array: str
    type: str
    base: Polynomial
    loads: frozenset[Load]
    phases: frozenset[int]
    moves: bool


@dataclass
class RowsText:
    """One kernel of rows being written. `keeps`: the row stays in registers."""

    formula: Formula
    shape: RowShape
    keeps: bool
    online: bool = False
    stream: bool = False
    body: Text = field(default_factory=lambda: Text(depth=1))
    pointers: dict[str, tuple[str, bool, str]] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)
    moved: list[tuple[str, str, Polynomial]] = field(default_factory=list)
    kept: dict[str, None] = field(default_factory=dict)
    scope: Scope = field(init=False)

    def __post_init__(self) -> None:
        scope = Scope(self.formula)
        if not self.keeps:
            self.shape = without_full_temporaries(self.shape)
        self.formula = replace(self.formula, stages=self.shape.stages)

        def kind_of(node: Expr) -> str:
            return scope.expressions.type_of(node).name

        self.formula, self.shape = prepared(self.formula, self.shape, kind_of, keep=self.keeps)
        self.scope = Scope(self.formula)
        self.scope.index_type = "long long"
        free = self.scope.free
        names = {*self.formula.dims, *self.formula.sizes, *self.formula.scalars, *self.scope.tensors}
        self.pack_index, self.element = (
            next(n for n in of if n not in names) for of in (("i", "n", "i_"), ("j", "k", "m", "j_"))
        )
        self.row = self.shape.rows[0] if len(self.shape.rows) == 1 else free("own_row")
        self.first = free("first")
        self.lane = "lane"
        self.length_expr = product([self.formula.dims[each] for each in self.shape.cols])
        self.packs = self._found_packs()

    # What is read

    def _found_packs(self) -> list[Packs]:
        made = {each.name for each in self.shape.stages if not each.primed}
        found: dict[tuple[str, str], tuple[str, str, Polynomial, set[Load], set[int]]] = {}
        for stage in self.shape.stages:
            if not (isinstance(stage.value, Reduce) or self.shape.is_full(stage)):
                continue
            for load in (node for node in walk(stage.value) if isinstance(node, Load)):
                if load.tensor in made:
                    again = self.shape.is_full(self._stage(load.tensor)) and not self.keeps
                    if not again or self.shape.phases[load.tensor] == self.shape.phases[stage.name]:
                        continue
                tensor = self.scope.tensors[load.tensor]
                base = along(tensor, load, self.shape.cols, self.formula.dims)
                if base is None:
                    continue
                key = (tensor.array, repr(sorted(base.items())))
                entry = found.setdefault(key, (tensor.array, tensor.type, base, set(), set()))
                entry[3].add(load)
                entry[4].add(self.shape.phases[stage.name])
        rows = set(self.shape.rows)
        return [
            Packs(
                array,
                kind,
                base,
                frozenset(loads),
                frozenset(phases),
                any(n in rows or n[0] == "@" for k in base for n in k),
            )
            for array, kind, base, loads, phases in found.values()
        ]

    def _stage(self, name: str) -> Stage:
        return next(each for each in self.shape.stages if each.name == name and not each.primed)

    def pointer(
        self, array: str, kind: str, base: Polynomial, loads: frozenset[Load] | list[Load], stored: bool
    ) -> str:
        """The pointer to the beginning of a row of an array."""
        self.scope.used[array] = None
        if stored:
            self.scope.stored[array] = None
        if not base:
            return array
        inner = [each for load in loads for each in inner_loads(load)]
        at = base_expression(base, self.shape.rows, self.row, self.formula.dims, self.length_expr, inner)
        text = f"{array} + {self.scope.expressions.of(at)}"
        name = next((n for n, (t, _, _) in self.pointers.items() if t == text), None)
        if name is None:
            name = self.scope.free(f"{array}_row")
            while name in self.pointers:
                name += "_"
        was = self.pointers.get(name, (text, False, kind))
        self.pointers[name] = (text, was[1] or stored or array in self.scope.stored, kind)
        return name

    # The text

    def write(self, name: str) -> Kernel:
        """The kernel."""
        last = max((self.shape.phases[s.name] for s in self.shape.stages if self._in_loop(s)), default=0)
        if self.keeps:
            self._keep_row()
        phase = 0
        while phase <= last:
            self._row_values(phase)
            phase = self._pass(phase)
        end = max([*self.shape.phases.values(), last + 1])
        for each in range(last + 1, end + 1):
            self._row_values(each)
        self._store_row_values()
        return self._kernel(name)

    def _in_loop(self, stage: Stage) -> bool:
        return isinstance(stage.value, Reduce) or self.shape.is_full(stage)

    def _ref(self, name: str) -> str:
        return f"{name}[{self.pack_index}].at[{self.element}]" if name in self.kept else f"{name}.at[{self.element}]"

    def _bind(self, packs: Packs, name: str) -> None:
        kind = TYPES[packs.type]
        for load in packs.loads:
            self.scope.places[load] = (read(kind, self._ref(name)), computed(kind))

    def _keep_row(self) -> None:
        early = [each for each in self.packs if each.moves and (0 in each.phases or len(each.phases) > 1)]
        if not early:
            return
        body = self.body
        if any(len(each.phases) > 1 for each in early):
            body("// The row is read once and stays in registers.")
        else:
            body("// All of the row is on its way before the first of it is used.")
        names: list[tuple[Packs, str, str]] = []
        for each in early:
            pointer = self.pointer(each.array, each.type, each.base, each.loads, False)
            name = self.scope.free(f"{pointer.removesuffix('_row')}_kept")
            self.kept[name] = None
            names.append((each, name, pointer))
            body(f"Pack<{NAMES[each.type]}, {VECTOR}> {name}[kPerLane];")
            self._bind(each, name)
        with self._packs_loop():
            for _, name, pointer in names:
                self.scope.expressions.helpers.add("load_pack")
                body(f"{name}[{self.pack_index}] = load_pack<{VECTOR}>({pointer} + {self.first});")
        body()

    def _packs_loop(self) -> _Loop:
        return _Loop(self)

    def _row_values(self, phase: int) -> None:
        """Values of the row that are known before this pass."""
        for stage in self.shape.stages:
            if self.shape.phases[stage.name] != phase or self._in_loop(stage):
                continue
            kind = computed(TYPES[stage.type])
            name = stage.name if stage.temporary else self.scope.free(f"{stage.name}_value")
            value = self.scope.expressions.held(stage.value, TYPES[stage.type])
            self.body(f"const {NAMES[kind.name]} {name} = {value};")
            if not stage.primed:
                self.scope.locals[stage.name] = (name, kind)
            self.results[stage.name] = name

    def _pass(self, phase: int) -> int:
        """One pass over the row; the number of the next."""
        stages = [each for each in self.shape.stages if self._in_loop(each) and self.shape.phases[each.name] == phase]
        if not stages:
            return phase + 1
        if self.online:
            pair = self._online_pair(stages, phase)
            if pair is not None:
                self._online(*pair)
                return phase + 2
        body, scope = self.body, self.scope
        reductions = [each for each in stages if isinstance(each.value, Reduce)]
        maps = [each for each in stages if not isinstance(each.value, Reduce)]
        for stage in reductions:
            self._declare(stage)
        for stage in maps:
            if self.keeps and self._read_later(stage, phase):
                name = stage.name if stage.temporary else scope.free(f"{stage.name}_kept")
                self.kept[name] = None
                body(f"Pack<{NAMES[stage.type]}, {VECTOR}> {name}[kPerLane];")
                self.results[stage.name] = name
        with self._packs_loop():
            outputs = self._before_elements(phase, maps)
            self._elements(stages)
            for stage, name in outputs:
                self._store_pack(stage, name)
        for stage in reductions:
            self._meet(stage)
        body()
        return phase + 1

    def _read_later(self, stage: Stage, phase: int) -> bool:
        return (
            any(
                self.shape.phases[other.name] > phase
                and any(isinstance(n, Load) and n.tensor == stage.name for n in walk(other.value))
                for other in self.shape.stages
            )
            and not stage.primed
        )

    def _before_elements(self, phase: int, maps: list[Stage]) -> list[tuple[Stage, str]]:
        body, scope = self.body, self.scope
        for each in self.packs:
            bound = next(iter(each.loads)) in scope.places and self.keeps and each.moves
            bound = bound and any(name in scope.places[next(iter(each.loads))][0] for name in self.kept)
            if phase not in each.phases or bound:
                continue
            pointer = self.pointer(each.array, each.type, each.base, each.loads, False)
            name = scope.free(f"{pointer.removesuffix('_row')}_pack")
            scope.expressions.helpers.add("load_pack")
            body(f"const Pack<{NAMES[each.type]}, {VECTOR}> {name} = load_pack<{VECTOR}>({pointer} + {self.first});")
            self._bind(each, name)
        outputs: list[tuple[Stage, str]] = []
        for stage in maps:
            name = self.results.get(stage.name, "")
            if stage.temporary and name not in self.kept:
                continue
            if not name:
                name = scope.free(f"{stage.name}_pack")
                body(f"Pack<{NAMES[stage.type]}, {VECTOR}> {name};")
                self.results[stage.name] = name
            if not stage.temporary:
                outputs.append((stage, name))
        return outputs

    def _elements(self, stages: list[Stage]) -> None:
        body, scope = self.body, self.scope
        inner = Text(depth=body.depth + 1)
        for stage in stages:
            if isinstance(stage.value, Reduce):
                self._accumulate(inner, stage)
                continue
            kind = TYPES[stage.type]
            load = Load(stage.name, stage.own_index)
            name = self.results.get(stage.name, "")
            if name:
                inner(f"{self._ref(name)} = {scope.expressions.stored(stage.value, kind)};")
                if not stage.primed:
                    scope.places[load] = (read(kind, self._ref(name)), computed(kind))
            else:
                exact = stage.value if computed(kind) == kind else Call(kind.name, (stage.value,))
                text = scope.expressions.of(exact, wanted=computed(kind))
                inner(f"const {NAMES[computed(kind).name]} {stage.name} = {text};")
                scope.places[load] = (stage.name, computed(kind))
        body("#pragma unroll")
        head = f"for (int {self.element} = 0; {self.element} < {VECTOR}; ++{self.element})"
        with body.block(head):
            for line in self._coordinates(str(inner)):
                body(line)
            body.lines += inner.lines

    def _coordinates(self, text: str) -> list[str]:
        """The dimensions within the row that the text names."""
        cols = self.shape.cols
        named = [each for each in cols if re.search(rf"\b{each}\b", text)]
        if not named:
            return []
        index = "int" if self.keeps else "long long"
        at = f"{self.first} + {self.element}"
        if len(cols) == 1:
            return [f"const {index} {cols[0]} = {at};"]
        lines: list[str] = []
        for place in range(len(cols) - 1, -1, -1):
            if cols[place] not in named:
                continue
            behind = product([self.formula.dims[each] for each in cols[place + 1 :]])
            extent = self.scope.expressions.of(self.formula.dims[cols[place]], PRODUCT + 1)
            whole = f"({at})" if behind == Num(1) else f"({at}) / {self._factor(behind)}"
            lines.append(f"const {index} {cols[place]} = {whole}{f' % {extent}' if place else ''};")
        return lines

    def _factor(self, node: Expr) -> str:
        return self.scope.expressions.of(node, PRODUCT + 1)

    def _store_pack(self, stage: Stage, name: str) -> None:
        tensor = self.scope.tensors[stage.name]
        load = Load(stage.name, stage.own_index)
        base = along(tensor, load, self.shape.cols, self.formula.dims)
        pack = f"{name}[{self.pack_index}]" if name in self.kept else name
        assert base is not None
        pointer = self.pointer(tensor.array, tensor.type, base, [load], True)
        helper = "stream_pack" if self.stream else "store_pack"
        self.scope.expressions.helpers.add(helper)
        guard = "if (is_row) " if self.keeps else ""
        self.moved.append((tensor.array, tensor.type, base))
        self.body(f"{guard}{helper}({pointer} + {self.first}, {pack});")

    # Reductions

    def _kinds(self, stage: Stage) -> tuple[Reduce, ElementType, ElementType, str]:
        node = stage.value
        assert isinstance(node, Reduce)
        of_body = self.scope.expressions.type_of(node.body)
        kind = TYPES[node.accumulate] if node.accumulate else computed(TYPES[stage.type])
        name = stage.name if stage.temporary else self.scope.free(f"{stage.name}_{node.op}")
        return node, of_body, kind, name

    def _declare(self, stage: Stage) -> None:
        node, of_body, kind, name = self._kinds(stage)
        if node.op in ("argmax", "argmin"):
            self.body(f"{NAMES[of_body.name]} {name}_best = {literal(identity(node.op, of_body), of_body)};")
            self.body(f"long long {name} = 0;")
        else:
            self.body(f"{NAMES[kind.name]} {name} = {self.scope.expressions.nothing(node, kind)};")

    def _accumulate(self, inner: Text, stage: Stage) -> None:
        node, of_body, kind, name = self._kinds(stage)
        is_place = node.op in ("argmax", "argmin")
        value = self.scope.expressions.of(node.body, wanted=of_body if is_place else kind)
        for line in combined(self.scope, node, name, value, of_body, kind):
            inner(line)

    def _meet(self, stage: Stage) -> None:
        node, _, kind, name = self._kinds(stage)
        helper = f"row_{node.op}"
        self.scope.expressions.helpers.add(helper)
        if node.op in ("argmax", "argmin"):
            self.body(f"{helper}<kLanes>({name}_best, {name});")
            kind = TYPES["i64"]
        else:
            self.body(f"{name} = {helper}<kLanes>({name});")
        self.scope.locals[stage.name] = (name, kind)
        self.results[stage.name] = name

    # Maximum and sum of exponentials in one pass

    def _online_pair(self, stages: list[Stage], phase: int) -> tuple[Stage, Stage] | None:
        later = [s for s in self.shape.stages if self.shape.phases[s.name] == phase + 1]
        both = [(is_sum_of_shifted(self.shape, s), s) for s in later]
        pair = next(((most, s) for most, s in both if most in stages), None)
        if pair is None or pair[0] is None or len(stages) > 1 or [s for s in later if s is not pair[1]]:
            return None
        return (pair[0], pair[1]) if pair[0].temporary and pair[1].temporary else None

    def _online(self, most: Stage, total: Stage) -> None:
        body, scope = self.body, self.scope
        node, _, kind, name = self._kinds(most)
        summed = self._kinds(total)[3]
        phase = self.shape.phases[most.name]
        kind_name = NAMES[kind.name]
        exp = "exp" if kind.name == "f64" else "expf"
        next_name, value_name = scope.free("next"), scope.free("values")
        body("// One pass: where the maximum grows, the sum so far is brought down to it.")
        self._declare(most)
        self._declare(total)
        scope.expressions.helpers |= {"max_of", "row_max", "row_sum"}
        with self._packs_loop():
            self._before_elements(phase, [])
            body(f"{kind_name} {value_name}[{VECTOR}];")
            body(f"{kind_name} {next_name} = {name};")
            inner = Text(depth=body.depth + 1)
            inner(f"{value_name}[{self.element}] = {scope.expressions.of(node.body, wanted=kind)};")
            inner(f"{next_name} = max_of({next_name}, {value_name}[{self.element}]);")
            head = f"for (int {self.element} = 0; {self.element} < {VECTOR}; ++{self.element})"
            body("#pragma unroll")
            with body.block(head):
                for line in self._coordinates(str(inner)):
                    body(line)
                body.lines += inner.lines
            body("// While all is -inf, the difference to the maximum would be no number.")
            with body.block(f"if ({next_name} != -INFINITY)"):
                body(f"{summed} *= {exp}({name} - {next_name});")
                body("#pragma unroll")
                with body.block(head):
                    body(f"{summed} += {exp}({value_name}[{self.element}] - {next_name});")
                body(f"{name} = {next_name};")
        own = scope.free(f"lane_{name}")
        body(f"const {kind_name} {own} = {name};")
        body(f"{name} = row_max<kLanes>({own});")
        body(f"{summed} = row_sum<kLanes>({own} == -INFINITY ? {literal(0, kind)} : {summed} * {exp}({own} - {name}));")
        body()
        for stage, text in ((most, name), (total, summed)):
            scope.locals[stage.name] = (text, kind)
            self.results[stage.name] = text

    # Around it

    def _store_row_values(self) -> None:
        stored = [each for each in self.shape.stages if not each.temporary and not self.shape.is_full(each)]
        if not stored:
            return
        lines = []
        for stage in stored:
            tensor = self.scope.tensors[stage.name]
            self.scope.stored[tensor.array] = None
            kind = TYPES[stage.type]
            own = (
                TYPES["i64"] if isinstance(stage.value, Reduce) and stage.value.op.startswith("arg") else computed(kind)
            )
            value = as_stored(kind, self.results[stage.name], own)
            lines.append(f"{self.scope.own_element(tensor, stage)} = {value};")
        guard = f"{self.lane} == 0 && is_row" if self.keeps else f"{self.lane} == 0"
        if len(lines) == 1:
            self.body(f"if ({guard}) {lines[0]}")
        else:
            with self.body.block(f"if ({guard})"):
                for line in lines:
                    self.body(line)

    def _kernel(self, name: str) -> Kernel:
        scope, shape = self.scope, self.shape
        body = "\n".join(self.body.lines).rstrip("\n ")
        count = product([self.formula.dims[each] for each in shape.rows])
        rows = scope.expressions.of(count, PRODUCT)
        head = Text(depth=1)
        if self.keeps:
            head("// kLanes threads share a row. At the end of the grid some have none: they stay for the shuffles and")
            head("// repeat the last one, but store nothing.")
            head(f"const int {self.lane} = threadIdx.x % kLanes;")
            own = scope.free("wanted")
            head(f"const long long {own} = static_cast<long long>(blockIdx.x) * kRows + threadIdx.x / kLanes;")
            head(f"const bool is_row = {own} < {rows};")
            head(f"const long long {self.row} = is_row ? {own} : static_cast<long long>({rows}) - 1;")
        else:
            head(f"const int {self.lane} = threadIdx.x;")
        inside = Text(depth=1)
        self._row_coordinates(inside, body)
        for pointer, (text, stored, kind) in self.pointers.items():
            inside(f"{'' if stored else 'const '}{NAMES[kind]}* const {pointer} = {text};")
        lines = [*inside.lines, *([""] if inside.lines else []), *body.split("\n")]
        if not self.keeps:
            loop = f"for (long long {self.row} = blockIdx.x; {self.row} < {rows}; {self.row} += gridDim.x) {{"
            lines = [f"    {loop}", *(f"    {each}" if each and each[0] != "#" else each for each in lines), "    }"]
        lines = [*head.lines, *lines]
        size_type = "int" if self.keeps else "long long"
        texts, parameters = scope.parameters(size_type)
        if self.keeps:
            template = f"template <int kLanes, int kRows, int kPerLane, int {VECTOR}>"
            bounds = "__launch_bounds__(kLanes * kRows)"
        else:
            template, bounds = f"template <int kLanes, int {VECTOR}>", "__launch_bounds__(kLanes)"
        signature = listed(texts, f"__global__ void {bounds} {name}(", ") {")
        types = {scope.type_named(each).name for each in scope.used if each in scope.tensors}
        return Kernel(
            name,
            "\n".join([template, *signature, *lines, "}"]),
            parameters,
            False,
            size_type,
            frozenset(scope.expressions.helpers | {"Pack"}),
            frozenset(types | scope.expressions.types),
        )

    def _row_coordinates(self, head: Text, text: str) -> None:
        rows = self.shape.rows
        if len(rows) == 1:
            return
        pointers = " ".join(each for each, _, _ in self.pointers.values())
        for place, dim in enumerate(rows):
            if not re.search(rf"\b{dim}\b", f"{text} {pointers}"):
                continue
            behind = product([self.formula.dims[each] for each in rows[place + 1 :]])
            whole = self.row if behind == Num(1) else f"{self.row} / {self._factor(behind)}"
            extent = self._factor(self.formula.dims[dim])
            head(f"const long long {dim} = {whole}{f' % {extent}' if place else ''};")


class _Loop:
    """Over the packs of a lane."""

    def __init__(self, rows: RowsText) -> None:
        self.rows = rows

    def __enter__(self) -> None:
        rows, body = self.rows, self.rows.body
        length = rows.scope.expressions.of(rows.length_expr, PRODUCT)
        if rows.keeps:
            index = rows.pack_index
            body("#pragma unroll")
            body(f"for (int {index} = 0; {index} < kPerLane; ++{index}) {{")
            body.depth += 1
            body(f"const int {rows.first} = ({index} * kLanes + {rows.lane}) * {VECTOR};")
            body(f"if ({rows.first} < {length}) {{")
            body.depth += 1
        else:
            body("#pragma unroll 4")
            step = f"kLanes * {VECTOR}"
            start = f"{rows.lane} * {VECTOR}"
            body(f"for (long long {rows.first} = {start}; {rows.first} < {length}; {rows.first} += {step}) {{")
            body.depth += 1

    def __exit__(self, *_: object) -> None:
        body = self.rows.body
        for _each in range(2 if self.rows.keeps else 1):
            body.depth -= 1
            body("}")


@dataclass(frozen=True)
class WrittenRows:
    """A kernel of rows, and which arrays it moves by packs: their types and where their rows begin."""

    kernel: Kernel
    moved: tuple[tuple[str, str, Polynomial], ...]


def rows_kernel(formula: Formula, shape: RowShape, schedule: Rows, name: str) -> WrittenRows:
    """The kernel, a template over lanes and packs."""
    made = RowsText(formula, shape, schedule.keep == "registers", schedule.online, schedule.stream)
    kernel = made.write(name)
    moved = [(each.array, each.type, each.base) for each in made.packs]
    moved += made.moved
    return WrittenRows(kernel, tuple(moved))


def rows_path(formula: Formula, shape: RowShape, schedule: Rows, made: WrittenRows) -> Path | None:
    """The launch and when it is right; None where no size makes it so."""
    conditions: list[Expr] = []
    kernel = made.kernel
    count = product([formula.dims[each] for each in shape.rows])
    length = product([formula.dims[each] for each in shape.cols])
    aligned: dict[str, int] = {}
    if schedule.keep == "registers":
        conditions.append(Call("<=", (length, Num(schedule.capacity))))
        conditions.append(Call("<=", (count, Num(MOST_INDEX))))
        named = (Name(each) for each in formula.sizes if each in kernel.parameters)
        conditions += [Call("<=", (each, Num(MOST_INDEX))) for each in named if each not in (count, length)]
    if schedule.vector > 1:
        by_pack = divisible(dict(length_of(length)), formula.sizes, schedule.vector)
        if by_pack is None:
            return None
        conditions += by_pack
        for array, kind, base in made.moved:
            more = divisible(base, formula.sizes, schedule.vector)
            if more is None:
                return None
            conditions += more
            bytes_at_once = min(16, schedule.vector * TYPES[kind].bits // 8)
            aligned[array] = max(aligned.get(array, 1), bytes_at_once)
    if schedule.keep == "registers":
        grid = ceiling(count, schedule.rows)
        template: tuple[int, ...] = (schedule.lanes, schedule.rows, schedule.per_lane, schedule.vector)
        reason = f"{_shared(schedule)} a row of up to {schedule.capacity} elements."
        threads = schedule.lanes * schedule.rows
    else:
        grid = Call("min", (count, Num(MOST_INDEX)))
        template = (schedule.lanes, schedule.vector)
        reason = "A block reads a row of any length anew for each pass."
        threads = schedule.lanes
    launch = Launch(kernel.name, (grid, Num(1), Num(1)), (threads, 1, 1), template=tuple(map(str, template)))
    left = unique(conditions)
    if any(is_constant(each) for each in left):  # and not true, or it would not be left
        return None
    return Path((launch,), left, aligned, reason)


def _shared(schedule: Rows) -> str:
    return (
        "A block keeps"
        if schedule.lanes > 32
        else f"{schedule.lanes} lanes keep"
        if schedule.lanes > 1
        else "A lane keeps"
    )


def length_of(length: Expr) -> Polynomial:
    """The length of a row as a polynomial."""
    found = polynomial(length)
    assert found is not None
    return found
