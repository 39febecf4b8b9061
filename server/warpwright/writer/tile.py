"""Transposes and other permutations whose fastest dimension changes: a tile turns in shared memory, so that reads and
writes both run along memory."""

from __future__ import annotations

from dataclasses import dataclass

from warpwright.formulas.bounds import Polynomial, polynomial
from warpwright.formulas.model import Formula, Stage, Tensor
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, Reduce, product, walk
from warpwright.formulas.types import TYPES, computed
from warpwright.schedules.access import along, varies
from warpwright.schedules.model import Tile
from warpwright.writer.code import MOST_INDEX, Kernel, Launch, Path, Step, ceiling
from warpwright.writer.expressions import PRODUCT
from warpwright.writer.partition import Group
from warpwright.writer.places import base_expression, divisible, unique
from warpwright.writer.pointwise import pointwise
from warpwright.writer.scope import Scope
from warpwright.writer.text import Text, listed
from warpwright.writer.types import NAMES, read

LEAST = 16
"""Elements of a side below which a thread for each element is as fast."""


@dataclass(frozen=True)
class Turn:
    """A stage that writes along `to` what is read along `from_`; each load in `loads` is of the one array that turns.
    `read` and `store` are where its elements with 0 in `from_` and in `to` lie."""

    stage: Stage
    tensor: Tensor
    load: Load
    from_: str
    to: str
    read: Polynomial
    store: Polynomial

    @property
    def others(self) -> tuple[str, ...]:
        """The dimensions beside the two of a tile."""
        return tuple(each for each in self.stage.dims if each not in (self.from_, self.to))


def turn(formula: Formula, group: Group) -> Turn | str:
    """What turns in a group, or why a tile does not fit."""
    if len(group.stages) != 1 or group.is_scatter or isinstance(group.stages[0].value, Reduce):
        return "A tile turns one array that is computed element by element."
    stage = group.stages[0]
    if len(stage.dims) < 2 or stage.primed:
        return "A tile has two dimensions."
    scope = Scope(formula)
    to = stage.dims[-1]
    own = Load(stage.name, stage.own_index)
    store = along(scope.tensors[stage.name], own, (to,), formula.dims)
    loads = list(dict.fromkeys(n for n in walk(stage.value) if isinstance(n, Load) and varies(n.index, (to,))))
    apart = [n for n in loads if along(scope.tensors[n.tensor], n, (to,), formula.dims) is None]
    if store is None or len(apart) != 1:
        return "No single array turns."
    tensor = scope.tensors[apart[0].tensor]
    for dim in stage.dims[:-1]:
        base = along(tensor, apart[0], (dim,), formula.dims)
        if base is not None:
            return Turn(stage, tensor, apart[0], dim, to, base, store)
    return f"{tensor.name} does not run along a dimension of {stage.name}."


def tile(formula: Formula, group: Group, name: str, schedules: tuple[Tile, ...]) -> tuple[list[Kernel], Step] | str:
    """The kernels of a group and their launches, the general one last; or why a tile does not fit."""
    found = turn(formula, group)
    if isinstance(found, str):
        return found
    plain_kernel, plain_step = pointwise(formula, group, f"{name}_plain")
    side = schedules[0].side
    scope = Scope(formula)
    kernel = _kernel(scope, found, name, side)
    paths = [path for each in schedules for path in _paths(scope, found, kernel, each)]
    return [kernel, plain_kernel], Step((*paths, *plain_step.paths), plain_step.count)


def _kernel(scope: Scope, turned: Turn, name: str, side: int) -> Kernel:
    stage, tensor = turned.stage, turned.tensor
    kind, stored = TYPES[tensor.type], TYPES[stage.type]
    expressions = scope.expressions
    scope.index_type = "Index"
    scope.used[tensor.array] = None
    out = scope.tensors[stage.name].array
    scope.used[out] = scope.stored[out] = None
    expressions.helpers |= {"load_pack", "store_pack"}
    p, q = turned.from_, turned.to
    dims = scope.formula.dims
    element = next(n for n in ("j", "k", "m", "j_") if n not in {*dims, *scope.tensors, *scope.formula.scalars})
    step = next(n for n in ("i", "n", "s", "i_") if n not in {*dims, *scope.tensors, *scope.formula.scalars})
    length_p, length_q = expressions.of(dims[p], PRODUCT + 1), expressions.of(dims[q], PRODUCT + 1)
    body = Text(depth=1)
    body(f"constexpr int kSide = {side};  // a block turns a tile of {side} x {side}")
    wider = max(1, 32 // kind.bits)
    body(f"__shared__ {NAMES[tensor.type]} turning[kSide][kSide + {wider}];  // wider: a column lies in all banks")
    body("const int along = threadIdx.x % (kSide / kVector) * kVector;")
    body("const int across = threadIdx.x / (kSide / kVector);")
    body(f"const Index tiles_p = ({length_p} + kSide - 1) / kSide;")
    body(f"const Index tiles_q = ({length_q} + kSide - 1) / kSide;")
    body(f"const Index {p}_begin = blockIdx.x % tiles_p * kSide;")
    others = turned.others
    wrap = " % tiles_q" if others else ""
    body(f"const Index {q}_begin = blockIdx.x / tiles_p{wrap} * kSide;")
    if others:
        body("const Index batch = blockIdx.x / tiles_p / tiles_q;")
        for place, dim in enumerate(others):
            behind = product([dims[each] for each in others[place + 1 :]])
            whole = "batch" if behind == Num(1) else f"batch / {expressions.of(behind, PRODUCT + 1)}"
            body(f"const Index {dim} = {whole}{f' % {expressions.of(dims[dim], PRODUCT + 1)}' if place else ''};")
    body()
    body(f"// Reads run along {p}, writes along {q}; the tile turns between them.")
    body("#pragma unroll")
    with body.block(f"for (int {step} = 0; {step} < kSide; {step} += kRows)"):
        body(f"const Index {p} = {p}_begin + along;")
        body(f"const Index {q} = {q}_begin + across + {step};")
        with body.block(f"if ({p} < {length_p} && {q} < {length_q})"):
            at = base_expression(turned.read, (), "", dims, Num(0), ())
            body(
                f"const Pack<{NAMES[tensor.type]}, kVector> pack = "
                f"load_pack<kVector>({tensor.array} + {expressions.of(at)} + {p});"
            )
            body("#pragma unroll")
            each = f"for (int {element} = 0; {element} < kVector; ++{element})"
            body(f"{each} turning[across + {step}][along + {element}] = pack.at[{element}];")
    body("__syncthreads();")
    body()
    body("#pragma unroll")
    with body.block(f"for (int {step} = 0; {step} < kSide; {step} += kRows)"):
        body(f"const Index {p} = {p}_begin + across + {step};")
        needs_q = any(isinstance(n, Name) and n.name == q for n in _beside(stage.value, turned.load))
        first = f"{q}_first" if needs_q else q
        body(f"const Index {first} = {q}_begin + along;")
        with body.block(f"if ({p} < {length_p} && {first} < {length_q})"):
            body(f"Pack<{NAMES[stage.type]}, kVector> pack;")
            scope.places[turned.load] = (read(kind, f"turning[along + {element}][across + {step}]"), computed(kind))
            if tensor.type == stage.type and stage.value == turned.load:
                value = f"turning[along + {element}][across + {step}]"
            else:
                value = expressions.stored(stage.value, stored)
            body("#pragma unroll")
            if needs_q:
                with body.block(f"for (int {element} = 0; {element} < kVector; ++{element})"):
                    body(f"const Index {q} = {first} + {element};")
                    body(f"pack.at[{element}] = {value};")
            else:
                body(f"for (int {element} = 0; {element} < kVector; ++{element}) pack.at[{element}] = {value};")
            at = base_expression(turned.store, (), "", dims, Num(0), ())
            body(f"store_pack({out} + {expressions.of(at)} + {first}, pack);")
    texts, parameters = scope.parameters("Index")
    head = ["template <typename Index, int kVector, int kRows>"]
    head += listed(texts, f"__global__ void __launch_bounds__({side} / kVector * kRows) {name}(", ") {")
    types = {scope.type_named(each).name for each in scope.used if each in scope.tensors}
    text = "\n".join([*head, str(body), "}"])
    return Kernel(
        name,
        text,
        parameters,
        True,
        "long long",
        frozenset(expressions.helpers | {"Pack"}),
        frozenset(types | expressions.types),
    )


def _beside(node: Expr, load: Load) -> list[Expr]:
    """The expression and all below it, but for one load."""
    if node == load:
        return []
    parts = node.args if isinstance(node, Call) else node.index if isinstance(node, Load) else ()
    return [node, *(each for part in parts for each in _beside(part, load))]


def _paths(scope: Scope, turned: Turn, kernel: Kernel, schedule: Tile) -> list[Path]:
    formula = scope.formula
    conditions: list[Expr] = []
    aligned: dict[str, int] = {}
    if schedule.vector > 1:
        ends = [polynomial(formula.dims[each]) or {} for each in (turned.from_, turned.to)]
        bases = [turned.read, turned.store, *({("@", *key): f for key, f in end.items()} for end in ends)]
        for base in bases:
            more = divisible(base, formula.sizes, schedule.vector)
            if more is None:
                return []
            conditions += more
        arrays = (
            (turned.tensor.array, turned.tensor.type),
            (scope.tensors[turned.stage.name].array, turned.stage.type),
        )
        aligned = {array: min(16, schedule.vector * TYPES[kind].bits // 8) for array, kind in arrays}
    dims = formula.dims
    # Where one side is short, most threads of a tile have no element.
    conditions += [Call(">=", (dims[each], Num(LEAST))) for each in (turned.from_, turned.to)]
    tiles = [ceiling(dims[each], schedule.side) for each in (turned.from_, turned.to)]
    blocks = product([*tiles, *(dims[each] for each in turned.others)])
    threads = schedule.side // schedule.vector * schedule.rows
    fits = Call("<=", (blocks, Num(MOST_INDEX)))
    reach = [
        Call("<=", (product(list(each.extents)), Num(MOST_INDEX)))
        for name, each in scope.tensors.items()
        if name in scope.used and each.strides is None
    ]
    strided = any(each.strides is not None for name, each in scope.tensors.items() if name in scope.used)
    found = []
    for index in ("long long",) if strided else ("int", "long long"):
        template = (index, str(schedule.vector), str(schedule.rows))
        launch = Launch(kernel.name, (blocks, Num(1), Num(1)), (threads, 1, 1), index, template=template)
        both = (*conditions, fits, *(reach if index == "int" else ()))
        found.append(
            Path(
                (launch,), unique(both), aligned, f"A tile of {schedule.side} x {schedule.side} turns in shared memory."
            )
        )
    return found
