"""The kernels and launches of a product."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from warpwright.formulas.extents import at_sizes, is_constant
from warpwright.formulas.model import Formula, Stage, Tensor
from warpwright.formulas.normal import tensors_of
from warpwright.formulas.tree import Call, Expr, Num, Reduce, product
from warpwright.schedules.contraction import CoreProduct, TensorProduct
from warpwright.schedules.rules import TENSOR_RULES, TensorRule
from warpwright.writer.code import Kernel, Launch, Path, Step
from warpwright.writer.contraction import LEAST_DEPTH, core_product, parts_of, total_kernel
from warpwright.writer.names import free_name, renamed
from warpwright.writer.partition import Group
from warpwright.writer.pointwise import pointwise
from warpwright.writer.product_layout import Layout, kernel_of
from warpwright.writer.product_shape import Shape, shape_of
from warpwright.writer.product_text import OWN_NAMES, ProductText
from warpwright.writer.tensor_products import tensor_products
from warpwright.writer.types import NAMES

LARGE = CoreProduct()
SMALL = CoreProduct(64, 64, 8, 8, 32, 64, 6, split=False)
DOUBLE = CoreProduct(64, 64, 8, 4, 32, 32, 4, words=2)
_ENDS = (
    "apart", "at", "depth", "from", "lane", "lane_k", "lane_row", "leading", "next", "padded", "row", "rows", "slices",
    "to", "value",
)  # fmt: skip
"""How names end that begin with the name of an operand."""
_THIN = 16
"""Rows or columns, of which fewer leave most of a tile empty."""
_MANY = 1 << 14
"""Results, of which more keep the GPU busy with a thread for each."""


def alternatives(formula: Formula, group: Group) -> tuple[CoreProduct | TensorProduct, ...]:
    """The schedules that a search tries for a product."""
    shape = shape_of(formula, group)
    if isinstance(shape, str):
        return ()
    made = ProductText(formula, group, shape)
    if made.tensor_refusal():
        return (DOUBLE,) if made.words > 1 else (LARGE, SMALL, CoreProduct(128, 64, 16, 8, 64, 64, 4))
    return (*(each.schedule for each in TENSOR_RULES), TensorProduct(256, 128), TensorProduct(128, 128, 64, 64, 3, 2))


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
    rules = [TensorRule(each) for each in schedules if isinstance(each, TensorProduct)]
    rules = rules or ([] if schedules or no_tensor else [*TENSOR_RULES])
    cores = [each for each in schedules if isinstance(each, CoreProduct)]
    cores = cores or ([] if rules else [DOUBLE] if made.words > 1 else [LARGE, SMALL])
    if rules and no_tensor:
        return no_tensor
    if any(each.words != made.words for each in cores):
        return f"Its sums take {made.words} words each."
    refusals = [*(each.refusal() for each in cores), *(each.schedule.refusal() for each in rules)]
    if any(refusals):
        return next(filter(None, refusals))
    plain, step = pointwise(formula, group, f"{name}_general")
    kernels: list[Kernel] = []
    narrow = _is_thin(made.extents["row"], made.extents["col"])
    many = Call(">=", (product([formula.dims[each] for each in group.dims]), Num(_MANY)))
    paths = [
        replace(each, conditions=(narrow, many, *each.conditions), reason="Tiles would be mostly empty.")
        for each in step.paths
    ]
    between: list[Tensor] = []
    names: dict[str, Expr] = {}
    layouts = [tensor_products(made, rules, name)] if rules else []
    for number, layout in enumerate(cores):
        label = f"_{layout.tile_m}x{layout.tile_n}" if len(cores) > 1 else ""
        layouts.append(_core(made, layout, f"{name}{label}", label, number + 1 == len(cores)))
    for more in layouts:
        kernels += [
            replace(each, parameters=tuple(names_back.get(n, n) for n in each.parameters)) for each in more.kernels
        ]
        paths += [_named_back(each, names_back) for each in more.paths]
        between += more.between
        names |= more.names
    steps = [Step((*paths, *step.paths), step.count, names)]
    return [*kernels, plain], steps, between


def _is_thin(*sides: Expr) -> Expr:
    """A test whether any side is short."""
    open_ones = [each for each in dict.fromkeys(sides) if not is_constant(each) or at_sizes(each, {}) < _THIN]
    least = open_ones[0] if len(open_ones) == 1 else Call("min", tuple(open_ones or map(Num, (_THIN, _THIN))))
    return Call("<", (least, Num(_THIN)))


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


def _core(made: ProductText, schedule: CoreProduct, name: str, label: str, is_last: bool) -> Layout:
    scope, sums = made.scope(), NAMES[made.sum_type.name]
    parts_text = f"{sums}* __restrict__ part_sums"
    depth = made.extents["depth"]
    is_split = schedule.split and not (is_constant(depth) and at_sizes(depth, {}) < 2 * LEAST_DEPTH)
    shared = {made.parts_name: parts_text} if is_split else {}
    described, parameters = made.core(f"{name}_kernel", scope, shared, is_split=is_split)
    body = core_product(described, schedule)
    kernels = [kernel_of(made, scope, f"{name}_kernel", body, parameters, {"load_or_zero", "store_pack"})]
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
    if is_split:
        rest = Call("%", (tiles, Num(schedule.places)))
        parts = parts_of(rest, depth, schedule)
        own, total_scope = f"{name}_total", made.scope()
        described, parameters = made.core(
            own, total_scope, {made.parts_name: f"const {parts_text}"}, is_split=True, is_total=True
        )
        body = total_kernel(described, schedule)
        kernels.append(kernel_of(made, total_scope, own, body, parameters, {"load_pack"}))
        size = schedule.tile_m * schedule.tile_n
        deep = Call("//", (depth, Num(LEAST_DEPTH)))
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
            paths.append(Path(launches, (*several, *conditions, *fits), aligned, reason, schedule))
    for vector, conditions, aligned in vectors:
        launch = Launch(kernels[0].name, (tiles, Num(1), Num(1)), block, template=(vector,))
        reason = "Rows are whole packs of 4." if vector == "4" else ""
        paths.append(Path((launch,), (*enough, *conditions, *fits), aligned, reason, schedule))
    return Layout(kernels, paths, names, between)
