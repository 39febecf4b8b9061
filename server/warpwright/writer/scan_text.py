"""What the kernels of scans have in common: which arrays are moved in packs, how values are read and written."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from warpwright.formulas.bounds import Polynomial
from warpwright.formulas.model import Formula, Stage, Tensor
from warpwright.formulas.tree import Expr, Load, Num, Reduce, product, walk
from warpwright.formulas.types import TYPES, ElementType, computed
from warpwright.schedules.access import along, varies
from warpwright.writer.code import Kernel
from warpwright.writer.expressions import PRODUCT
from warpwright.writer.lanes import JOINED, MEETING
from warpwright.writer.places import base_expression, coordinates, inner_loads
from warpwright.writer.pointwise import store
from warpwright.writer.scope import Scope
from warpwright.writer.text import Text
from warpwright.writer.types import NAMES, literal


@dataclass(frozen=True)
class Running:
    """`op` over all elements before one of `along`, or, in `reverse`, behind it, with the element itself where
    `closed`. `body` is what is reduced, `after` what is computed of the result. `rows` are the dimensions in front of
    `along`, `cols` those behind it."""

    stage: Stage
    op: str
    kind: ElementType
    body: Expr
    after: tuple[Stage, ...]
    kept: frozenset[str]
    along: str
    rows: tuple[str, ...]
    cols: tuple[str, ...]
    reverse: bool
    closed: bool
    exponentials: Stage | None = None
    """Of a maximum m: the sum of exp(body - m) over the same elements."""

    @property
    def registers(self) -> int:
        """How many a running value takes."""
        return max(1, self.kind.bits // 32) * (1 if self.exponentials is None else 2)

    @property
    def packed(self) -> tuple[str, ...]:
        """The dimensions that packs lie along."""
        return self.cols or (self.along,)

    @property
    def results(self) -> tuple[Stage, ...]:
        """The stages that are kept in memory."""
        sums = () if self.exponentials is None else (self.exponentials,)
        stages = (self.stage, *sums, *self.after)
        return tuple(each for each in stages if not each.temporary or each.name in self.kept)


@dataclass
class ScanText:
    """One kernel being written. `moved` are the arrays that are read or written in packs, by where: their names, types
    and where the first element lies."""

    formula: Formula
    found: Running
    scope: Scope = field(init=False)
    moved: dict[Load, tuple[str, str, Polynomial]] = field(init=False)

    def __post_init__(self) -> None:
        self.scope = Scope(self.formula)
        self.scope.index_type = "Index"
        found, dims = self.found, self.formula.dims
        free = self.scope.free
        self.element, self.pack = free("k", "m", "element"), free("p", "q", "pack")
        self.row = found.rows[0] if len(found.rows) == 1 else free("row")
        self.at = free("at")
        self.moved = {}
        own = {each.name for each in (found.stage, found.exponentials, *found.after) if each is not None}
        values = [found.body, *(each.value for each in found.after)]
        loads = [n for value in values for n in walk(value) if isinstance(n, Load) and n.tensor not in own]
        loads = [n for n in loads if varies(n.index, found.packed)]
        for load in (*loads, *(Load(each.name, each.own_index) for each in found.results)):
            tensor = self.scope.tensors[load.tensor]
            base = along(tensor, load, found.packed, dims)
            if base is not None and TYPES[tensor.type].bits <= 64:
                self.moved[load] = (tensor.array, tensor.type, base)

    @property
    def held(self) -> str:
        """The type of running values in C++."""
        name = NAMES[self.found.kind.name]
        return name if self.found.exponentials is None else f"Shifted<{name}>"

    @property
    def start(self) -> str:
        """What changes nothing, in C++."""
        if self.found.exponentials is not None:
            return f"{self.held}{{-INFINITY, {literal(0, self.found.kind)}}}"
        assert isinstance(self.found.stage.value, Reduce)
        return self.scope.expressions.nothing(self.found.stage.value, self.found.kind)

    def extent(self, *dims: str) -> str:
        """How many elements dimensions have, as a factor in C++."""
        return self.scope.expressions.of(product([self.formula.dims[each] for each in dims]), PRODUCT + 1)

    def joined(self, one: str, other: str) -> str:
        """Two running values as one."""
        self.scope.expressions.helpers |= set(MEETING.get(self.found.op, ()))
        return JOINED[self.found.op].format(a=one, b=other)

    def told(self, tensor: Tensor) -> str:
        """The array with which parts tell each other what they have."""
        return tensor.name if self.found.exponentials is None else f"reinterpret_cast<{self.held}*>({tensor.name})"

    def helper(self, name: str) -> str:
        """The name of a function on running values."""
        self.scope.expressions.helpers.add(f"{name}_{self.found.op}")
        return f"{name}_{self.found.op}"

    def place(self, load: Load) -> str:
        """Where the pack at `at` lies."""
        array, _, base = self.moved[load]
        self.scope.used[array] = None
        found = self.found
        length = Num(1) if found.cols else self.formula.dims[found.along]
        rows = found.rows if not found.cols else ()
        at = base_expression(base, rows, self.row, self.formula.dims, length, inner_loads(load))
        return self.scope.behind(array, at, self.at)

    def read_packs(self, body: Text, values: tuple[Expr, ...]) -> None:
        """Packs of the arrays that expressions read."""
        wanted = [n for value in values for n in walk(value) if isinstance(n, Load)]
        named: dict[str, str] = {}
        for load in (each for each in self.moved if each in wanted):
            self.scope.read_pack(body, load, self.place(load), named, self.element)

    def gathered(self, body: Text, target: str) -> None:
        """The values of a pack at `at`, into `target`."""
        self.read_packs(body, (self.found.body,))
        value = self.scope.expressions.of(self.found.body, wanted=self.found.kind)
        if self.found.exponentials is not None:
            value = f"{{{value}, {literal(1, self.found.kind)}}}"
        self.elements(body, [f"{target}[{self.element}] = {value};"])

    def elements(self, body: Text, lines: list[str]) -> None:
        """Lines for each element of a pack, behind the dimensions that they name."""
        with body.unrolled(self.element, "kVector"):
            flat = f"({self.at} + {self.element})"
            body.add(coordinates(self.scope.expressions, self.found.packed, self.formula.dims, flat, "\n".join(lines)))
            body.add(lines)

    def results(self, body: Text, value: str) -> None:
        """Writes the running value of each element of a pack at `at`, and what is computed of it."""
        found, scope = self.found, self.scope
        self.read_packs(body, tuple(each.value for each in found.after))
        inner = Text()
        own = scope.free(f"{found.stage.name}_{found.op}")
        inner(f"const {self.held} {own} = {value};")
        values = {found.stage.name: own}
        if found.exponentials is not None:
            values = {found.stage.name: f"{own}.most", found.exponentials.name: f"{own}.sum"}
        scope.locals.update({name: (text, found.kind) for name, text in values.items()})
        for stage in found.after:
            kind = computed(TYPES[stage.type])
            values[stage.name] = scope.free(f"{stage.name}_value")
            after = scope.expressions.held(stage.value, TYPES[stage.type])
            inner(f"const {NAMES[kind.name]} {values[stage.name]} = {after};")
            scope.locals[stage.name] = (values[stage.name], kind)
        behind: list[str] = []
        for stage in found.results:
            load = Load(stage.name, stage.own_index)
            if load not in self.moved:
                store(inner, scope, stage, values[stage.name])
                continue
            tensor, kind = scope.tensors[stage.name], TYPES[stage.type]
            scope.stored[tensor.array] = None
            pack = scope.free(f"{tensor.array}_result")
            body(f"Pack<{NAMES[kind.name]}, kVector> {pack};")
            value = scope.expressions.written(kind, values[stage.name], scope.locals[stage.name][1])
            inner(f"{pack}.at[{self.element}] = {value};")
            scope.expressions.helpers.add("store_pack")
            behind.append(f"store_pack({self.place(load)}, {pack});")
        self.elements(body, inner.lines)
        body.add(behind)

    def kernel(self, name: str, comment: str, template: str, threads: str, body: Text) -> Kernel:
        """The whole text."""
        return self.scope.kernel(name, threads, body.lines, template, said=comment)


def names_in(text: str, dims: tuple[str, ...]) -> bool:
    """Whether a text names one of the dimensions."""
    return any(re.search(rf"\b{each}\b", text) for each in dims)
