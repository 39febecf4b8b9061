"""Transposes and other permutations whose fastest dimension changes: a tile turns in shared memory, so that reads and
writes both run along memory."""

from __future__ import annotations

from dataclasses import dataclass

from warpwright.formulas.bounds import Polynomial
from warpwright.formulas.model import Formula, Stage, Tensor
from warpwright.formulas.tree import Call, Expr, Load, Name, Num, Reduce, product, walk
from warpwright.formulas.types import TYPES, ElementType, computed
from warpwright.schedules.access import along, varies
from warpwright.schedules.model import Tile
from warpwright.writer.code import IN_64_BITS, Kernel, Launch, Path, Step, ceiling
from warpwright.writer.expressions import PRODUCT
from warpwright.writer.partition import Group
from warpwright.writer.places import base_expression, coordinate, packed, unique
from warpwright.writer.pointwise import elements_each, pointwise, within_int
from warpwright.writer.scope import Scope
from warpwright.writer.text import Text
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


def schedules_of(turned: Turn) -> tuple[Tile, ...]:
    """Rows of a tile are whole lines of 128 bytes or more. A thread moves 16 bytes of the wider type at once; of bytes
    8, since it holds four rows of them."""
    sizes = [max(1, TYPES[each].bits // 8) for each in (turned.tensor.type, turned.stage.type)]
    side = 128 if sizes[0] == 1 else 64 if sizes[0] <= 8 else 32
    vector = min(8, 16 // max(sizes))
    words = side // _word(TYPES[turned.tensor.type])
    return tuple(dict.fromkeys([Tile(side, min(words, 4 * vector), vector), Tile(side, 512 // side, 1)]))


def tile(formula: Formula, group: Group, name: str, wanted: Tile | None) -> tuple[list[Kernel], Step] | str:
    """The kernels of a group and their launches, the general one last; or why a tile does not fit."""
    found = turn(formula, group)
    if isinstance(found, str):
        return found
    schedules = schedules_of(found) if wanted is None else (wanted,)
    words = schedules[0].side // _word(TYPES[found.tensor.type])
    if any(words % each.rows for each in schedules):
        return f"A tile has {words} rows of words, which are not moved {schedules[0].rows} at once."
    plain_kernel, plain_step = pointwise(formula, group, f"{name}_plain", elements_each(group))
    scope = Scope(formula)
    kernel = _kernel(scope, found, name, schedules[0].side)
    paths = [path for each in schedules for path in _paths(scope, found, kernel, each)]
    return [kernel, plain_kernel], Step((*paths, *plain_step.paths), plain_step.count)


def _word(kind: ElementType) -> int:
    """How many elements fill a bank of shared memory."""
    return max(1, 32 // max(8, kind.bits))


def _kernel(scope: Scope, turned: Turn, name: str, side: int) -> Kernel:
    stage, tensor = turned.stage, turned.tensor
    kind, stored = TYPES[tensor.type], TYPES[stage.type]
    expressions, free = scope.expressions, scope.free
    scope.index_type = "Index"
    scope.used[tensor.array] = None
    out = scope.tensors[stage.name].array
    scope.used[out] = scope.stored[out] = None
    expressions.helpers |= {"load_pack", "store_pack"}
    p, q = turned.from_, turned.to
    dims = scope.formula.dims
    element, step = scope.free("j", "k", "m", "j_"), scope.free("i", "n", "s", "i_")
    row = scope.free(*("r", "l", "r_") if step == "n" else ("r", "n", "l", "r_"))
    length_p, length_q = expressions.of(dims[p], PRODUCT + 1), expressions.of(dims[q], PRODUCT + 1)
    p_begin, q_begin, p_tiles, q_tiles = (free(f"{d}_{w}") for w in ("begin", "tiles") for d in (p, q))
    pack = free(f"{tensor.array.replace('.', '_').rstrip('_')}_pack")
    body = Text(depth=1)
    body(f"constexpr int kSide = {side};  // a block turns a tile of {side} x {side}")
    body(f"constexpr int kWord = {_word(kind)};  // elements of a column that share a bank")
    body("constexpr int kWords = kSide / kWord;")
    body("constexpr int kLanes = kSide / kVector;  // threads that share a row")
    body("// Neither a warp's writes nor its reads meet in a bank: words change places within a row where packs are")
    body("// read at once, else a row is a word longer.")
    body(f"__shared__ alignas(16) Pack<{NAMES[tensor.type]}, kWord> turning[kSide][kWords + (kVector == 1)];")
    body("const auto place = [](int row, int word) {")
    body("    constexpr int kGranule = kVector > kWord ? kVector / kWord : 1;")
    body("    return kVector == 1 ? word : word ^ (row / kVector * kGranule % kWords);")
    body("};")
    body("const int along = threadIdx.x % kLanes * kVector;")
    body("const int across = threadIdx.x / kLanes;")
    others = turned.others
    body(f"const Index {p_tiles} = ({length_p} + kSide - 1) / kSide;")
    body(f"const Index {p_begin} = blockIdx.x % {p_tiles} * kSide;")
    if others:
        body(f"const Index {q_tiles} = ({length_q} + kSide - 1) / kSide;")
        body(f"const Index {q_begin} = blockIdx.x / {p_tiles} % {q_tiles} * kSide;")
        body(f"const Index batch = blockIdx.x / {p_tiles} / {q_tiles};")
    else:
        body(f"const Index {q_begin} = blockIdx.x / {p_tiles} * kSide;")
    for dim in others:
        body(f"const Index {dim} = {coordinate(expressions, others, dims, 'batch', dim)};")
    body()
    body(f"// Reads run along {p}, writes along {q}. Beyond an end the last elements are read again.")
    body("#pragma unroll")
    with body.block(f"for (int {step} = 0; {step} < kWords; {step} += kRows)"):
        body(f"const int word = across + {step};")
        body(f"const Index {p} = min({p_begin} + along, {length_p} - kVector);")
        body(f"Pack<{NAMES[tensor.type]}, kVector> rows[kWord];")
        with body.unrolled(row, "kWord"):
            body(f"const Index {q} = min({q_begin} + word * kWord + {row}, {length_q} - 1);")
            at = base_expression(turned.read, (), "", dims, Num(0), ())
            body(f"rows[{row}] = load_pack<kVector>({tensor.array} + {expressions.of(at)} + {p});")
        with body.unrolled(element, "kVector"):
            body(f"Pack<{NAMES[tensor.type]}, kWord> packed;")
            body("#pragma unroll")
            body(f"for (int {row} = 0; {row} < kWord; ++{row}) packed.at[{row}] = rows[{row}].at[{element}];")
            body(f"turning[along + {element}][place(along + {element}, word)] = packed;")
    body("__syncthreads();")
    body()
    scope.places[turned.load] = (read(kind, f"{pack}.at[{element}]"), computed(kind))
    needs_q = any(isinstance(n, Name) and n.name == q for n in _beside(stage.value, turned.load))
    first = free(f"{q}_first") if needs_q else q
    body(f"const Index {first} = {q_begin} + along;")
    body("#pragma unroll")
    with body.block(f"for (int {step} = 0; {step} < kSide; {step} += kRows)"):
        body(f"const int row = across + {step};")
        body("const auto* const from = turning[row][place(row, along / kWord)].at + along % kWord;")
        body(f"const Pack<{NAMES[tensor.type]}, kVector> {pack} = load_pack<kVector>(from);")
        body(f"const Index {p} = {p_begin} + row;")
        body(f"if ({p} >= {length_p} || {first} >= {length_q}) continue;")
        if tensor.type == stage.type and stage.value == turned.load:
            result = pack
        else:
            result = free(f"{out.replace('.', '_').rstrip('_')}_pack")
            body(f"Pack<{NAMES[stage.type]}, kVector> {result};")
            with body.unrolled(element, "kVector"):
                if needs_q:
                    body(f"const Index {q} = {first} + {element};")
                body(f"{result}.at[{element}] = {expressions.stored(stage.value, stored)};")
        at = base_expression(turned.store, (), "", dims, Num(0), ())
        body(f"store_pack({out} + {expressions.of(at)} + {first}, {result});")
    template = "typename Index, int kVector, int kRows"
    return scope.kernel(name, f"{side} / kVector * kRows", body.lines, template)


def _beside(node: Expr, load: Load) -> list[Expr]:
    """The expression and all below it, but for one load."""
    if node == load:
        return []
    parts = node.args if isinstance(node, Call) else node.index if isinstance(node, Load) else ()
    return [node, *(each for part in parts for each in _beside(part, load))]


def _paths(scope: Scope, turned: Turn, kernel: Kernel, schedule: Tile) -> list[Path]:
    formula = scope.formula
    moved = (
        (turned.tensor.array, turned.tensor.type, turned.read),
        (scope.tensors[turned.stage.name].array, turned.stage.type, turned.store),
    )
    lengths = [formula.dims[each] for each in (turned.from_, turned.to)]
    fits = packed(moved, lengths, formula.sizes, schedule.vector)
    if fits is None:
        return []
    conditions, aligned = fits
    dims = formula.dims
    # Where one side is short, most threads of a tile have no element.
    conditions += [Call(">=", (dims[each], Num(LEAST))) for each in (turned.from_, turned.to)]
    tiles = [ceiling(dims[each], schedule.side) for each in (turned.from_, turned.to)]
    blocks = product([*tiles, *(dims[each] for each in turned.others)])
    threads = schedule.side // schedule.vector * schedule.rows
    small = within_int(scope, product([dims[each] for each in turned.stage.dims]), schedule.side)
    found = []
    for index in ("int", "long long"):
        template = (index, str(schedule.vector), str(schedule.rows))
        launch = Launch(kernel.name, (blocks, Num(1), Num(1)), (threads, 1, 1), index, template=template)
        both = (*conditions, *(small if index == "int" else ()))
        said = f"A tile of {schedule.side} x {schedule.side} is transposed in shared memory."
        reason = said if index == "int" else IN_64_BITS
        found.append(Path((launch,), unique(both), aligned, reason, schedule))
    return found
