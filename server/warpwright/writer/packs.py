"""Element by element, packs of elements side by side for each thread."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from warpwright.formulas.bounds import Polynomial
from warpwright.formulas.model import Formula, Stage
from warpwright.formulas.tree import Call, Load, Name, Num, Reduce, product, walk
from warpwright.formulas.types import TYPES, computed
from warpwright.schedules.access import along, varies
from warpwright.schedules.model import Pointwise
from warpwright.writer.code import IN_64_BITS, Kernel, Launch, Path, Step, ceiling
from warpwright.writer.expressions import PRODUCT
from warpwright.writer.partition import Group
from warpwright.writer.places import base_expression, coordinates, divisible, inner_loads, packed, unique
from warpwright.writer.pointwise import within_int
from warpwright.writer.scope import Scope
from warpwright.writer.text import Text, listed
from warpwright.writer.types import NAMES, read

ANY = Pointwise(vector=1, packs=8)
"""What is right for arrays of any length that begin anywhere."""


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


def schedule_of(formula: Formula, group: Group, cols: tuple[str, ...]) -> Pointwise:
    """A pack is 16 bytes of the narrowest array, at most 32 of the widest one that is read, and 16 of the widest
    result: a warp that stores packs of more fills parts of sectors only. Where a load waits for another one, or for the
    place in its row, a thread has several packs under way."""
    scope = Scope(formula)
    loads = _loads(group)
    stored = [each.name for each in group.stages if not each.temporary or each.name in group.kept]
    sizes = {name: max(1, TYPES[scope.tensors[name].type].bits // 8) for name in (*(n.tensor for n in loads), *stored)}
    read = [sizes[n.tensor] for n in loads if varies(n.index, group.dims[: -len(cols)] or cols)]
    written = [sizes[name] for name in stored]
    vector = max(1, min(16 // min([*read, *written]), 32 // max(read, default=1), 16 // max(written)))
    gathers = any(isinstance(node, Load) for load in loads for index in load.index for node in walk(index))
    return Pointwise(vector=vector, packs=4 if gathers else 2 if len(cols) < len(group.dims) else 1)


def _loads(group: Group) -> list[Load]:
    """What is read from memory."""
    own = {each.name for each in group.stages if not each.primed}
    return [n for each in group.stages for n in walk(each.value) if isinstance(n, Load) and n.tensor not in own]


@dataclass
class PacksText:
    """One kernel being written. `whole`: rows are made of whole packs; else a pack may reach over the end of a row, and
    what does not run along all dimensions is read for each element by itself, as are the last elements of all."""

    formula: Formula
    group: Group
    cols: tuple[str, ...]
    whole: bool
    body: Text = field(init=False)
    moved: list[tuple[str, str, Polynomial]] = field(default_factory=list)
    scope: Scope = field(init=False)

    def __post_init__(self) -> None:
        self.body = Text(depth=2 if self.whole else 1)
        self.scope = Scope(self.formula)
        self.scope.index_type = "Index"
        free = self.scope.free
        self.first, self.count_name, self.column = free("first"), free("count"), free("column")
        self.element = free("j", "k", "m", "j_")
        self.rows = self.group.dims[: -len(self.cols)]
        self.row = self.rows[0] if len(self.rows) == 1 else free("own_row")
        self.count = product([self.formula.dims[each] for each in self.group.dims])
        if isinstance(self.count, Name):
            self.count_name = self.count.name
        self.length = product([self.formula.dims[each] for each in self.cols])

    def write(self, name: str) -> Kernel:
        """The kernel, a template over the type of indices and the packs."""
        scope, body = self.scope, self.body
        inner = Text(depth=body.depth + 1)
        packs: dict[tuple[str, str], str] = {}
        for load in dict.fromkeys(_loads(self.group)):
            tensor = scope.tensors[load.tensor]
            kind = TYPES[tensor.type]
            place = self._place(load)
            if place is None:
                continue
            text, base = place
            key = (tensor.array, text)
            if key not in packs:
                packs[key] = self._pack_name(tensor.array, packs.values())
                scope.used[tensor.array] = None
                scope.expressions.helpers.add("load_pack")
                self.moved.append((tensor.array, tensor.type, base))
                body(f"const Pack<{NAMES[tensor.type]}, kVector> {packs[key]} = load_pack<kVector>({text});")
            scope.places[load] = (read(kind, f"{packs[key]}.at[{self.element}]"), computed(kind))
        results: dict[str, Stage] = {}
        for stage in self.group.stages:
            kind = TYPES[stage.type]
            at = Load(stage.name, stage.own_index)
            if stage.temporary and stage.name not in self.group.kept:
                exact = stage.value if computed(kind) == kind else Call(kind.name, (stage.value,))
                text = scope.expressions.of(exact, wanted=computed(kind))
                inner(f"const {NAMES[computed(kind).name]} {stage.name} = {text};")
                scope.places[at] = (stage.name, computed(kind))
                continue
            pack = self._pack_name(stage.name, (*packs.values(), *results), "new", "result")
            body(f"Pack<{NAMES[stage.type]}, kVector> {pack};")
            inner(f"{pack}.at[{self.element}] = {scope.expressions.stored(stage.value, kind)};")
            if not stage.primed:
                scope.places[at] = (read(kind, f"{pack}.at[{self.element}]"), computed(kind))
            results[pack] = stage
        with body.unrolled(self.element, "kVector"):
            body.add(self._coordinates(str(inner)))
            body.lines += inner.lines
        scope.expressions.helpers.add("store_pack")
        for pack, stage in results.items():
            tensor = scope.tensors[stage.name]
            begin = along(tensor, Load(stage.name, stage.own_index), self.group.dims, self.formula.dims)
            assert begin is not None
            scope.used[tensor.array] = scope.stored[tensor.array] = None
            self.moved.append((tensor.array, tensor.type, begin))
            body(f"store_pack({tensor.array} + {self._flat(begin)}, {pack});")
        return self._kernel(name)

    def _pack_name(self, array: str, taken: Collection[str], *others: str) -> str:
        base = array.replace(".", "_").rstrip("_")
        names = [f"{base}_{each}" for each in ("pack", *others)]
        free = self.scope.free(*(each for each in names if each not in taken), names[-1])
        while free in taken:
            free += "_"
        return free

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
        return self.scope.behind(tensor.array, at, self.column), base

    def _flat(self, base: Polynomial) -> str:
        if not base:
            return self.first
        at = base_expression(base, (), "", self.formula.dims, Num(0), ())
        return f"{self.scope.expressions.of(at, PRODUCT)} + {self.first}"

    def _coordinates(self, text: str) -> list[str]:
        """The dimensions that the text names, of one element."""
        dims = self.cols if self.whole else self.group.dims
        at = f"({self.column if self.whole else self.first} + {self.element})"
        lines = coordinates(self.scope.expressions, dims, self.formula.dims, at, text)
        if len(lines) > 1:
            name = self.scope.free("at")
            head = f"const Index {name} = {at[1:-1]};"
            lines = [head, *coordinates(self.scope.expressions, dims, self.formula.dims, name, text)]
        return lines

    def _kernel(self, name: str) -> Kernel:
        scope, first = self.scope, self.first
        own_texts, own_parameters = scope.parameters("Index")
        count = scope.expressions.of(self.count, PRODUCT)
        kernel, function = Text(depth=1), ""
        if not self.whole and count != self.count_name:
            kernel(f"const Index {self.count_name} = {count};")
        with kernel.unrolled("pack", "kPacks"):
            number = "(static_cast<Index>(blockIdx.x) * kPacks + pack) * kThreads + threadIdx.x"
            kernel(f"const Index {first} = ({number}) * kVector;")
            if self.whole:
                kernel(f"if ({first} >= {count}) break;")
                kernel.add(self._row_lines(str(self.body)))
                kernel.lines += self.body.lines
            else:
                function = "\n".join([*self._function(f"{name}_elements", own_texts), ""])
                self._calls(kernel, f"{name}_elements", own_parameters)
        template = "typename Index, int kThreads, int kVector, int kPacks"
        return scope.kernel(name, "kThreads", kernel.lines, template, said=function)

    def _function(self, name: str, parameters: list[str]) -> list[str]:
        """What is done with one pack, as a function for packs of each length."""
        *more, last = dict.fromkeys(array for array in self.scope.arrays() if array in self.scope.stored)
        results = f"{', '.join(more)} and {last}" if more else last
        head = [f"// kVector elements of {results}, from `{self.first}` on.", "template <int kVector, typename Index>"]
        head += listed([*parameters, f"Index {self.first}"], f"__device__ __forceinline__ void {name}(", ") {")
        return [*head, *self.body.lines, "}"]

    def _calls(self, kernel: Text, name: str, arguments: Sequence[str]) -> None:
        at = self.scope.free("at")
        with kernel.block(f"if ({self.first} + kVector <= {self.count_name})", "} else {"):
            kernel(f"{name}<kVector>({', '.join([*arguments, self.first])});")
        kernel.depth += 1
        kernel("#pragma unroll 1")
        with kernel.block(f"for (Index {at} = {self.first}; {at} < {self.count_name}; ++{at})"):
            kernel(f"{name}<1>({', '.join([*arguments, at])});")
        kernel.depth -= 1
        kernel("}")

    def _row_lines(self, text: str) -> list[str]:
        """The row and the column in it, where they are named."""
        length = self.scope.expressions.of(self.length, PRODUCT + 1)
        names_column = re.search(rf"\b{self.column}\b", text)
        if not self.rows:
            return [f"const Index {self.column} = {self.first};"] if names_column else []
        lines: list[str] = []
        split = []
        if len(self.rows) > 1:
            split = coordinates(self.scope.expressions, self.rows, self.formula.dims, self.row, text)
        if split or re.search(rf"\b{self.row}\b", text):
            lines.append(f"const Index {self.row} = {self.first} / {length};")
        if names_column:
            lines.append(f"const Index {self.column} = {self.first} % {length};")
        return [*lines, *split]


def packs(formula: Formula, group: Group, name: str, schedule: Pointwise) -> tuple[list[Kernel], Step] | str:
    """The kernels of a group and their launches, the general one last; or why packs do not fit."""
    cols = columns_of(formula, group)
    if isinstance(cols, str):
        return cols
    kernels: list[Kernel] = []
    paths: list[Path] = []
    slack = max(each.threads * each.vector * each.packs for each in (schedule, ANY))
    # Where all arrays run along all dimensions, a pack may reach over the end of a row.
    for whole in (False,) if len(cols) == len(group.dims) else (True, False):
        text = PacksText(formula, group, cols, whole)
        kernel = text.write(f"{name}_rows" if whole else name)
        found = _paths(text, kernel, schedule, slack) if schedule.vector > 1 or whole else []
        found += [] if whole else _paths(text, kernel, ANY, slack)
        if found:
            kernels.append(kernel)
            paths += found
    return kernels, Step(tuple(paths), text.count)


def _paths(text: PacksText, kernel: Kernel, schedule: Pointwise, slack: int) -> list[Path]:
    """With indices of 32 bits, and of 64. The threads of the last block reach beyond the last element by at most
    `slack`."""
    fits = packed(text.moved, [text.length] if text.whole else [], text.formula.sizes, schedule.vector)
    if fits is None:
        return []
    conditions, aligned = fits
    small = within_int(text.scope, text.count, slack)
    grid = ceiling(text.count, schedule.threads * schedule.vector * schedule.packs)
    if schedule.vector == 1:
        said = "Any length and alignment: element by element."
    elif text.whole:
        said = "Rows are made of whole packs."
    else:
        said = "Whole packs; what is left behind the last one is taken element by element."
    found = []
    for index in ("int", "long long"):
        template = (index, str(schedule.threads), str(schedule.vector), str(schedule.packs))
        launch = Launch(kernel.name, (grid, Num(1), Num(1)), (schedule.threads, 1, 1), index, template=template)
        both = (*conditions, *small) if index == "int" else tuple(conditions)
        reason = said if index == "int" else IN_64_BITS
        found.append(Path((launch,), unique(both), aligned, reason, schedule))
    return found
