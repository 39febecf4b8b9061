"""A product in names of C++: its indices, places in memory, expressions, and what launches ask of its sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from warpwright.formulas.bounds import Polynomial, expression, polynomial
from warpwright.formulas.extents import at_sizes, is_constant
from warpwright.formulas.model import Formula, Stage
from warpwright.formulas.normal import identity, tensors_of
from warpwright.formulas.printer import shown
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, product, walk
from warpwright.formulas.types import TYPES, ElementType, computed
from warpwright.schedules.access import flat
from warpwright.writer.code import MOST_INDEX, ceiling
from warpwright.writer.contraction import CoreText
from warpwright.writer.contraction_parts import Operand, Product
from warpwright.writer.contraction_sides import Side
from warpwright.writer.expressions import PRODUCT
from warpwright.writer.partition import Group
from warpwright.writer.places import coordinate, divisible, unique
from warpwright.writer.pointwise import combined
from warpwright.writer.product_shape import LEFT, RIGHT, Places, Shape
from warpwright.writer.product_shape import Side as Values
from warpwright.writer.scope import Scope
from warpwright.writer.text import Text
from warpwright.writer.types import NAMES, literal, read

_OWN = """
ahead along at band band_rows batch block both col cols count depth down down_row each fetch filling first
first_col first_row from half in_band in_tile is_there k_begin k_end lane last left length load_fragments next nth
number part part_sums parts put reading result results right row rows share shared shared_at shared_end slice slices
stage step sums thread thread_col thread_row tile tile_cols tile_rows tiles to total totals turned values warp
warp_col warp_row whole staged top word fetched piece place
"""
OWN_NAMES = frozenset(_OWN.split())
"""What the texts of kernels call their own."""
_TENSOR_TYPES = ("f16", "bf16")


@dataclass
class ProductText:
    """One product of a group of stages."""

    formula: Formula
    group: Group
    shape: Shape

    def __post_init__(self) -> None:
        shape = self.shape
        self.out = shape.out
        self.dims = {"batch": shape.batch, "row": shape.rows, "col": shape.cols, "depth": shape.depth}
        of = self.formula.dims
        self.extents = {key: product([of[each] for each in names]) for key, names in self.dims.items()}
        plain = Scope(self.formula).expressions
        types = [plain.type_of(each.value) for each in (shape.left, shape.right)]
        self.left_type, self.right_type = types
        self.sum_type = TYPES[shape.reduce.accumulate] if shape.reduce.accumulate else computed(TYPES[shape.stage.type])
        sides = zip(("left", "right"), types, strict=True)
        stages = (Stage(name, (), Num(0), kind.name, temporary=True) for name, kind in sides)
        self.formula = replace(self.formula, stages=(*self.formula.stages, *stages))
        self.places = Places(self.formula, tensors_of(self.formula))

    @property
    def words(self) -> int:
        """32-bit words of a sum."""
        return -(-self.sum_type.bits // 32)

    def refusal(self) -> str:
        """Why no kernel is written for it, "" where one is."""
        if clash := OWN_NAMES & set(self.formula.sizes):
            return f"{min(clash)} is a name of the kernel's own."
        kinds = (self.left_type, self.right_type, self.sum_type)
        if self.words > 2 or any(each.kind == "bool" or each.bits > 32 * self.words for each in kinds):
            return "Sums take one or two words, and operands no more."
        if self.shape.padding and not all(each.is_float for each in kinds):
            return "Whole numbers have no infinity to stand beyond the end."
        return ""

    def tensor_refusal(self) -> str:
        """Why tensor cores do not compute it, "" where they do."""
        shape = self.shape
        kinds = {self.formula.type_of(each.loads[0].tensor).name for each in (shape.left, shape.right)}
        if (
            not (shape.left.is_plain and shape.right.is_plain)
            or shape.body not in _PRODUCTS
            or shape.reduce.op != "sum"
        ):
            return "Tensor cores multiply elements of two arrays, and add up."
        if len(kinds) != 1 or not kinds <= {*_TENSOR_TYPES} or self.sum_type.name != "f32":
            return "Tensor cores multiply f16 and bf16, added up in f32."
        if self.out.type not in ("f32", *kinds):
            return f"A product of {min(kinds)} is not stored as {self.out.type}."
        for each in self.group.stages:
            if each is not shape.stage and Scope(self.formula).expressions.type_of(each.value).name != "f32":
                return "What is done to the elements is not computed in f32."
        if not all(self._in_rows(side) for side in (shape.left, shape.right)):
            return "The elements of an operand do not lie in rows."
        if flat(shape.batch + shape.rows + shape.cols, self.formula.dims) != self._out_offset():
            return "The results do not lie in rows."
        return ""

    def _in_rows(self, side: Values) -> bool:
        """Whether an operand is packed, row after row."""
        load, depth = side.loads[0], self.shape.depth
        own = side.free + depth if side.inner == "depth" else depth + side.free
        return flat((*self.batch_of(load), *own), self.formula.dims) == self.places.offset(load)

    def batch_of(self, load: Load) -> tuple[str, ...]:
        """The dimensions of the batch that an array has."""
        return tuple(each for each in self.shape.batch if any(each in key for key in self.places.offset(load) or ()))

    def _out_offset(self) -> Polynomial | None:
        return self.places.offset(self.out_load)

    @property
    def out_load(self) -> Load:
        return Load(self.out.name, tuple(map(Name, self.out.dims)))

    def scope(self) -> Scope:
        scope = Scope(self.formula)
        scope.index_type = "long long"
        for name in self.dims["batch"]:
            scope.renamed[name] = self._index("batch", name)
        return scope

    # Text

    def _index(self, key: str, name: str, index: str = "") -> str:
        """A dimension in terms of the index that it is part of."""
        whole = index or key
        text = coordinate(Scope(self.formula).expressions, self.dims[key], self.formula.dims, whole, name)
        return text if text == whole else f"({text})"

    def _place(self, scope: Scope, load: Load, indices: Mapping[str, str], *, start: bool = True) -> str:
        """How many elements behind its array's start an element lies, as far as some indices tell, and with `start`
        what no index does; "" for none."""
        terms: list[str] = []
        whole = self.places.offset(load) or {}
        for key, index in indices.items():
            names = self.dims[key]
            step = self.places.stride(load, names)
            steps = {index: step} if step is not None else {}
            for name in names if step is None else ():
                own = {tuple(n for n in one if n != name): f for one, f in whole.items() if name in one}
                at = self._index(key, name, index)
                steps[f"static_cast<long long>{at}" if key == "depth" else at] = own
            terms += [_term(scope, each, factor) for each, factor in steps.items() if factor]
        rest = {key: factor for key, factor in whole.items() if not set(key) & self.formula.dims.keys()}
        return " + ".join([*terms, scope.expressions.of(expression(rest), PRODUCT)] if rest and start else terms)

    def operands(self, scope: Scope) -> list[list[Operand]]:
        """Of both sides, by names of their own: those of their arrays, where each is read once."""
        sides = {"row": self.shape.left, "col": self.shape.right}
        every = [scope.tensors[each.tensor].array for side in sides.values() for each in side.loads]
        found: list[list[Operand]] = []
        for free, side in sides.items():
            found.append([])
            for number, load in enumerate(side.loads):
                tensor = scope.tensors[load.tensor]
                scope.used[tensor.array] = None
                name = tensor.array if every.count(tensor.array) == 1 else f"{tensor.array}_{free}{number or ''}"
                varies = self.places.stride(load, self.shape.depth) is None
                steps = [self.places.stride(load, self.dims[key]) or {} for key in (free, "depth")]
                step, leading = (
                    scope.expressions.of(expression(each), PRODUCT)
                    for each in (steps[1], steps[0] if side.inner == "depth" else steps[1])
                )
                batch = self._place(scope, load, {"batch": "batch"}, start=False)
                at = self._place(scope, load, {free: "@"})
                depth = self._place(scope, load, {"depth": "depth"}, start=False) if varies else ""
                kind = NAMES[tensor.type]
                found[-1].append(Operand(name, tensor.array, kind, side.inner, batch, at, step, leading, depth))
        return found

    def product(
        self,
        name: str,
        scope: Scope,
        operands: list[list[Operand]],
        *,
        others: Mapping[str, str] | None = None,
        result: bool = True,
        stored: bool = True,
    ) -> tuple[Product, tuple[str, ...]]:
        """The product with the names of one kernel, and the kernel's parameters. `others` are arrays between kernels
        and how they are declared, `result` says whether it has the result, `stored` whether the function of the
        epilogue gives what memory holds."""
        if result:
            scope.used[self.out.name] = scope.stored[self.out.name] = None
        epilogue = self._epilogue(scope, stored=stored) if result else ""
        names: dict[str, str] = {}
        lines: list[str] = []
        for key, own in (("row", "rows"), ("col", "cols"), ("depth", "length")):
            extent = self.extents[key]
            text = scope.expressions.of(extent)
            names[key] = text if isinstance(extent, Name | Num) else own
            if names[key] != text:
                lines.append(f"const int {own} = {text};")
        batches = scope.expressions.of(self.extents["batch"], PRODUCT) if self.shape.batch else ""
        out_batch = self._place(scope, self.out_load, {"batch": "batch"})
        texts, parameters = scope.parameters("int")
        count = len(scope.arrays())
        if others:
            texts[count:count] = others.values()
            parameters = (*parameters[:count], *others, *parameters[count:])
        first, second = operands
        made = Product(
            name,
            self._said(),
            (first[0], second[0], *first[1:], *second[1:]),
            self.out.name,
            self.formula.type_of(self.shape.left.loads[0].tensor).name,
            self.out.type,
            names["row"],
            names["col"],
            names["depth"],
            tuple(texts),
            batches,
            out_batch,
            "".join(f"{each}\n" for each in lines),
            epilogue,
        )
        return made, parameters

    def core(
        self, name: str, scope: Scope, others: Mapping[str, str], *, is_split: bool, is_total: bool = False
    ) -> tuple[CoreText, tuple[str, ...]]:
        """What a kernel without tensor cores is made of, and its parameters; `is_total`: it reads no operands."""
        reading = self.scope() if is_total else scope
        operands = self.operands(reading)
        left = self._side(reading, self.shape.left, operands[0], self.left_type, "row")
        right = self._side(reading, self.shape.right, operands[1], self.right_type, "col")
        made, parameters = self.product(name, scope, operands, others=others)
        scope.locals["left"] = ("left[down]", self.left_type)
        scope.locals["right"] = ("right[along]", self.right_type)
        body, node, kind = self.shape.body, self.shape.reduce, self.sum_type
        own = scope.expressions.type_of(body)
        value = scope.expressions.of(body, wanted=kind)
        (accumulate,) = combined(scope, node, "sums[down][along]", value, own, kind)
        (combine,) = combined(scope, node, "totals.at[nth]", "next.at[nth]", kind, kind)
        start = identity(node.op, kind)
        at = self._place(scope, self.out_load, {"row": "row", "col": "col"}, start=not self.shape.batch)
        padding = literal(self.shape.padding or 0, self.left_type)
        first = literal(start, kind) if start else ""
        sums = NAMES[kind.name]
        return CoreText(made, left, right, sums, first, accumulate, combine, padding, at, is_split), parameters

    def _side(self, scope: Scope, side: Values, operands: list[Operand], kind: ElementType, free: str) -> Side:
        inner = self.scope()
        inner.used, inner.expressions.helpers, inner.expressions.types = (
            scope.used,
            scope.expressions.helpers,
            scope.expressions.types,
        )
        for load, operand in zip(side.loads, operands, strict=True):
            own = TYPES[scope.tensors[load.tensor].type]
            inner.places[load] = (read(own, f"{operand.name}_next[nth].at[part]"), computed(own))
        for key in (free, "depth"):
            inner.renamed |= {name: self._index(key, name) for name in self.dims[key]}
        value = inner.expressions.of(side.value, wanted=kind)
        is_plain = side.is_plain and operands[0].element == NAMES[kind.name]
        is_zero = side.is_plain and not self.shape.padding
        plain = is_plain and is_zero
        return Side(operands[0].name, free, side.inner, tuple(operands), NAMES[kind.name], value, plain, is_zero)

    @property
    def parts_name(self) -> str:
        return f"{self.out.name}_parts"

    def _said(self) -> str:
        index = ", ".join(self.out.dims)
        return f"{self.shape.stage.name}[{index}] = {shown(self.shape.stage.value)}"

    def _epilogue(self, scope: Scope, *, stored: bool) -> str:
        """A function in the kernel of the sum, its row and its column; "" where the sum is the result."""
        scope.locals[self.shape.stage.name] = ("total", self.sum_type)
        kind = TYPES[self.out.type]
        if self.out is self.shape.stage:
            value = scope.expressions.written(kind, "total", self.sum_type)
            if value == "total" or not stored:
                return ""
            return (
                f"\nauto result = [&]({NAMES[self.sum_type.name]} total, long long, long long) {{ return {value}; }};\n"
            )
        for key in ("row", "col"):
            scope.renamed |= {name: self._index(key, name) for name in self.dims[key]}
        text = Text()
        head = f"auto result = [&]({NAMES[self.sum_type.name]} total, long long row, long long col)"
        with text.block(head, "};"):
            for stage in self.group.stages:
                if stage is self.shape.stage:
                    continue
                for load in (each for each in walk(stage.value) if isinstance(each, Load)):
                    self._keep_place(scope, load)
                if stage is self.out:
                    of = scope.expressions
                    text(
                        f"return {of.stored(stage.value, kind) if stored else of.of(stage.value, wanted=TYPES['f32'])};"
                    )
                else:
                    own = scope.expressions.type_of(stage.value)
                    text(f"const {NAMES[own.name]} {stage.name} = {scope.expressions.of(stage.value, wanted=own)};")
                    scope.locals[stage.name] = (stage.name, own)
        return f"\n{text}\n"

    @property
    def read_after(self) -> set[str]:
        """What is read when the sum is there."""
        after = [each.value for each in self.group.stages if each is not self.shape.stage]
        return {load.tensor for value in after for load in walk(value) if isinstance(load, Load)}

    def _keep_place(self, scope: Scope, load: Load) -> None:
        """Reads an element by the indices of the product, not by its dimensions, where that is the same place."""
        tensor = scope.tensors.get(load.tensor)
        if tensor is None or load.tensor in scope.locals or self.places.offset(load) is None:
            return
        steps = [self.places.stride(load, names) for names in self.dims.values() if names]
        if None in steps:
            return
        scope.used[tensor.array] = None
        at = self._place(scope, load, {"batch": "batch", "row": "row", "col": "col"})
        kind = TYPES[tensor.type]
        scope.places[load] = (read(kind, f"{tensor.array}[{at or '0'}]"), computed(kind))

    # Launches

    def tiles(self, rows: int, cols: int) -> Expr:
        sides = [ceiling(self.extents["row"], rows), ceiling(self.extents["col"], cols)]
        return product([*sides, self.extents["batch"]])

    def fits(self) -> tuple[Expr, ...]:
        """That sizes and the number of the smallest tiles are within 32 bits."""
        sums = [*map(Name, self.formula.sizes), *self.extents.values()]
        every = {str(polynomial(each)): each for each in sums}
        return unique(Call("<=", (each, Num(MOST_INDEX - 4096))) for each in (*every.values(), self.tiles(64, 64)))

    @property
    def lengths(self) -> tuple[Expr, Expr]:
        """The lengths of the operands' rows in memory."""
        left = self.extents["depth" if self.shape.left.inner == "depth" else "row"]
        return left, self.extents["depth" if self.shape.right.inner == "depth" else "col"]

    def whole(self, count: int) -> tuple[Expr, ...] | None:
        """That rows in memory are whole packs of `count` elements; None where they are not, whatever the sizes."""
        found: list[Expr] = []
        sides = [(each, side.inner, side.free) for side in (self.shape.left, self.shape.right) for each in side.loads]
        for load, inner, free in (*sides, (self.out_load, "free", self.shape.cols)):
            along = self.shape.depth if inner == "depth" else free
            conditions = self._in_packs(load, along, count)
            if conditions is None:
                return None
            found += conditions
        every = list({str(each): each for each in found}.values())
        if not all(at_sizes(each, {}) for each in every if is_constant(each)):
            return None
        return tuple(each for each in every if not is_constant(each) and not any(_divides(e, each) for e in every))

    def _in_packs(self, load: Load, dims: tuple[str, ...], count: int) -> list[Expr] | None:
        """That the elements along `dims` are whole packs, each at a multiple of `count`; None where none make it so."""
        whole = self.places.offset(load) or {}
        inner = dims if self.places.stride(load, dims) == {(): 1} else dims[-1:]
        if self.places.stride(load, inner) != {(): 1}:
            return None
        found = divisible({k: f for k, f in whole.items() if not set(k) & set(inner)}, self.formula.sizes, count)
        length = product([self.formula.dims[each] for each in inner])
        return None if found is None else [Call("==", (Call("%", (length, Num(count))), Num(0))), *found]

    def aligned(self, count: int) -> Mapping[str, int]:
        """At a multiple of how many bytes arrays begin, so that packs do."""
        arrays = [*(load.tensor for side in (self.shape.left, self.shape.right) for load in side.loads), self.out.name]
        tensors = self.places.tensors
        return {tensors[each].array: min(16, TYPES[tensors[each].type].bits // 8 * count) for each in arrays}


_PRODUCTS = (Call("*", (LEFT, RIGHT)), Call("*", (RIGHT, LEFT)))


def _term(scope: Scope, index: str, step: Polynomial) -> str:
    factor = scope.expressions.of(expression(step), PRODUCT)
    return index if factor == "1" else f"{index} * {factor}"


def in_words(lengths: Iterable[Expr], count: int) -> tuple[Expr, ...] | None:
    """That each length is a multiple of `count`; None where one is not, whatever the sizes."""
    every = list({str(each): each for each in lengths}.values())
    if any(at_sizes(each, {}) % count for each in every if is_constant(each)):
        return None
    return tuple(Call("==", (Call("%", (each, Num(count))), Num(0))) for each in every if not is_constant(each))


def _divides(one: Expr, other: Expr) -> bool:
    """Whether `C % 4 == 0` makes `R * C % 4 == 0` hold."""
    match one, other:
        case Call(args=(Call(args=(Name(name=name), _)), _)), Call(args=(Call(args=(whole, _)), _)):
            return whole != Name(name) and all(name in key for key in polynomial(whole) or ((),))
    return False
