"""Scatters to few places: each block gathers what meets there in shared memory, and hands it on with one atomic
operation for each place."""

from __future__ import annotations

from collections.abc import Mapping

from warpwright.formulas.extents import at_sizes, is_constant
from warpwright.formulas.model import Formula, Stage, Tensor
from warpwright.formulas.normal import identity, tensors_of
from warpwright.formulas.tree import Call, Load, Num, Reduce, product, walk
from warpwright.formulas.types import TYPES, ElementType, computed
from warpwright.schedules.access import along
from warpwright.schedules.model import Bins
from warpwright.writer.code import MOST_INDEX, Kernel, Launch, Path, ceiling
from warpwright.writer.expressions import PRODUCT
from warpwright.writer.partition import Group
from warpwright.writer.places import coordinates, unique
from warpwright.writer.pointwise import combined, is_packed, reach
from warpwright.writer.scatter import OPS, atomic
from warpwright.writer.scope import Scope
from warpwright.writer.text import Text
from warpwright.writer.types import NAMES, literal, read

SHARED = 48 * 1024
"""Bytes of a block."""
COPIES = (32, 8, 1)
"""Of each place: where lanes of a warp have their own, they never wait for each other."""
LEAST = 64
"""Values for each place below which blocks have more to hand on than to gather."""
BATCH = 4
"""Packs of a thread at least, where there are that many."""


def vector_of(formula: Formula, group: Group) -> int:
    """How many elements are 16 bytes of the narrowest array that is read in the order of the group's dimensions."""
    sizes = [max(1, TYPES[each.type].bits // 8) for each in _moved(Scope(formula), group).values()]
    return max(1, min(16 // min(sizes), 32 // max(sizes))) if sizes else 1


def bins(formula: Formula, group: Group, name: str, schedule: Bins) -> tuple[Kernel, list[Path]] | str:
    """The kernel of a scatter and the paths on which its places fit shared memory; or why they never do."""
    stage = group.stages[0]
    if not stage.combine:
        return "Nothing meets at computed places."
    tensor = tensors_of(formula)[stage.name]
    if not is_packed(formula, stage.name) or not tensor.extents or TYPES[stage.type].kind == "complex":
        return f"{stage.name} is not a packed array of numbers."
    if not group.dims or isinstance(stage.value, Reduce):
        return "A single value is scattered."
    scope = Scope(formula)
    moved = _moved(scope, group)
    kernel = _kernel(scope, group, name, schedule, moved)
    size = product(list(tensor.extents))
    count = product([formula.dims[each] for each in group.dims])
    places = SHARED // (_gathered(stage).bits // 8)
    grid = Call("min", (ceiling(count, schedule.threads * schedule.vector * BATCH), Num(schedule.blocks)))
    last = MOST_INDEX - schedule.threads * schedule.blocks * schedule.vector
    arrays = scope.touched()
    small = [Call("<=", (count, Num(last))), *(Call("<=", (reach(each), Num(MOST_INDEX))) for each in arrays)]
    many = Call(">=", (count, Call("*", (Num(LEAST), size))))
    paths: list[Path] = []
    for vector in dict.fromkeys((schedule.vector, 1)):
        aligned = {array.array: min(16, vector * TYPES[array.type].bits // 8) for array in moved.values()}
        for copies in COPIES:
            fits = Call("<=", (size, Num(places // copies)))
            template = ("int", str(vector), str(copies))
            launch = Launch(kernel.name, (grid, Num(1), Num(1)), (schedule.threads, 1, 1), "int", template=template)
            said = f"Shared memory holds {f'{copies} copies of' if copies > 1 else ''} the result.".replace("  ", " ")
            paths.append(Path((launch,), unique((fits, many, *small)), aligned if vector > 1 else {}, said, schedule))
            if is_constant(fits) and at_sizes(fits, {}):
                break
    return kernel, paths


def _moved(scope: Scope, group: Group) -> dict[Load, Tensor]:
    """The arrays that are read in the order of all dimensions of the group, so that packs of them are."""
    stage = group.stages[0]
    loads = [n for part in (stage.value, *stage.index) for n in walk(part) if isinstance(n, Load)]
    found = {each: scope.tensors[each.tensor] for each in loads}
    return {n: array for n, array in found.items() if along(array, n, group.dims, scope.formula.dims) == {}}


def _gathered(stage: Stage) -> ElementType:
    """The type in which a block gathers: ones are counted in 32 bits, as a block has fewer than 2**31 of them."""
    kind = computed(TYPES[stage.type])
    is_count = stage.combine == "+" and kind.kind == "integer" and stage.value == Num(1)
    return TYPES["i32"] if is_count else kind


def _kernel(scope: Scope, group: Group, name: str, schedule: Bins, moved: Mapping[Load, Tensor]) -> Kernel:
    """A template over the type of indices, the width of packs and the copies of each place."""
    formula, expressions, stage = scope.formula, scope.expressions, group.stages[0]
    scope.index_type = "Index"
    tensor = scope.tensors[stage.name]
    kind, gathered = TYPES[stage.type], _gathered(stage)
    op = OPS[stage.combine]
    element = scope.free("k", "m", "element")
    own, place, copy, step, first, total, each = (
        scope.free(n) for n in (f"{stage.name}_own", "place", "copy", "step", "first", "total", "each")
    )
    count = expressions.of(product([formula.dims[dim] for dim in group.dims]), PRODUCT)
    size = expressions.of(product(list(tensor.extents)), PRODUCT)
    start = literal(identity(op, gathered), gathered)
    threads, held = schedule.threads, NAMES[gathered.name]
    body, inner = Text(depth=1), Text(depth=3)
    body(f"constexpr int kPlaces = {SHARED // (gathered.bits // 8)};")
    body(f"__shared__ {held} {own}[kPlaces];")
    head = f"for (int {place} = threadIdx.x; {place} < {size} * kCopies; {place} += {threads})"
    body(f"{head} {own}[{place}] = {start};")
    body("__syncthreads();")
    body(f"const int {copy} = threadIdx.x % kCopies;")
    begin = f"(static_cast<Index>(blockIdx.x) * {threads} + threadIdx.x) * kVector"
    body(f"const Index {step} = static_cast<Index>(gridDim.x) * {threads} * kVector;")
    with body.block(f"for (Index {first} = {begin}; {first} < {count}; {first} += {step})"):
        packs: dict[str, str] = {}
        for load, array in moved.items():
            if array.array not in packs:
                packs[array.array] = scope.free(f"{array.array}_pack")
                scope.used[array.array] = None
                expressions.helpers.add("load_some")
                loaded = f"load_some<kVector>({array.array} + {first}, {count} - {first})"
                body(f"const Pack<{NAMES[array.type]}, kVector> {packs[array.array]} = {loaded};")
            text = f"{packs[array.array]}.at[{element}]"
            scope.places[load] = (read(TYPES[array.type], text), computed(TYPES[array.type]))
        at = scope.offset(tensor, list(stage.own_index))
        at = f"({at})" if " " in at else at
        value = expressions.stored(stage.value, gathered)
        inner(f"{atomic(scope, stage, gathered, f'{own} + {at} * kCopies + {copy}', value)};")
        with body.unrolled(element, "kVector"):
            body(f"if ({first} + {element} >= {count}) break;")
            body.add(coordinates(expressions, group.dims, formula.dims, f"({first} + {element})", str(inner)))
            body.lines += inner.lines
    body("__syncthreads();")
    with body.block(f"for (int {place} = threadIdx.x; {place} < {size}; {place} += {threads})"):
        body(f"{held} {total} = {start};")
        with body.unrolled(each, "kCopies"):
            body("// Neighbouring threads begin at other copies, which lie in other banks.")
            other = f"{own}[{place} * kCopies + ({place} + {each}) % kCopies]"
            body.add(combined(scope, Reduce(op, (), Num(0)), total, other, gathered, gathered))
        scope.used[tensor.array] = scope.stored[tensor.array] = None
        handed = atomic(
            scope, stage, kind, f"{tensor.array} + {place}", scope.expressions.written(kind, total, gathered)
        )
        body(f"if ({total} != {start}) {handed};")
    said = "// A block gathers in shared memory, so that it changes each place in global memory once at most."
    return scope.kernel(name, threads, body.lines, "typename Index, int kVector, int kCopies", said=said)
