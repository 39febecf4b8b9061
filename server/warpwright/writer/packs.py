"""Element by element, a pack of elements side by side for each thread."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from warpwright.formulas.bounds import Polynomial
from warpwright.formulas.model import Formula, Stage
from warpwright.formulas.tree import Call, Expr, Load, Num, Reduce, product, walk
from warpwright.formulas.types import TYPES, computed
from warpwright.schedules.access import along, varies
from warpwright.schedules.model import Pointwise
from warpwright.writer.code import MOST_INDEX, Kernel, Launch, Path, Step, ceiling
from warpwright.writer.expressions import PRODUCT
from warpwright.writer.partition import Group
from warpwright.writer.places import base_expression, divisible, inner_loads, unique
from warpwright.writer.pointwise import pointwise, reach
from warpwright.writer.scope import Scope
from warpwright.writer.text import Text, listed
from warpwright.writer.types import NAMES, read


def columns_of(formula: Formula, group: Group) -> tuple[str, ...] | str:
    """The dimensions along which packs lie: the longest end of the group's such that every array runs along it or is
    the same for all of it; or why there is none."""
    if group.is_scatter or not group.dims or any(isinstance(each.value, Reduce) for each in group.stages):
        return "It is not computed element by element."
    if any(TYPES[each.type].bits > 64 for each in group.stages):
        return "Its elements are as wide as a pack."
    scope = Scope(formula)
    own = {each.name for each in group.stages if not each.primed}
    loads = [n for each in group.stages for n in walk(each.value) if isinstance(n, Load) and n.tensor not in own]
    stored = [Load(each.name, each.own_index) for each in group.stages if not each.temporary or each.name in group.kept]
    for first in range(len(group.dims)):
        cols = group.dims[first:]
        if any(along(scope.tensors[each.tensor], each, group.dims, formula.dims) is None for each in stored):
            break
        runs = (
            along(scope.tensors[n.tensor], n, cols, formula.dims) is not None for n in loads if varies(n.index, cols)
        )
        outside = any(n.outside is not None for n in loads)
        if all(runs) and not outside:
            return cols
    return "Its arrays do not run along one dimension together."


def vector_of(formula: Formula, group: Group, cols: tuple[str, ...]) -> int:
    """How many elements are 16 bytes of the narrowest array, and at most 32 of the widest."""
    scope = Scope(formula)
    own = {each.name for each in group.stages if not each.primed}
    loads = [n for each in group.stages for n in walk(each.value) if isinstance(n, Load) and n.tensor not in own]
    names = {n.tensor for n in loads if varies(n.index, group.dims[: -len(cols)] or cols)}
    names |= {each.name for each in group.stages if not each.temporary or each.name in group.kept}
    sizes = [max(1, TYPES[scope.tensors[name].type].bits // 8) for name in names]
    return max(1, min(16 // min(sizes), 32 // max(sizes)))


@dataclass
class PacksText:
    """One kernel being written. `whole`: rows are made of whole packs; else a pack may reach over the end of one, and
    what does not run along all dimensions is read for each element by itself."""

    formula: Formula
    group: Group
    cols: tuple[str, ...]
    whole: bool
    body: Text = field(default_factory=lambda: Text(depth=2))
    moved: list[tuple[str, str, Polynomial]] = field(default_factory=list)
    scope: Scope = field(init=False)

    def __post_init__(self) -> None:
        self.scope = Scope(self.formula)
        self.scope.index_type = "Index"
        free = self.scope.free
        self.first, self.element, self.count_name = (
            free("first"),
            next(
                n
                for n in ("j", "k", "m", "j_")
                if n not in {*self.formula.dims, *self.scope.tensors, *self.formula.scalars}
            ),
            free("count"),
        )
        rows = self.group.dims[: -len(self.cols)]
        self.rows = rows
        self.row = rows[0] if len(rows) == 1 else free("own_row")
        self.column = free("column")
        self.count = product([self.formula.dims[each] for each in self.group.dims])
        self.length = product([self.formula.dims[each] for each in self.cols])

    def write(self, name: str) -> Kernel:
        """The kernel, a template over the type of indices and the packs."""
        scope, body = self.scope, self.body
        own = {each.name for each in self.group.stages if not each.primed}
        loads = dict.fromkeys(
            n for each in self.group.stages for n in walk(each.value) if isinstance(n, Load) and n.tensor not in own
        )
        inner = Text(depth=3)
        packs: dict[tuple[str, str], str] = {}
        for load in loads:
            tensor = scope.tensors[load.tensor]
            kind = TYPES[tensor.type]
            place = self._place(load)
            if place is None:
                continue
            text, base = place
            key = (tensor.array, text)
            if key not in packs:
                packs[key] = scope.free(f"{tensor.array}_pack")
                while list(packs.values()).count(packs[key]) > 1:
                    packs[key] += "_"
                scope.used[tensor.array] = None
                self.moved.append((tensor.array, tensor.type, base))
                body(f"const Pack<{NAMES[tensor.type]}, kVector> {packs[key]} = {self._loaded(text)};")
            scope.places[load] = (read(kind, f"{packs[key]}.at[{self.element}]"), computed(kind))
        results: list[tuple[Stage, str]] = []
        for stage in self.group.stages:
            kind = TYPES[stage.type]
            at = Load(stage.name, stage.own_index)
            if stage.temporary and stage.name not in self.group.kept:
                exact = stage.value if computed(kind) == kind else Call(kind.name, (stage.value,))
                text = scope.expressions.of(exact, wanted=computed(kind))
                inner(f"const {NAMES[computed(kind).name]} {stage.name} = {text};")
                scope.places[at] = (stage.name, computed(kind))
                continue
            pack = scope.free(
                f"{stage.name}_pack" if f"{stage.name}_pack" not in packs.values() else f"{stage.name}_new"
            )
            body(f"Pack<{NAMES[stage.type]}, kVector> {pack};")
            inner(f"{pack}.at[{self.element}] = {scope.expressions.stored(stage.value, kind)};")
            if not stage.primed:
                scope.places[at] = (read(kind, f"{pack}.at[{self.element}]"), computed(kind))
            results.append((stage, pack))
        body("#pragma unroll")
        with body.block(f"for (int {self.element} = 0; {self.element} < kVector; ++{self.element})"):
            for line in self._coordinates(str(inner)):
                body(line)
            body.lines += inner.lines
        for stage, pack in results:
            tensor = scope.tensors[stage.name]
            begin = along(tensor, Load(stage.name, stage.own_index), self.group.dims, self.formula.dims)
            assert begin is not None
            scope.used[tensor.array] = scope.stored[tensor.array] = None
            self.moved.append((tensor.array, tensor.type, begin))
            helper = "store_pack" if self.whole else "store_some"
            scope.expressions.helpers.add(helper)
            rest = "" if self.whole else f", {self.count_name} - {self.first}"
            body(f"{helper}({tensor.array} + {self._flat(begin)}, {pack}{rest});")
        return self._kernel(name)

    def _place(self, load: Load) -> tuple[str, Polynomial] | None:
        """Where a pack of a load begins; None where it is read for each element, or is the same for all of a row."""
        tensor = self.scope.tensors[load.tensor]
        whole = along(tensor, load, self.group.dims, self.formula.dims)
        if whole is not None and divisible(whole, self.formula.sizes, 2) is not None:
            return f"{tensor.array} + {self._flat(whole)}", whole
        base = along(tensor, load, self.cols, self.formula.dims)
        if base is None or not self.whole or divisible(base, self.formula.sizes, 2) is None:
            return None
        at = base_expression(base, self.rows, self.row, self.formula.dims, self.length, inner_loads(load))
        before = "" if at == Num(0) else f"{self.scope.expressions.of(at, PRODUCT)} + "
        return f"{tensor.array} + {before}{self.column}", base

    def _flat(self, base: Polynomial) -> str:
        if not base:
            return self.first
        at = base_expression(base, (), "", self.formula.dims, Num(0), ())
        return f"{self.scope.expressions.of(at, PRODUCT)} + {self.first}"

    def _loaded(self, text: str) -> str:
        helper = "load_pack" if self.whole else "load_some"
        self.scope.expressions.helpers.add(helper)
        return f"{helper}<kVector>({text}{'' if self.whole else f', {self.count_name} - {self.first}'})"

    def _coordinates(self, text: str) -> list[str]:
        """The dimensions that the text names, of one element."""
        named = [each for each in self.group.dims if re.search(rf"\b{each}\b", text)]
        if self.whole:
            named = [each for each in named if each in self.cols]
        if not named:
            return []
        dims = self.cols if self.whole else self.group.dims
        lines: list[str] = []
        if self.whole:
            at = f"({self.column} + {self.element})"
        else:
            at = self.scope.free("at")
            text = f"{self.first} + {self.element}"
            lines.append(f"const Index {at} = {text} < {self.count_name} ? {text} : {self.count_name} - 1;")
        for place in range(len(dims) - 1, -1, -1):
            if dims[place] in named:
                lines.append(f"const Index {dims[place]} = {self._split(at, dims, place)};")
        return lines

    def _split(self, at: str, dims: tuple[str, ...], place: int) -> str:
        behind = product([self.formula.dims[each] for each in dims[place + 1 :]])
        whole = at if behind == Num(1) else f"{at} / {self._factor(behind)}"
        is_first = place == 0
        text = f"{whole}{'' if is_first else f' % {self._factor(self.formula.dims[dims[place]])}'}"
        return text[1:-1] if text == at and at.startswith("(") else text

    def _factor(self, node: Expr) -> str:
        return self.scope.expressions.of(node, PRODUCT + 1)

    def _kernel(self, name: str) -> Kernel:
        scope = self.scope
        text = str(self.body)
        head = Text(depth=2)
        number = "(static_cast<Index>(blockIdx.x) * kPacks + pack) * kThreads + threadIdx.x"
        head(f"const Index {self.first} = ({number}) * kVector;")
        count = scope.expressions.of(self.count, PRODUCT)
        if re.search(rf"\b{self.count_name}\b", text):
            limit = self.count_name
            begin = [f"    const Index {limit} = {count};"]
        else:
            limit, begin = count, []
        head(f"if ({self.first} >= {limit}) break;")
        if self.whole:
            for line in self._row_lines(text):
                head(line)
        lines = [
            *begin,
            "#pragma unroll",
            "    for (int pack = 0; pack < kPacks; ++pack) {",
            *head.lines,
            text,
            "    }",
        ]
        texts, parameters = scope.parameters("Index")
        head_lines = ["template <typename Index, int kThreads, int kVector, int kPacks>"]
        head_lines += listed(texts, f"__global__ void __launch_bounds__(kThreads) {name}(", ") {")
        types = {scope.type_named(each).name for each in scope.used if each in scope.tensors}
        helpers = frozenset(scope.expressions.helpers | {"Pack"})
        body = "\n".join([*head_lines, *lines, "}"])
        return Kernel(name, body, parameters, True, "long long", helpers, frozenset(types | scope.expressions.types))

    def _row_lines(self, text: str) -> list[str]:
        """The row and the column in it, where they are named."""
        length = self._factor(self.length)
        lines: list[str] = []
        if not self.rows:
            return [f"const Index {self.column} = {self.first};"] if re.search(rf"\b{self.column}\b", text) else []
        names = [each for each in self.rows if re.search(rf"\b{each}\b", text)]
        needs_row = bool(names) or re.search(rf"\b{self.row}\b", text)
        if needs_row:
            lines.append(f"const Index {self.row} = {self.first} / {length};")
        if re.search(rf"\b{self.column}\b", text):
            lines.append(f"const Index {self.column} = {self.first} % {length};")
        if len(self.rows) > 1:
            for place, dim in enumerate(self.rows):
                if dim in names:
                    lines.append(f"const Index {dim} = {self._split(self.row, self.rows, place)};")
        return lines


def packs(
    formula: Formula, group: Group, name: str, schedules: tuple[Pointwise, ...]
) -> tuple[list[Kernel], Step] | str:
    """The kernels of a group and their launches, the general one last; or why packs do not fit."""
    cols = columns_of(formula, group)
    if isinstance(cols, str):
        return cols
    plain_kernel, plain_step = pointwise(formula, group, f"{name}_plain")
    flat = len(cols) == len(group.dims)
    kernels: list[Kernel] = []
    paths: list[Path] = []
    for whole in (True, False):
        # Where all arrays run along all dimensions, a pack may reach over the end of a row.
        if whole and flat:
            continue
        text = PacksText(formula, group, cols, whole)
        kernel = text.write(f"{name}_rows" if whole else name)
        found = [_paths(text, kernel, each) for each in schedules]
        if any(found):
            kernels.append(kernel)
            paths += [path for each in found for path in each]
    return [*kernels, plain_kernel], Step((*paths, *plain_step.paths), plain_step.count)


def _paths(text: PacksText, kernel: Kernel, schedule: Pointwise) -> list[Path]:
    formula, conditions = text.formula, []
    aligned: dict[str, int] = {}
    for array, kind, base in text.moved:
        more = divisible(base, formula.sizes, schedule.vector)
        if more is None:
            return []
        # The row itself begins at a whole pack where its length is one of whole packs.
        conditions += more if text.whole or base else []
        aligned[array] = min(16, schedule.vector * TYPES[kind].bits // 8)
    if text.whole:
        length = divisible(
            {("@row", *key): factor for key, factor in _poly(text.length).items()}, formula.sizes, schedule.vector
        )
        if length is None:
            return []
        conditions += length
    small = [Call("<=", (text.count, Num(MOST_INDEX - 2 * 1024 * 16 * 8)))]
    arrays = [each for name, each in text.scope.tensors.items() if name in text.scope.used]
    small += [Call("<=", (reach(each), Num(MOST_INDEX))) for each in arrays]
    grid = ceiling(text.count, schedule.threads * schedule.vector * schedule.packs)
    found = []
    for index in ("int", "long long"):
        template = (index, str(schedule.threads), str(schedule.vector), str(schedule.packs))
        launch = Launch(kernel.name, (grid, Num(1), Num(1)), (schedule.threads, 1, 1), index, template=template)
        both = (*conditions, *small) if index == "int" else tuple(conditions)
        said = "Rows are made of whole packs" if text.whole else "A thread takes a pack of elements side by side"
        found.append(Path((launch,), unique(both), aligned, f"{said}."))
    return found


def _poly(node: Expr) -> Polynomial:
    from warpwright.writer.rows import length_of

    return length_of(node)
