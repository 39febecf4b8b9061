"""The kernels and launches of a product."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from warpwright.formulas.model import Formula, Stage, Tensor
from warpwright.formulas.normal import tensors_of
from warpwright.formulas.tree import Call, Expr, Num, Reduce, product
from warpwright.schedules.contraction import CoreProduct, TensorProduct
from warpwright.writer.code import Kernel, Launch, Path, Step, ceiling, evaluated
from warpwright.writer.contraction import LEAST_DEPTH, core_product, parts_of, total_kernel
from warpwright.writer.contraction_mma import pad_kernel, tensor_product
from warpwright.writer.names import free_name, renamed
from warpwright.writer.partition import Group
from warpwright.writer.pointwise import pointwise
from warpwright.writer.product_shape import Shape, shape_of
from warpwright.writer.product_text import OWN_NAMES, ProductText, in_words, is_number
from warpwright.writer.scope import Scope
from warpwright.writer.types import NAMES

LARGE = CoreProduct()
SMALL = CoreProduct(64, 64, 8, 8, 32, 64, 6, split=False)
DOUBLE = CoreProduct(64, 64, 8, 4, 32, 32, 3, words=2)
WIDE = TensorProduct()
NARROW = TensorProduct(64, 128, 32, 64, 4, 2)
_PROCESSORS = 132
_ENDS = ("leading", "padded")
"""How names end that begin with the name of an operand."""
_THIN = 16
"""Rows or columns, of which fewer leave most of a tile empty."""
_MANY = 1 << 14
"""Results, of which more keep the GPU busy with a thread for each."""


def candidates(formula: Formula, group: Group) -> tuple[CoreProduct | TensorProduct, ...]:
    """The schedules that a search tries for a product."""
    shape = shape_of(formula, group)
    if isinstance(shape, str):
        return ()
    made = ProductText(formula, group, shape)
    if made.tensor_refusal():
        return (DOUBLE,) if made.words > 1 else (LARGE, SMALL, CoreProduct(128, 64, 16, 8, 64, 64, 4))
    return (WIDE, NARROW, TensorProduct(256, 128), TensorProduct(128, 128, 64, 64, 3, 2))


def products(
    formula: Formula, group: Group, name: str, schedules: Sequence[CoreProduct | TensorProduct] = ()
) -> tuple[list[Kernel], list[Step], list[Tensor]] | str:
    """The kernels of a group that is a product, their launch, and the arrays between them; or why it is none.

    The schedules are taken in their order, each where it has enough tiles to fill the GPU; the last one always. Of
    several sums all but the last are kept in memory.
    """
    sums = [each for each in group.stages if isinstance(each.value, Reduce)]
    if len(sums) > 1:
        return _one_by_one(formula, group, name, schedules, sums)
    shape = shape_of(formula, group)
    if isinstance(shape, str):
        return shape
    own_formula, own_group, names_back = _with_free_names(formula, group)
    own_shape = shape if own_formula is formula else shape_of(own_formula, own_group)
    assert isinstance(own_shape, Shape)
    made = ProductText(own_formula, own_group, own_shape)
    if refused := made.refusal():
        return refused
    no_tensor = made.tensor_refusal()
    chosen = [*schedules] or ([DOUBLE] if made.words > 1 else [LARGE, SMALL] if no_tensor else [WIDE, NARROW])
    for each in chosen:
        if isinstance(each, TensorProduct) and no_tensor:
            return no_tensor
        if isinstance(each, CoreProduct) and each.words != made.words:
            return f"Its sums take {made.words} words each."
        if reason := each.refusal():
            return reason
    plain, step = pointwise(formula, group, f"{name}_general")
    kernels: list[Kernel] = []
    narrow = Call("<", (Call("min", (made.extents["row"], made.extents["col"])), Num(_THIN)))
    many = Call(">=", (product([formula.dims[each] for each in group.dims]), Num(_MANY)))
    paths = [
        replace(each, conditions=(narrow, many, *each.conditions), reason="Tiles would be mostly empty.")
        for each in step.paths
    ]
    between: list[Tensor] = []
    names: dict[str, Expr] = {}
    for number, layout in enumerate(chosen):
        label = f"_{layout.tile_m}x{layout.tile_n}" if len(chosen) > 1 else ""
        own, is_last = f"{name}{label}", number + 1 == len(chosen)
        if isinstance(layout, CoreProduct):
            more = _core(made, layout, own, label, is_last)
        else:
            more = _tensor(made, layout, name, label, is_last)
        back = [replace(k, parameters=tuple(names_back.get(n, n) for n in k.parameters)) for k in more.kernels]
        kernels += [each for each in back if each not in kernels]
        paths += [_named_back(each, names_back) for each in more.paths]
        between += [each for each in more.between if each not in between]
        names |= more.names
    steps = [Step((*paths, *step.paths), step.count, names)]
    return [*kernels, plain], steps, between


def _with_free_names(formula: Formula, group: Group) -> tuple[Formula, Group, Mapping[str, str]]:
    """With other names for what has one of the kernels' own, and the names that those stand for."""
    taken = {*formula.tensors, *formula.scalars, *(each.name for each in (*formula.stages, *group.stages))}
    arrays = {each.tensor for stage in group.stages for each in formula.loads(stage.value)}
    own = OWN_NAMES | {f"{each}_{end}" for each in arrays for end in _ENDS}
    values = {name: free_name(f"{name}_", taken) for name in sorted(taken & own)}
    if not values:
        return formula, group, {}
    stages = renamed(replace(formula, stages=group.stages), values, {}).stages
    kept = frozenset(values.get(each, each) for each in group.kept)
    return renamed(formula, values, {}), Group(group.dims, stages, kept), {new: old for old, new in values.items()}


def _named_back(path: Path, names: Mapping[str, str]) -> Path:
    launches = tuple(
        replace(each, arrays={names.get(name, name): other for name, other in each.arrays.items()})
        for each in path.launches
    )
    return replace(path, launches=launches, aligned={names.get(name, name): n for name, n in path.aligned.items()})


def _one_by_one(
    formula: Formula, group: Group, name: str, schedules: Sequence[CoreProduct | TensorProduct], sums: list[Stage]
) -> tuple[list[Kernel], list[Step], list[Tensor]] | str:
    inside = {each.name for each in group.stages}
    if any(load.tensor in inside for each in sums for load in formula.loads(each.value)):
        return "A sum needs another one."
    earlier = sums[:-1]
    rest = tuple(each for each in group.stages if each not in earlier)
    groups = [Group(group.dims, (each,), frozenset({each.name})) for each in earlier]
    groups.append(Group(group.dims, rest, group.kept - {each.name for each in earlier}))
    arrays = tensors_of(formula)
    kernels: list[Kernel] = []
    steps: list[Step] = []
    between = [arrays[each.name] for each in earlier if each.temporary]
    for each in groups:
        made = products(formula, each, f"{name}_{each.stages[0].name}", schedules)
        if isinstance(made, str):
            return made
        kernels += made[0]
        steps += made[1]
        between += made[2]
    return kernels, steps, between


@dataclass(frozen=True)
class _Layout:
    """What one schedule adds; `names` are those of expressions that its paths share."""

    kernels: list[Kernel]
    paths: list[Path]
    names: Mapping[str, Expr]
    between: Sequence[Tensor] = ()


def _core(made: ProductText, schedule: CoreProduct, name: str, label: str, is_last: bool) -> _Layout:
    scope, sums = made.scope(), NAMES[made.sum_type.name]
    parts_text = f"{sums}* __restrict__ part_sums"
    shared = {made.parts_name: parts_text} if schedule.split else {}
    described, parameters = made.core(f"{name}_kernel", scope, shared, is_split=schedule.split)
    body = core_product(described, schedule)
    kernels = [_kernel(made, scope, f"{name}_kernel", body, parameters, {"load_or_zero", "store_pack"})]
    tiles = made.tiles(schedule.tile_m, schedule.tile_n)
    names: dict[str, Expr] = {f"tiles{label}": tiles}
    fits = made.fits()
    block = (schedule.threads, 1, 1)
    vectors: list[tuple[str, tuple[Expr, ...], Mapping[str, int]]] = [("1", (), {})]
    if (whole := made.whole(4)) is not None:
        vectors.insert(0, ("4", whole, made.aligned(4)))
    # Where tiles are few for each multiprocessor, smaller ones divide the work better.
    enough = () if is_last else (Call(">=", (tiles, Num(schedule.places * 3 // 4))),)
    paths: list[Path] = []
    between: tuple[Tensor, ...] = ()
    if schedule.split:
        rest = Call("%", (tiles, Num(schedule.places)))
        parts = parts_of(rest, made.extents["depth"], schedule)
        own, total_scope = f"{name}_total", made.scope()
        described, parameters = made.core(
            own, total_scope, {made.parts_name: f"const {parts_text}"}, is_split=True, is_total=True
        )
        body = total_kernel(described, schedule)
        kernels.append(_kernel(made, total_scope, own, body, parameters, {"load_pack"}))
        size = schedule.tile_m * schedule.tile_n
        deep = Call("//", (made.extents["depth"], Num(LEAST_DEPTH)))
        most = Call("min", (Num(schedule.places), Call("*", (tiles, deep))))
        between = (Tensor(made.parts_name, made.sum_type.name, (most, Num(size)), "out"),)
        blocks = Call("+", (Call("-", (tiles, rest)), Call("*", (rest, parts))))
        names |= {f"last{label}": rest, f"parts{label}": parts, f"blocks{label}": blocks}
        count = Call("*", (rest, Num(size // schedule.piece // 256)))
        several = (Call(">=", (rest, Num(1))), Call(">=", (parts, Num(2))))
        for vector, conditions, aligned in vectors:
            launches = (
                Launch(kernels[0].name, (blocks, Num(1), Num(1)), block, template=(vector,)),
                Launch(kernels[1].name, (count, Num(1), Num(1)), (256, 1, 1)),
            )
            reason = "The last tiles do not fill the GPU: several blocks share the depth of each."
            paths.append(Path(launches, (*several, *conditions, *fits), aligned, reason))
    for vector, conditions, aligned in vectors:
        launch = Launch(kernels[0].name, (tiles, Num(1), Num(1)), block, template=(vector,))
        reason = "Rows are whole packs of 4." if vector == "4" else ""
        paths.append(Path((launch,), (*enough, *conditions, *fits), aligned, reason))
    return _Layout(kernels, paths, names, between)


def _tensor(made: ProductText, schedule: TensorProduct, name: str, label: str, is_last: bool) -> _Layout:
    scope, own = made.scope(), f"{name}{label}_kernel"
    described, parameters = made.product(own, scope, made.operands(scope), stored=False)
    text = tensor_product(described, schedule)
    kind = described.type
    helpers = {"copy16", f"mma_{kind}", "matrix_descriptor", f"wgmma_{kind}_{schedule.tile_n}"}
    helpers |= {each for each in ("load_matrices", "load_matrices_turned") if f"{each}(" in text}
    kernels = [_kernel(made, scope, own, text, parameters, helpers)]
    tiles = made.tiles(schedule.tile_m, schedule.tile_n)
    fits = made.fits()
    launch = Launch(own, (tiles, Num(1), Num(1)), (schedule.threads, 1, 1), shared_bytes=schedule.shared)
    enough = () if is_last else (Call(">=", (tiles, Num(3 * _PROCESSORS // 4))),)
    paths: list[Path] = []
    left, right = described.a.array, described.b.array
    whole = in_words(made.lengths, 8)
    if whole is not None:
        reason = "Rows are whole 16-byte words."
        paths.append(Path((launch,), (*enough, *whole, *fits), dict.fromkeys((left, right), 16), reason))
    copies, kernel, pads = _padded(made, name)
    if kernel is not None:
        launches = (pads, replace(launch, arrays={left: copies[0].name, right: copies[1].name}))
        needed, some = copies[0].extents[0], Call(">=", (made.extents["depth"], Num(1)))
        conditions = (*enough, needed, some, *fits)
        paths.append(Path(launches, conditions, {}, "Rows get zeros at their ends first."))
        kernels.append(kernel)
    return _Layout(kernels, paths, {f"tiles{label}": tiles}, copies)


def _padded(made: ProductText, name: str) -> tuple[list[Tensor], Kernel | None, Launch]:
    """Copies of both operands in rows of whole 16-byte words, the kernel that makes them and its launch. They are made
    where a row is no whole number of words; no kernel where that is never so."""
    shape, own, scope = made.shape, f"{name}_pad", made.scope()
    copies: list[Tensor] = []
    rests: list[Expr] = []
    words: list[Expr] = []
    declared: dict[str, str] = {}
    for side, length, free in zip((shape.left, shape.right), made.lengths, ("row", "col"), strict=True):
        tensor = made.places.tensors[side.loads[0].tensor]
        batch = [made.formula.dims[each] for each in made.batch_of(side.loads[0])]
        outer = product([*batch, made.extents[free if side.inner == "depth" else "depth"]])
        row = ceiling(length, 8)
        copies.append(Tensor(f"{tensor.array}_padded", tensor.type, (outer, product([row, Num(8)])), "out"))
        rests.append(Call("%", (length, Num(8))))
        words.append(product([outer, row]))
        declared[copies[-1].name] = f"{NAMES[tensor.type]}* __restrict__ {copies[-1].name}"
    needed: Expr = Call(">=", (Call("+", (rests[0], rests[1])), Num(1)))
    grid = (ceiling(Call("max", (words[0], words[1])), 256), Num(2), Num(1))
    launch = Launch(own, grid, (256, 1, 1))
    if all(map(is_number, rests)) and not evaluated(needed, {}):
        return [], None, launch
    described, parameters = made.product(own, scope, made.operands(scope), others=declared, result=False)
    kernel = _kernel(made, scope, own, pad_kernel(described), parameters, {"pad_word"})
    return [replace(each, extents=(needed, *each.extents)) for each in copies], kernel, launch


def _kernel(
    made: ProductText, scope: Scope, name: str, text: str, parameters: tuple[str, ...], own: set[str]
) -> Kernel:
    helpers = frozenset({*scope.expressions.helpers, *own})
    types = {made.sum_type.name, made.left_type.name, made.right_type.name, *scope.expressions.types}
    types |= {scope.type_named(each).name for each in scope.arrays()}
    return Kernel(name, text, parameters, size_type="int", helpers=helpers, types=frozenset(types))
