"""A kernel of rows being written: where its rows lie, the packs that it reads, loops over them, coordinates within."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from warpwright.formulas.bounds import Polynomial
from warpwright.formulas.model import Formula, Stage
from warpwright.formulas.tree import Expr, Load, Reduce, product, walk
from warpwright.formulas.types import TYPES, computed
from warpwright.schedules.access import along
from warpwright.schedules.model import Keep
from warpwright.schedules.shape import RowShape, common_base, without_full_temporaries
from warpwright.writer.expressions import PRODUCT, SUM
from warpwright.writer.places import base_expression, coordinates, inner_loads
from warpwright.writer.row_masks import limit
from warpwright.writer.row_stages import prepared
from warpwright.writer.scope import Scope
from warpwright.writer.text import Text
from warpwright.writer.types import NAMES, read

VECTOR = "kVector"


@dataclass(frozen=True)
class Packs:
    """An array that is read by packs: where its row begins, and the passes that read it. `moves`: each row has its
    own part of the array. `is_input`: no other lane of the row writes it before."""

    array: str
    type: str
    base: Polynomial
    loads: frozenset[Load]
    phases: frozenset[int]
    moves: bool
    is_input: bool

    @property
    def is_read_again(self) -> bool:
        return self.moves and self.is_input and len(self.phases) > 1


@dataclass
class RowText:
    """`keep` says where a row stays between passes. `stream`: results leave the caches first. `base` is where rows
    begin, if packs of all that they read and write of their own begin alike; only then they need not be whole packs."""

    formula: Formula
    shape: RowShape
    keep: Keep
    stream: bool = False
    body: Text = field(default_factory=lambda: Text(depth=1))
    pointers: dict[str, tuple[str, bool, str]] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)
    """The variable or the packs that hold a stage's value."""
    moved: list[tuple[str, str, Polynomial]] = field(default_factory=list)
    """Arrays that are written by packs."""
    kept: dict[str, None] = field(default_factory=dict)
    """Packs of a whole row in registers."""
    held: list[tuple[Packs, str]] = field(default_factory=list)
    """Arrays of which the row is read once, and where it stays."""
    met: Counter[str] = field(default_factory=Counter)
    based: tuple[str, str] = ("", "")
    """An array of which rows begin at `base`, and the pointer to its row."""
    is_single: bool = False
    """What is written now is for single elements."""
    scope: Scope = field(init=False)

    def __post_init__(self) -> None:
        scope = Scope(self.formula)
        if not self.in_registers:
            self.shape = without_full_temporaries(self.shape)
        self.formula = replace(self.formula, stages=self.shape.stages)

        def kind_of(node: Expr) -> str:
            return scope.expressions.type_of(node).name

        self.formula, self.shape = prepared(self.formula, self.shape, kind_of, keep=self.in_registers)
        self.scope = Scope(self.formula)
        self.scope.index_type = "long long"
        free = self.scope.free
        self.pack_index, self.element = free("i", "n", "i_"), free("j", "k", "m", "j_")
        self.row = self.shape.rows[0] if len(self.shape.rows) == 1 else free("own_row")
        self.first = free("first")
        self.lane = "lane"
        self.index = "int" if self.keep != "reload" else "long long"
        self.length_expr = product([self.formula.dims[each] for each in self.shape.cols])
        length = self.scope.expressions.of(self.length_expr, PRODUCT)
        self.columns = free("columns") if self.in_registers else length
        self.packs = self._found_packs()
        self.base = common_base(self.formula, self.shape) if self.keep != "reload" else None
        self.single, self.head, self.end = (free(each) for each in ("single", "head", "end"))

    @property
    def in_registers(self) -> bool:
        return self.keep == "registers"

    def in_loop(self, stage: Stage) -> bool:
        """Whether a pass over the row computes it."""
        return isinstance(stage.value, Reduce) or self.shape.is_full(stage)

    def factor(self, node: Expr) -> str:
        return self.scope.expressions.of(node, PRODUCT + 1)

    # What is read

    def _found_packs(self) -> list[Packs]:
        made = {each.name: each for each in self.shape.stages if not each.primed}
        found: dict[tuple[str, str], tuple[str, str, Polynomial, set[Load], set[int]]] = {}
        for stage in filter(self.in_loop, self.shape.stages):
            for load in (node for node in walk(stage.value) if isinstance(node, Load)):
                if load.tensor in made:
                    again = self.shape.is_full(made[load.tensor]) and not self.in_registers
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
        return [
            Packs(
                array,
                kind,
                base,
                frozenset(loads),
                frozenset(phases),
                any(n in self.shape.rows or n[0] == "@" for k in base for n in k),
                not any(each.tensor in made for each in loads),
            )
            for array, kind, base, loads, phases in found.values()
        ]

    def pointer(self, array: str, kind: str, base: Polynomial, loads: Iterable[Load], stored: bool) -> str:
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
        if base == self.base and not self.based[0]:
            self.based = (array, name)
        was = self.pointers.get(name, (text, False, kind))
        self.pointers[name] = (text, was[1] or stored or array in self.scope.stored, kind)
        return name

    def ref(self, name: str) -> str:
        """An element of a pack, or the single one."""
        if self.is_single:
            return f"{name.removesuffix('_kept').removesuffix('_pack')}_single"
        return f"{name}[{self.pack_index}].at[{self.element}]" if name in self.kept else f"{name}.at[{self.element}]"

    def bind(self, packs: Packs, name: str) -> None:
        """From here on what is read of an array stands in packs."""
        kind = TYPES[packs.type]
        for load in packs.loads:
            self.scope.places[load] = (read(kind, self.ref(name)), computed(kind))

    def keep_row(self) -> None:
        """Reads the row to where it stays."""
        body = self.body
        if self.in_registers:
            early = [each for each in self.packs if each.moves and (0 in each.phases or len(each.phases) > 1)]
            again = any(len(each.phases) > 1 for each in early)
            why = "The row is read once and stays in registers."
            body(f"// {why if again else 'All loads of the row are issued before the first of it is used.'}")
        else:
            early = [each for each in self.packs if each.is_read_again]
            body("// The row is read once. A lane reads back what it copied itself: no barrier is needed.")
        names: list[tuple[Packs, str, str]] = []
        for each in early:
            pointer = self.pointer(each.array, each.type, each.base, each.loads, False)
            name = self.scope.free(f"{pointer.removesuffix('_row')}_kept")
            names.append((each, name, pointer))
            self.held.append((each, name))
            if self.in_registers:
                self.declare_kept(name, each.type)
                self.bind(each, name)
        with self.packs_loop():
            for each, name, pointer in names:
                if self.in_registers:
                    body(f"{self._needed(each)}{name}[{self.pack_index}] = {self.loaded(each, pointer)};")
                else:
                    self.scope.expressions.helpers.add("copy_pack")
                    body(f"copy_pack<{VECTOR}>({name} + {self.first}, {pointer} + {self.first});")
        with self.singles():
            for _, name, pointer in names:
                place = self.ref(name) if self.in_registers else f"{name}[{self.single}]"
                self.body(f"{place} = {pointer}[{self.single}];")
        if not self.in_registers:
            body("__pipeline_commit();")
            body("__pipeline_wait_prior(0);")
        body()

    def _needed(self, packs: Packs) -> str:
        """A test whether anything of a pack is used."""
        found = limit(self.shape.stages, packs.loads, self.shape.cols)
        if found is None:
            return ""
        return f"if ({self.first} {found.name} {self.scope.expressions.of(found.args[1], SUM)}) "

    def declare_kept(self, name: str, kind: str) -> None:
        """Packs of a whole row in registers, and beside them a single element."""
        self.kept[name] = None
        self.body(f"Pack<{NAMES[kind]}, {VECTOR}> {name}[kPerLane];")
        if self.base is not None:
            self.is_single = True
            self.body(f"{NAMES[kind]} {self.ref(name)};")
            self.is_single = False

    def loaded(self, packs: Packs, source: str) -> str:
        """A pack of memory."""
        self.scope.expressions.helpers.add("load_pack")
        pack = f"load_pack<{VECTOR}>({source} + {self.first})"
        if self.base is None or packs.base == self.base:
            return pack
        other = "load_each" if packs.base else "load_shifted"
        self.scope.expressions.helpers.add(other)
        length = self.scope.expressions.of(self.length_expr)
        place = f"{source} + {self.first}" if packs.base else f"{source}, {self.first}, {length}"
        return f"kWhole ? {pack} : {other}<{VECTOR}>({place})"

    def is_kept(self, packs: Packs) -> bool:
        """Whether registers hold the row of an array."""
        return self.in_registers and any(each is packs for each, _ in self.held)

    def load(self, packs: Packs) -> None:
        """A pack within a loop."""
        source = next((name for each, name in self.held if each is packs), None)
        if source is None:
            source = self.pointer(packs.array, packs.type, packs.base, packs.loads, False)
        name = self.scope.free(f"{source.removesuffix('_row').removesuffix('_kept')}_pack")
        kind = NAMES[packs.type]
        if self.is_single:
            self.body(f"const {kind} {self.ref(name)} = {source}[{self.single}];")
        else:
            self.body(f"const Pack<{kind}, {VECTOR}> {name} = {self.loaded(packs, source)};")
        self.bind(packs, name)

    def shared_rows(self) -> list[str]:
        """The declarations of rows in shared memory: the widest type first, so that each begins where it may."""
        if self.in_registers or not self.held:
            return []
        space, held = self.scope.free("kept_rows"), self.scope.free("held")
        length = self.scope.expressions.of(self.length_expr, PRODUCT + 1)
        lines = [f"extern __shared__ __align__(16) unsigned char {space}[];"]
        moved = ""
        if self.base is not None:
            moved = f" + (kWhole ? 0 : {VECTOR} - {self.head})"
        if self.base is not None and len(self.held) > 1:
            lines.append(f"const int {held} = kWhole ? {length} : ({length} / {VECTOR} + 2) * {VECTOR};")
        at = space
        for packs, name in sorted(self.held, key=lambda each: -TYPES[each[0].type].bits):
            kind = NAMES[packs.type]
            lines.append(f"{kind}* const {name} = reinterpret_cast<{kind}*>({at}){moved};")
            at = f"{name}{moved.replace('+', '-')} + {held if moved else length}"
        return lines

    # Loops

    @contextmanager
    def packs_loop(self) -> Iterator[None]:
        """Over the packs of a lane."""
        body, first, end = self.body, self.first, self.columns
        begin = ""
        if self.base is not None:
            begin, end = f"{self.head} + ", self.end
        if self.in_registers:
            index = self.pack_index
            with body.unrolled(index, "kPerLane"):
                body(f"const int {first} = {begin}({index} * kLanes + {self.lane}) * {VECTOR};")
                with body.block(f"if ({first} < {end})"):
                    yield
            return
        body("#pragma unroll 4")
        start, step = f"{begin}{self.lane} * {VECTOR}", f"{first} += kLanes * {VECTOR}"
        with body.block(f"for ({self.index} {first} = {start}; {first} < {end}; {step})"):
            yield

    @contextmanager
    def singles(self) -> Iterator[None]:
        """For the single element of a lane, if it has one; what is written is dropped where rows are whole packs."""
        whole, places = self.body, dict(self.scope.places)
        self.body = Text(depth=whole.depth + 1)
        self.is_single = True
        for packs, name in self.held if self.in_registers else ():
            self.bind(packs, name)
        for stage in self.shape.stages:
            if self.results.get(stage.name) in self.kept and not stage.primed:
                kind = TYPES[stage.type]
                text = read(kind, self.ref(self.results[stage.name]))
                self.scope.places[Load(stage.name, stage.own_index)] = (text, computed(kind))
        yield
        made, self.body, self.is_single = self.body.lines, whole, False
        self.scope.places = places
        if self.base is not None:
            with whole.block(f"if (!kWhole && {self.single} < {self.columns})"):
                whole.lines += made

    def beginning(self) -> list[str]:
        """Where the packs of a row lie, and the single element of a lane."""
        if self.base is None:
            return []
        length = self.columns
        array, row = self.based
        rest = f"({VECTOR} - static_cast<int>(({row} - {array}) % {VECTOR})) % {VECTOR}"
        lane, head, end = self.lane, self.head, self.end
        return [
            "// Packs begin at aligned addresses. The elements of a row before and behind them are for single lanes.",
            f"const int {head} = kWhole ? 0 : min({rest}, {length});",
            f"const int {end} = kWhole ? {length} : {head} + ({length} - {head}) / {VECTOR} * {VECTOR};",
            f"const int {self.single} = {lane} < {head} ? {lane} : {end} + {lane} - {head};",
        ]

    @property
    def elements_loop(self) -> str:
        """Over the elements of a pack."""
        return f"for (int {self.element} = 0; {self.element} < {VECTOR}; ++{self.element})"

    def elements(self, inner: Text) -> None:
        """Lines for each element of a pack, with the dimensions within the row that they name. Of two, which a pack
        of no more elements than the inner one has crosses once at most, those of its first element are divided."""
        body, cols = self.body, self.shape.cols
        named = [each for each in cols if re.search(rf"\b{each}\b", str(inner))]
        number = f"const {self.index}"
        if self.is_single:
            body.lines += [f"{'    ' * body.depth}{each}" for each in self._coordinates(named, self.single)]
            body.lines += [line.removeprefix("    ") for line in inner.lines]
            return
        lines_of = self._coordinates(named, f"({self.first} + {self.element})")
        if len(cols) == 2 and named:
            extent = self.factor(self.formula.dims[cols[1]])
            outer, within = (self.scope.free(f"first_{each}") for each in cols)
            body(f"{number} {outer} = {self.first} / {extent};")
            body(f"{number} {within} = {self.first} % {extent};")
            at = f"{within} + {self.element}"
            lines = {
                cols[0]: f"{number} {cols[0]} = {at} < {extent} ? {outer} : {outer} + 1;",
                cols[1]: f"{number} {cols[1]} = {at} < {extent} ? {at} : {at} - {extent};",
            }
            lines_of = [lines[each] for each in named]
        body("#pragma unroll")
        with body.block(self.elements_loop):
            body.add(lines_of)
            body.lines += inner.lines

    def _coordinates(self, named: list[str], at: str) -> list[str]:
        return coordinates(self.scope.expressions, self.shape.cols, self.formula.dims, at, " ".join(named), self.index)
