"""Which stages are a product of two arrays, and the kernels and launches of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from warpwright.formulas.bounds import polynomial
from warpwright.formulas.model import Formula, Stage, Tensor
from warpwright.formulas.normal import tensors_of
from warpwright.formulas.printer import shown
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, Reduce, product, walk
from warpwright.formulas.types import TYPES
from warpwright.schedules.contraction import CoreProduct, TensorProduct
from warpwright.writer.code import MOST_INDEX, Kernel, Launch, Path, Step, ceiling, evaluated
from warpwright.writer.contraction import LEAST_DEPTH, MOST_PARTS, core_product, total_kernel
from warpwright.writer.contraction_mma import pad_kernel, tensor_product
from warpwright.writer.contraction_parts import CUDA_TYPES, Operand, Product
from warpwright.writer.partition import Group
from warpwright.writer.pointwise import pointwise
from warpwright.writer.scope import Scope
from warpwright.writer.text import Text
from warpwright.writer.types import NAMES

LARGE = CoreProduct()
SMALL = CoreProduct(128, 128, 16, 8, 64, 64, 2, split=True)
WIDE = TensorProduct()
NARROW = TensorProduct(64, 128, 32, 64, 4, 2)
_PROCESSORS = 132
_OWN = """
ahead along at band band_rows batch both col cols count depth down fetch filling first_col first_row from half
in_band is_there k_begin k_end lane left load_fragments next nth part part_sums parts put reading result right
row rows share shared shared_at shared_end slice slices stage step sums thread_col thread_row tile tile_cols
tile_rows tiles to total warp warp_col warp_row
"""
_OWN_NAMES = frozenset(_OWN.split())
"""What the texts of kernels call their own; a formula with such a name is written by the general kernel."""
_ENDS = ("leading", "padded")
"""How names end that begin with the name of an operand."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A product as a matrix product: which dimensions of the formula make up each of its indices, in the order in which
    they lie in memory. `swapped`: the formula's second factor is the left operand."""

    stage: Stage
    left: Tensor
    right: Tensor
    batch: tuple[str, ...]
    rows: tuple[str, ...]
    cols: tuple[str, ...]
    depth: tuple[str, ...]
    left_inner: str
    right_inner: str


def shape_of(formula: Formula, group: Group) -> Shape | str:
    """How a group is a product of two arrays with what is done to each element of it, or why it is none."""
    sums = [each for each in group.stages if isinstance(each.value, Reduce)]
    if len(sums) != 1 or group.is_scatter or any(each.name in group.kept for each in sums if len(group.stages) > 1):
        return "A product is one sum, and what is done to each element of it."
    stage = sums[0]
    assert isinstance(stage.value, Reduce)
    node = stage.value
    if node.op != "sum" or any(each.lower is not None or each.upper is not None for each in node.ranges):
        return "A product sums over whole dimensions."
    if not isinstance(node.body, Call) or node.body.name != "*" or len(node.body.args) != 2:
        return "What is summed is no product of two elements."
    stored = [each for each in group.stages if not each.temporary or each.name in group.kept]
    if len(stored) != 1 or stored[0].primed:
        return "A product has one result, which holds no values before."
    if (stored[0] is stage) != (len(group.stages) == 1):
        return "The sum is not the result, and is needed in memory."
    factors = [_factor(formula, each) for each in node.body.args]
    depth = tuple(each.name for each in node.ranges)
    for one, other in (factors, factors[::-1]):
        if isinstance(one, str) or isinstance(other, str):
            return one if isinstance(one, str) else str(other)
        found = _laid_out(stage, one, other, group.dims, depth)
        if found is not None:
            kinds = {one[0].type, other[0].type}
            out = TYPES[stored[0].type]
            if node.accumulate not in ("", "f32") or len(kinds) != 1 or not kinds <= {"f32", "f16", "bf16"}:
                return "Products are written for f32, f16 and bf16, added up in f32."
            if out.name not in ({"f32"} if kinds == {"f32"} else {"f32", *kinds}):
                return f"A product of {min(kinds)} is not stored as {out.name}."
            held = formula.tensors.get(stored[0].name)
            if held is not None and _order(held, stored[0].dims) != stored[0].dims:
                return "The result is not packed, or not in rows."
            return found
    return "The dimensions of the arrays are in no order that a matrix product reads."


def is_product(formula: Formula, stage: Stage) -> bool:
    """Whether a stage, taken alone, is a product of two arrays that is written as a matrix product."""
    if not isinstance(stage.value, Reduce) or stage.combine:
        return False
    alone = Group(stage.dims, (replace(stage, temporary=False),), frozenset())
    whole = replace(formula, tensors={**tensors_of(formula), **formula.tensors})
    return not isinstance(shape_of(whole, alone), str)


def candidates(formula: Formula, group: Group) -> tuple[CoreProduct | TensorProduct, ...]:
    """The schedules that a search tries for a product."""
    shape = shape_of(formula, group)
    if isinstance(shape, str):
        return ()
    if shape.left.type == "f32":
        return (LARGE, SMALL, CoreProduct(128, 256, 8, 16, 64, 64), CoreProduct(64, 64, 8, 8, 32, 64, 6, split=True))
    return (WIDE, NARROW, TensorProduct(256, 128), TensorProduct(128, 128, 64, 64, 3, 2))


def _factor(formula: Formula, node: Expr) -> tuple[Tensor, tuple[str, ...]] | str:
    if not isinstance(node, Load) or node.outside is not None or not all(isinstance(e, Name) for e in node.index):
        return "A factor is no element named by dimensions."
    names = tuple(each.name for each in node.index if isinstance(each, Name))
    tensor = formula.tensors.get(node.tensor)
    if tensor is None or tensor.base or len(set(names)) != len(names) or not set(names) <= formula.dims.keys():
        return "A factor is no array of the caller with each dimension once."
    order = _order(tensor, names)
    return "A factor is not packed." if order is None else (tensor, order)


def _order(tensor: Tensor, names: tuple[str, ...]) -> tuple[str, ...] | None:
    """The dimensions in the order in which they lie in memory, as given or turned (column-major); None for an array
    with other strides."""
    if tensor.strides is None:
        return names
    extents = dict(zip(names, tensor.extents, strict=True))
    for order in (names, names[::-1]):
        packed = {name: product([extents[each] for each in order[at + 1 :]]) for at, name in enumerate(order)}
        pairs = zip(names, tensor.strides, strict=True)
        if all(polynomial(packed[name]) == polynomial(stride) for name, stride in pairs):
            return order
    return None


def _laid_out(
    stage: Stage,
    one: tuple[Tensor, tuple[str, ...]],
    other: tuple[Tensor, tuple[str, ...]],
    dims: tuple[str, ...],
    depth: tuple[str, ...],
) -> Shape | None:
    """With `one` as the left operand: the result is batch, rows, cols in this order, the left one batch and rows and
    depth, the right one batch and depth and cols, or either with the last two turned."""
    (left, left_names), (right, right_names) = one, other
    batch = tuple(each for each in dims if each in left_names and each in right_names)
    rows = tuple(each for each in dims if each in left_names and each not in right_names)
    cols = tuple(each for each in dims if each in right_names and each not in left_names)
    if (
        dims != batch + rows + cols
        or not rows
        or not cols
        or set(depth) - set(left_names)
        or set(depth) - set(right_names)
    ):
        return None
    summed = tuple(each for each in left_names if each in depth)
    inner: list[str] = []
    for names, free in ((left_names, rows), (right_names, cols)):
        own = names
        if batch and names[: len(batch)] == batch:
            own = names[len(batch) :]
        if own == free + summed:
            inner.append("depth")
        elif own == summed + free:
            inner.append("free")
        else:
            return None
    return Shape(stage, left, right, batch, rows, cols, summed, inner[0], inner[1])


@dataclass
class _Written:
    """One product being written."""

    formula: Formula
    group: Group
    shape: Shape
    name: str

    def __post_init__(self) -> None:
        self.out = next(each for each in self.group.stages if not each.temporary or each.name in self.group.kept)
        of = self.formula.dims
        self.extents = {
            key: product([of[each] for each in names])
            for key, names in (
                ("batch", self.shape.batch),
                ("rows", self.shape.rows),
                ("cols", self.shape.cols),
                ("depth", self.shape.depth),
            )
        }

    def scope(self) -> Scope:
        scope = Scope(self.formula)
        scope.index_type = "long long"
        return scope

    def product(
        self,
        name: str,
        scope: Scope,
        *,
        others: Mapping[str, str] | None = None,
        operands: bool = True,
        result: bool = True,
    ) -> tuple[Product, tuple[str, ...]]:
        """The product with the names of one kernel, and the kernel's parameters. `others` are arrays between kernels
        and how they are declared, `operands` says whether it reads both arrays, `result` whether it has the result."""
        shape, used = self.shape, scope.used
        if operands:
            used[shape.left.array] = used[shape.right.array] = None
        if result:
            used[self.out.name] = scope.stored[self.out.name] = None
        epilogue = self._epilogue(scope) if result else ""
        names: dict[str, str] = {}
        lines: list[str] = []
        for key, extent in self.extents.items():
            text = scope.expressions.of(extent)
            names[key] = text if isinstance(extent, Name | Num) else key if key != "batch" else "batches"
            if names[key] != text:
                lines.append(f"const int {names[key]} = {text};")
        texts, parameters = scope.parameters("int")
        count = len(scope.arrays())
        if others:
            texts[count:count] = others.values()
            parameters = (*parameters[:count], *others, *parameters[count:])
        batched = bool(shape.batch)
        lefts, rights = (set(shape.batch) <= self.names(each) for each in (shape.left, shape.right))
        made = Product(
            name,
            self._said(),
            Operand(shape.left.array, shape.left_inner, batched and lefts),
            Operand(shape.right.array, shape.right_inner, batched and rights),
            self.out.name,
            shape.left.type,
            self.out.type,
            names["rows"],
            names["cols"],
            names["depth"],
            tuple(texts),
            names["batch"] if batched else "",
            "".join(f"{each}\n" for each in lines),
            epilogue,
        )
        return made, parameters

    def names(self, tensor: Tensor) -> set[str]:
        assert isinstance(self.shape.stage.value, Reduce)
        loads = (e for e in walk(self.shape.stage.value) if isinstance(e, Load) and e.tensor == tensor.name)
        return {each.name for load in loads for each in load.index if isinstance(each, Name)}

    @property
    def parts_name(self) -> str:
        return f"{self.out.name}_parts"

    def _said(self) -> str:
        index = ", ".join(self.out.dims)
        return f"{self.shape.stage.name}[{index}] = {shown(self.shape.stage.value)}"

    def _epilogue(self, scope: Scope) -> str:
        """A function in the kernel of the sum, its row and its column; "" where the sum is the result."""
        if self.out is self.shape.stage:
            return ""
        scope.locals[self.shape.stage.name] = ("total", TYPES["f32"])
        text = Text()
        with text.block("auto result = [&](float total, long long row, long long col)", "};"):
            at = len(text.lines)
            for key, names in (("batch", self.shape.batch), ("row", self.shape.rows), ("col", self.shape.cols)):
                self._indices(scope, key, names)
            for stage in self.group.stages:
                if stage is self.shape.stage:
                    continue
                value = scope.expressions.of(stage.value, wanted=TYPES["f32"])
                if stage is self.out:
                    text(f"return {value};")
                else:
                    kind = scope.expressions.type_of(stage.value)
                    text(f"const {NAMES[kind.name]} {stage.name} = {value};")
                    scope.locals[stage.name] = (stage.name, kind)
            body = "\n".join(text.lines[at:])
        return f"\n{text}\n" if body else ""

    def _indices(self, scope: Scope, key: str, names: tuple[str, ...]) -> None:
        for at, name in enumerate(names):
            inner = product([self.formula.dims[each] for each in names[at + 1 :]])
            whole = key if inner == Num(1) else f"{key} / ({scope.expressions.of(inner)})"
            extent = scope.expressions.of(self.formula.dims[name])
            scope.renamed[name] = whole if at == 0 and inner == Num(1) else f"({whole})"
            if at:
                scope.renamed[name] = f"({whole} % ({extent}))"

    # Launches

    def tiles(self, rows: int, cols: int) -> Expr:
        sides = [ceiling(self.extents["rows"], rows), ceiling(self.extents["cols"], cols)]
        return product([*sides, self.extents["batch"]])

    def fits(self, scope: Scope, tiles: Expr) -> tuple[Expr, ...]:
        """That sizes and the number of tiles are within 32 bits."""
        sums = [*(Name(each) for each in self.formula.sizes if each in scope.used), *self.extents.values()]
        limit = Num(MOST_INDEX - 4096)
        every = {str(polynomial(each)): each for each in sums}
        return tuple(Call("<=", (each, limit)) for each in (*every.values(), tiles) if not _is_number(each))

    @property
    def lengths(self) -> tuple[Expr, Expr]:
        """The lengths of the operands' rows in memory."""
        left = self.extents["depth" if self.shape.left_inner == "depth" else "rows"]
        return left, self.extents["depth" if self.shape.right_inner == "depth" else "cols"]

    def whole(self, words: int, lengths: Sequence[Expr]) -> tuple[Expr, ...] | None:
        """That rows of such lengths are whole 16-byte words; None where they are not, whatever the sizes."""
        found: list[Expr] = []
        for each in {str(each): each for each in lengths}.values():
            if not _is_number(each):
                found.append(Call("==", (Call("%", (each, Num(words))), Num(0))))
            elif evaluated(each, {}) % words:
                return None
        return tuple(found)

    @property
    def aligned(self) -> Mapping[str, int]:
        return dict.fromkeys((self.shape.left.array, self.shape.right.array, self.out.name), 16)


def _is_number(node: Expr) -> bool:
    return not any(isinstance(each, Name) for each in walk(node))


def products(
    formula: Formula, group: Group, name: str, schedules: Sequence[CoreProduct | TensorProduct] = ()
) -> tuple[list[Kernel], list[Step], list[Tensor]] | str:
    """The kernels of a group that is a product, their launch, and the arrays between them; or why it is none.

    The schedules are taken in their order, each where it has enough tiles to fill the GPU; the last one always.
    """
    shape = shape_of(formula, group)
    if isinstance(shape, str):
        return shape
    taken = {*formula.sizes, *formula.scalars, *(each.array for each in formula.tensors.values())}
    taken |= {each.name for each in formula.stages}
    own_names = _OWN_NAMES | {f"{each.array}_{end}" for each in (shape.left, shape.right) for end in _ENDS}
    if taken & own_names:
        return f"{min(taken & own_names)} is a name of the kernel's own."
    if shape.left.array == shape.right.array:
        return f"{shape.left.array} is both factors, whose tiles a kernel names after their arrays."
    made = _Written(formula, group, shape, name)
    for each in group.stages:
        if each is not shape.stage and made.scope().expressions.type_of(each.value).name != "f32":
            return "What is done to the elements is not computed in f32."
    is_core = shape.left.type == "f32"
    chosen = [*schedules] or ([LARGE, SMALL] if is_core else [WIDE, NARROW])
    if any(isinstance(each, CoreProduct) != is_core for each in chosen):
        return "Tensor cores multiply f16 and bf16, the other units f32."
    if refused := next((each.refusal() for each in chosen if each.refusal()), ""):
        return refused
    plain, step = pointwise(formula, group, f"{name}_general")
    kernels: list[Kernel] = []
    paths: list[Path] = []
    between: list[Tensor] = []
    for number, layout in enumerate(chosen):
        own = name if len(chosen) == 1 else f"{name}_{layout.tile_m}x{layout.tile_n}"
        if isinstance(layout, CoreProduct):
            more, more_paths, tensors = _core(made, layout, f"{own}_kernel")
        else:
            more, more_paths, tensors = _tensor(made, layout, f"{own}_kernel")
        if number + 1 < len(chosen):
            # Where tiles are few for each multiprocessor, smaller ones divide the work better.
            least = Num(2 * _PROCESSORS if is_core else 3 * _PROCESSORS // 4)
            enough = Call(">=", (made.tiles(layout.tile_m, layout.tile_n), least))
            more_paths = [replace(path, conditions=(enough, *path.conditions)) for path in more_paths]
        kernels += [each for each in more if each not in kernels]
        paths += more_paths
        between += [each for each in tensors if each not in between]
    steps = [Step((*paths, *step.paths), step.count)]
    return [*kernels, plain], steps, between


def _core(made: _Written, schedule: CoreProduct, name: str) -> tuple[list[Kernel], list[Path], list[Tensor]]:
    scope = made.scope()
    parts_of = {made.parts_name: "float* __restrict__ part_sums"} if schedule.split else None
    described, parameters = made.product(name, scope, others=parts_of)
    text = core_product(described, schedule)
    helpers = frozenset({*scope.expressions.helpers, "load_or_zero"})
    types = frozenset({"f32", *scope.expressions.types, *(scope.type_named(e).name for e in scope.arrays())})
    kernels = [Kernel(name, text, parameters, size_type="int", helpers=helpers, types=types)]
    tiles = made.tiles(schedule.tile_m, schedule.tile_n)
    fits = made.fits(scope, tiles)
    block = (schedule.threads, 1, 1)
    whole = made.whole(4, (*made.lengths, made.extents["cols"]))
    vectors = [("4", whole, made.aligned)] if whole is not None else []
    vectors.append(("1", (), {}))
    paths: list[Path] = []
    between: list[Tensor] = []
    if schedule.split:
        total_scope = made.scope()
        total_parts = {made.parts_name: "const float* __restrict__ part_sums"}
        total, total_parameters = made.product(name, total_scope, others=total_parts, operands=False)
        own = f"{name.removesuffix('_kernel')}_total"
        body = total_kernel(replace(total, name=own), schedule)
        more = frozenset(total_scope.expressions.helpers)
        kernels.append(Kernel(own, body, total_parameters, size_type="int", helpers=more, types=types))
        at_least_one = Call("max", (tiles, Num(1)))
        parts: Expr = Call("//", (Num(schedule.places), at_least_one))
        deep = Call("//", (made.extents["depth"], Num(LEAST_DEPTH)))
        parts = Call("min", (Call("min", (parts, deep)), Num(MOST_PARTS)))
        several = Call(">=", (parts, Num(2)))
        extents = [made.extents["rows"], made.extents["cols"], made.extents["batch"]]
        between.append(Tensor(made.parts_name, "f32", (Call("*", (several, parts)), *extents), "out"))
        count = ceiling(product([*extents]), 256)
        for vector, conditions, aligned in vectors:
            launches = (
                Launch(name, (tiles, parts, Num(1)), block, template=(vector, "true")),
                Launch(own, (count, Num(1), Num(1)), (256, 1, 1)),
            )
            reason = "Few tiles: several blocks share the depth of each." if vector == "4" else ""
            paths.append(Path(launches, (several, *conditions, *fits), aligned, reason))
    for vector, conditions, aligned in vectors:
        template = (vector, "false") if schedule.split else (vector,)
        launch = Launch(name, (tiles, Num(1), Num(1)), block, template=template)
        reason = "Rows are whole 16-byte words." if vector == "4" else ""
        paths.append(Path((launch,), (*conditions, *fits), aligned, reason))
    return kernels, paths, between


def _tensor(made: _Written, schedule: TensorProduct, name: str) -> tuple[list[Kernel], list[Path], list[Tensor]]:
    scope = made.scope()
    described, parameters = made.product(name, scope)
    text = tensor_product(described, schedule)
    kind = made.shape.left.type
    own = {"copy16", f"mma_{kind}", "matrix_descriptor", f"wgmma_{kind}_{schedule.tile_n}"}
    own |= {each for each in ("load_matrices", "load_matrices_turned") if f"{each}(" in text}
    helpers = frozenset({*scope.expressions.helpers, *own})
    types = frozenset({"f32", *scope.expressions.types, *(scope.type_named(e).name for e in scope.arrays())})
    kernels = [Kernel(name, text, parameters, size_type="int", helpers=helpers, types=types)]
    tiles = made.tiles(schedule.tile_m, schedule.tile_n)
    fits = made.fits(scope, tiles)
    grid = (tiles, Num(1), Num(1))
    launch = Launch(name, grid, (schedule.threads, 1, 1), shared_bytes=schedule.shared)
    left, right = made.shape.left.array, made.shape.right.array
    paths: list[Path] = []
    whole = made.whole(8, made.lengths)
    if whole is not None:
        reason = "Rows are whole 16-byte words."
        paths.append(Path((launch,), (*whole, *fits), dict.fromkeys((left, right), 16), reason))
    copies, kernel, pads = _padded(made)
    if kernel is not None:
        launches = (pads, replace(launch, arrays=dict(zip((left, right), (each.name for each in copies), strict=True))))
        needed, some = copies[0].extents[0], Call(">=", (made.extents["depth"], Num(1)))
        paths.append(Path(launches, (needed, some, *fits), {}, "Rows get zeros at their ends first."))
        kernels.append(kernel)
    return kernels, paths, copies


def _padded(made: _Written) -> tuple[list[Tensor], Kernel | None, Launch]:
    """Copies of both operands in rows of whole 16-byte words, the kernel that makes them and its launch. They are made
    where a row is no whole number of words; no kernel where that is never so."""
    shape = made.shape
    name = f"{made.name}_pad"
    copies: list[Tensor] = []
    rests: list[Expr] = []
    words: list[Expr] = []
    declared: dict[str, str] = {}
    scope = made.scope()
    for tensor, length, inner, free in zip(
        (shape.left, shape.right), made.lengths, (shape.left_inner, shape.right_inner), ("rows", "cols"), strict=True
    ):
        batch = made.extents["batch"] if set(shape.batch) <= made.names(tensor) else Num(1)
        outer = product([batch, made.extents[free if inner == "depth" else "depth"]])
        row = ceiling(length, 8)
        copies.append(Tensor(f"{tensor.array}_padded", tensor.type, (outer, product([row, Num(8)])), "out"))
        rests.append(Call("%", (length, Num(8))))
        words.append(product([outer, row]))
        declared[copies[-1].name] = f"{CUDA_TYPES[tensor.type]}* __restrict__ {copies[-1].name}"
    needed: Expr = Call(">=", (Call("+", (rests[0], rests[1])), Num(1)))
    grid = (ceiling(Call("max", (words[0], words[1])), 256), Num(2), Num(1))
    launch = Launch(name, grid, (256, 1, 1))
    if all(map(_is_number, rests)) and not evaluated(needed, {}):
        return [], None, launch
    described, parameters = made.product(name, scope, others=declared, result=False)
    types = frozenset({shape.left.type})
    kernel = Kernel(name, pad_kernel(described), parameters, False, "int", frozenset({"pad_word"}), types)
    return [replace(each, extents=(needed, *each.extents)) for each in copies], kernel, launch
