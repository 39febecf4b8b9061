"""What CUDA's built-in functions do to values, memory and barriers.

Names are those of the CUDA C++ Programming Guide ("C++ Language Extensions") and the CUDA Math API.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from warpwright.facts import ir
from warpwright.facts.assembly import BAR_ARRIVE, BAR_SYNC, CLUSTER_ARRIVE
from warpwright.facts.barrier_objects import set_up
from warpwright.facts.known_functions import KNOWN_FUNCTIONS
from warpwright.facts.lanes import Number, each, lanes, pairwise, simplify
from warpwright.facts.mathematics import computed
from warpwright.facts.meetings import Step
from warpwright.facts.model import WARP, AccessKind
from warpwright.facts.places import truth
from warpwright.facts.predication import NEVER, OPERATION
from warpwright.facts.types import (
    BUILTIN_TYPES,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    UINT,
    ULONG,
    UNKNOWN_TYPE,
    CType,
    arithmetic_result,
)
from warpwright.facts.values import (
    DATA,
    EXACT,
    FULL,
    UNKNOWN,
    AnyValue,
    Group,
    StructValue,
    Value,
    binary,
    exact_number,
    opaque,
    soft,
    unknown,
)
from warpwright.facts.waits import CLUSTER, COALESCED, GRID, LanesWait

if TYPE_CHECKING:
    from warpwright.facts.evaluate import Evaluator
    from warpwright.facts.position import Guard

_BLOCK_BARRIERS = {"__syncthreads", "__syncthreads_count", "__syncthreads_and", "__syncthreads_or"}
_LOADS = {"__ldg", "__ldcg", "__ldca", "__ldcs", "__ldlu", "__ldcv"}
_STORES = {"__stwb", "__stcg", "__stcs", "__stwt"}
_SHUFFLE = re.compile(r"__shfl(_up|_down|_xor)?(_sync)?$")
_VOTE = re.compile(r"__(all|any|uni|ballot|activemask)(?:_sync)?$")
_KIND = re.compile(r"(?<=__shfl)_(?:up|down|xor)(?=_sync|$)")
"""Shuffles wait for shuffles of every kind."""
_UNIFORM_VOTES = re.compile(r"__(all|any|uni|ballot)(_sync)?$|__activemask$|__reduce_\w+_sync$|__match_all_sync$")

_ORDERS = re.compile(r"fence|pipeline|bar(?:rier)?(?:_|\b)|sync|nanosleep|memcpy")
"""In the name of a function by which threads may wait for each other."""
_COPIED = {4: UINT, 8: BUILTIN_TYPES["uint2"], 16: BUILTIN_TYPES["uint4"]}
"""What is copied asynchronously, by its bytes."""
_COSTS = {"exp": 8, "log": 8, "sqrt": NEVER, "sin": NEVER, "cos": NEVER, "pow": NEVER, "tan": NEVER, "printf": NEVER}
"""Instructions of a call, see predication.LIMIT; that of one operation for what is not listed."""


def call_intrinsic(run: Evaluator, node: ir.Call, mask: int) -> AnyValue:
    """A call of a function whose text is not in the unit."""
    name = node.name
    handler = _HANDLERS.get(name)
    if handler is not None:
        return handler(run, node, mask)
    if name.startswith("atomic"):
        return _atomic(run, node, mask)
    if _SHUFFLE.match(name):
        return _shuffle(run, node, mask)
    arguments = [run.any_value(a, mask) for a in node.arguments]
    if name == "init" and set_up(run, arguments):
        return unknown()
    if _UNIFORM_VOTES.match(name):
        _lanes_wait(run, node, arguments[0] if name.endswith("_sync") and arguments else None, mask)
        return _vote(run, name, arguments, mask)
    if name == "__match_any_sync":
        _lanes_wait(run, node, arguments[0] if arguments else None, mask)
        return opaque(UINT, *arguments)
    if name.startswith("make_") and name[5:] in BUILTIN_TYPES:
        kind = BUILTIN_TYPES[name[5:]]
        values = dict(zip((f[0] for f in kind.fields), arguments, strict=False))
        return StructValue(kind, dict(values))
    if name in ("__brev", "__popc", "__clz", "__ffs", "__popcll", "__clzll", "__ffsll"):
        return _bit_count(name, arguments)
    if name in ("__mul24", "__umul24", "mul24", "umul24") and len(arguments) == 2:
        return _both(arguments, lambda a, b: binary("*", a, b))
    if name in ("div_up", "ceil_div", "cdiv", "divUp") and len(arguments) == 2:
        return _both(arguments, lambda a, b: Value(pairwise(_ceil_divide, a.data, b.data), INT, max(a.basis, b.basis)))
    if not KNOWN_FUNCTIONS.fullmatch(name) or _ORDERS.search(name):
        run.recorder.intervals.lost = True
    run.cost += _COSTS.get(name.removeprefix("__").rstrip("f"), OPERATION)
    return _math(name, arguments) or opaque(_result_type(name, arguments), *arguments)


def _result_type(name: str, arguments: list[AnyValue]) -> CType:
    convert = re.match(r"__\w+2(int|uint|ll|ull|float|half)_", name)
    if convert:
        return {"int": INT, "uint": UINT, "ll": LONG, "ull": ULONG, "float": FLOAT}.get(convert.group(1), FLOAT)
    if name.startswith("clock") or name == "__nanosleep":
        return LONG
    for argument in arguments:
        if isinstance(argument, Value) and argument.type.kind == "float":
            return argument.type
    return arguments[0].type if arguments and isinstance(arguments[0], Value) else UNKNOWN_TYPE


def _both(arguments: list[AnyValue], operation: Callable[[Value, Value], Value]) -> AnyValue:
    left, right = arguments
    if isinstance(left, Value) and isinstance(right, Value):
        return operation(left, right)
    return unknown(INT)


def _ceil_divide(a: Number, b: Number) -> Number | None:
    return -(-int(a) // int(b)) if b else None


def _math(name: str, arguments: list[AnyValue]) -> Value | None:
    """A function of the math library of numbers that are known; None for others."""
    values = [value for value in arguments if isinstance(value, Value) and value.decided and value.region is None]
    found = computed(name, [value.data for value in values]) if len(values) == len(arguments) else None
    if found is None:
        return None
    data, kind = found
    if kind is None:
        kind = FLOAT if values[0].type.size == 4 and values[0].type.kind == "float" else DOUBLE
    return Value(data, kind, max(v.basis for v in values), 0, any(v.thread for v in values))


def _vote(run: Evaluator, name: str, arguments: list[AnyValue], mask: int) -> AnyValue:
    """What the lanes that are on say together: the same number in all of them (CUDA C++ Programming Guide, "Warp Vote
    Functions")."""
    asked = _VOTE.match(name)
    if asked is None or any(guard.undecided for guard in run.guards):
        return soft(UINT, True)
    if asked[1] == "activemask":
        return Value(mask, UINT, EXACT, 0, True)
    said = arguments[-1] if arguments else None
    if not isinstance(said, Value) or not said.decided:
        return soft(UINT, True)
    on = truth(said) & mask
    number = {"ballot": on, "any": int(on != 0), "all": int(on == mask), "uni": int(on in (0, mask))}[asked[1]]
    return Value(number, UINT if asked[1] == "ballot" else INT, said.basis, 0, True)


def _bit_count(name: str, arguments: list[AnyValue]) -> AnyValue:
    value = arguments[0] if arguments else None
    if not isinstance(value, Value) or not value.decided:
        return opaque(INT, value)
    width = 64 if name.endswith("ll") else 32
    full = (1 << width) - 1

    def count(number: Number) -> Number | None:
        bits = int(number) & full
        if name.startswith("__popc"):
            return bits.bit_count()
        if name.startswith("__clz"):
            return width - bits.bit_length()
        if name == "__brev":
            return int(f"{bits:0{width}b}"[::-1], 2)
        return (bits & -bits).bit_length()

    return Value(each(count, value.data), INT, value.basis, 0, value.thread)


def _extreme(run: Evaluator, node: ir.Call, mask: int) -> AnyValue:
    values = [run.any_value(a, mask) for a in node.arguments]
    if len(values) != 2:
        return opaque(UNKNOWN_TYPE, *values)
    pick = max if "max" in node.name else min

    def choose(left: Value, right: Value) -> Value:
        kind = arithmetic_result(left.type, right.type)
        if left.soft or right.soft:
            return opaque(kind, left, right)
        data = pairwise(pick, left.data, right.data)
        thread = left.thread or right.thread
        if data is None:
            return unknown(kind, max(left.basis, right.basis), thread)
        return Value(data, kind, max(left.basis, right.basis), 0, thread)

    return _both(values, choose)


def _absolute(run: Evaluator, node: ir.Call, mask: int) -> AnyValue:
    value = run.value(node.arguments[0], mask) if node.arguments else unknown()
    if not value.decided:
        return opaque(value.type, value)
    return Value(each(abs, value.data), value.type, value.basis, 0, value.thread)


def _load(run: Evaluator, node: ir.Call, mask: int) -> AnyValue:
    if not node.arguments:
        return unknown()
    pointer = run.value(node.arguments[0], mask)
    return run.load_memory(pointer, pointer.type.to or UNKNOWN_TYPE, node.span, mask)


def _store(run: Evaluator, node: ir.Call, mask: int) -> AnyValue:
    values = [run.any_value(a, mask) for a in node.arguments]
    if values and isinstance(values[0], Value):
        run.touch(values[0], values[0].type.to or UNKNOWN_TYPE, node.span, AccessKind.STORE, mask)
    return unknown()


def _atomic(run: Evaluator, node: ir.Call, mask: int) -> AnyValue:
    values = [run.any_value(a, mask) for a in node.arguments]
    if not values or not isinstance(values[0], Value):
        return unknown()
    run.cost += NEVER
    pointer = values[0]
    kind = pointer.type.to or UNKNOWN_TYPE
    run.touch(pointer, kind, node.span, AccessKind.ATOMIC, mask)
    return unknown(kind, DATA, True)


def _shuffle(run: Evaluator, node: ir.Call, mask: int, tile: int = WARP, named: AnyValue | None = None) -> AnyValue:
    """The value of another lane, for which those of a tile wait. Lanes are read as they stand; a width below 32 makes
    segments."""
    arguments = [run.any_value(a, mask) for a in node.arguments]
    if node.name.endswith("_sync") and arguments:
        named = arguments[0]
    _lanes_wait(run, node, named, mask, tile)
    if node.name.endswith("_sync"):
        arguments = arguments[1:]
    if len(arguments) < 2 or not isinstance(arguments[0], Value) or not isinstance(arguments[1], Value):
        return unknown()
    value, other = arguments[0], arguments[1]
    if value.uniform:
        return value
    width = arguments[2].data if len(arguments) > 2 and isinstance(arguments[2], Value) else WARP
    if value.data is None or not other.decided or not isinstance(width, int) or width not in (2, 4, 8, 16, 32):
        one_lane = node.name.removesuffix("_sync") == "__shfl" and other.uniform and width == WARP
        return soft(value.type, True) if one_lane else unknown(value.type, UNKNOWN, True)  # it may be the same in all
    have, moves = lanes(value.data), lanes(other.data)
    out: list[Number | None] = []
    for lane in range(WARP):
        start, move = lane - lane % width, int(moves[lane] or 0)
        source = {
            "__shfl_up": lane - move, "__shfl_down": lane + move, "__shfl_xor": lane ^ move,
        }.get(node.name.removesuffix("_sync"), start + move % width)  # fmt: skip
        out.append(have[source] if start <= source < start + width else have[lane])
    return Value(simplify(out), value.type, max(value.basis, other.basis), value.soft, True, value.region)


def _barrier(run: Evaluator, node: ir.Call, mask: int) -> None:
    run.cost += NEVER
    run.recorder.flush()
    alive = run.warp.mask & ~run.kernel_frame.returned
    left = run.frame.left if run.call_depth else None  # the kernel's own lanes have ended
    run.recorder.barrier(node.span, mask, alive, run.weight, run.warp.position, _parted(run) or left)


def _parted(run: Evaluator) -> Guard | None:
    return next((loop.parted for loop in run.loops if loop.parted is not None), None)


def _fence(run: Evaluator, _node: ir.Call, _mask: int) -> AnyValue:
    run.recorder.intervals.fence()
    return unknown()


def _copy_async(run: Evaluator, node: ir.Call, mask: int) -> AnyValue:
    """`__pipeline_memcpy_async(to, from, bytes)`: done at some time before the thread's own wait ends."""
    values = [run.any_value(argument, mask) for argument in node.arguments]
    target, source, size = (*values, None, None, None)[:3]
    kind = _COPIED.get(exact_number(size) or 0)
    if kind is None or not isinstance(target, Value) or not isinstance(source, Value):
        run.recorder.intervals.lost = True
        return unknown()
    run.load_memory(source, kind, node.span, mask)
    run.touch(target, kind, node.span, AccessKind.STORE, mask)
    return unknown()


def _own_wait(_run: Evaluator, _node: ir.Call, _mask: int) -> AnyValue:
    """A thread waits for its own copies, which orders nothing between threads."""
    return unknown()


def _numbered_barrier(run: Evaluator, node: ir.Call, mask: int) -> AnyValue:
    """A barrier with a number, and with a number of threads or for the whole block."""
    values = [run.any_value(argument, mask) for argument in node.arguments]
    if node.name != BAR_ARRIVE and len(values) == 1:
        _barrier(run, node, mask)
        return unknown()
    numbers = [exact_number(value) for value in values]
    number, threads = numbers if len(numbers) == 2 else (None, None)
    if number is None or not threads or threads % WARP:
        run.recorder.intervals.parted = True
        return unknown()
    step = Step(node.span, number, WARP, node.name != BAR_ARRIVE, threads)
    run.recorder.comes(step, mask, run.warp.mask & ~run.kernel_frame.returned, run.warp.position)
    return unknown()


def _sync_warp(run: Evaluator, node: ir.Call, mask: int) -> AnyValue:
    arguments = [run.any_value(a, mask) for a in node.arguments]
    _lanes_wait(run, node, arguments[0] if arguments else Value(FULL, UINT), mask)
    return unknown()


def _lanes_wait(run: Evaluator, node: ir.Call, named: AnyValue | None, mask: int, tile: int = WARP) -> None:
    known = exact_number(named)
    lanes_of = known & FULL if known is not None else None
    alive = run.warp.mask & ~run.kernel_frame.returned
    kind = _KIND.sub("", node.name)
    run.recorder.lanes_wait(LanesWait(node.span, kind, tile, lanes_of, mask, alive, run.warp.position, _parted(run)))


def _blocks_wait(run: Evaluator, node: ir.Call, kind: str, mask: int) -> None:
    """The threads of all blocks of the grid, or of a cluster, wait for each other."""
    alive = run.warp.mask & ~run.kernel_frame.returned
    run.recorder.lanes_wait(LanesWait(node.span, kind, WARP, alive, mask, alive, run.warp.position, None))
    run.recorder.intervals.lost = True


def _cluster_barrier(run: Evaluator, node: ir.Call, mask: int) -> AnyValue:
    _blocks_wait(run, node, CLUSTER, mask)
    return unknown()


def _block_barrier(run: Evaluator, node: ir.Call, mask: int) -> AnyValue:
    for argument in node.arguments:
        run.any_value(argument, mask)
    _barrier(run, node, mask)
    return soft(INT, False)


# -- cooperative groups -----------------------------------------------------------------------------------------


def _this_block(_run: Evaluator, _node: ir.Call, _mask: int) -> AnyValue:
    return Group(None)


def _this_grid(_run: Evaluator, _node: ir.Call, _mask: int) -> AnyValue:
    return Group(None, GRID)


def _this_cluster(_run: Evaluator, _node: ir.Call, _mask: int) -> AnyValue:
    return Group(None, CLUSTER)


def _partition(run: Evaluator, node: ir.Call, mask: int) -> AnyValue:
    size: AnyValue | None = None
    if node.template_arguments:
        given = node.template_arguments[0]
        size = run.any_value(given, mask) if isinstance(given, ir.Expr) else None
    elif len(node.arguments) > 1:
        size = run.any_value(node.arguments[1], mask)
    if isinstance(size, Value) and isinstance(size.data, int):
        return Group(size.data)
    return Group(WARP)


def _group_sync(run: Evaluator, node: ir.Call, mask: int) -> AnyValue:
    group = run.any_value(node.arguments[0], mask) if node.arguments else None
    if isinstance(group, Group) and group.size is None and not group.kind:
        _barrier(run, node, mask)
    elif isinstance(group, Group) and group.size is None:
        _blocks_wait(run, node, group.kind, mask)
    elif not isinstance(group, Group) or _is_beyond_warp(group):
        run.recorder.intervals.lost = True
    else:
        _lanes_wait(run, node, _lanes_of(group), mask, group.size or WARP)
    return unknown()


def _lanes_of(group: Group) -> Value | None:
    """The lanes that a group of a whole warp waits for."""
    return Value(FULL, UINT) if group.size == WARP and group.kind != COALESCED else None


def _is_beyond_warp(group: Group) -> bool:
    """Whether the threads of several warps may wait for each other in a group."""
    return group.size is None or group.size > WARP


def _thread_rank(run: Evaluator) -> Value:
    """The linear number of a thread in its block (CUDA C++ Programming Guide, "Thread Hierarchy")."""
    (x, y, z), (width, height, _) = run.warp.specials["threadIdx"], run.warp.specials["blockDim"]
    return binary("+", x, binary("*", width, binary("+", y, binary("*", height, z))))


def _block_rank(run: Evaluator) -> Value:
    """The linear number of a block in its grid: x first, then y, then z."""
    (x, y, z), (width, height, _) = run.warp.specials["blockIdx"], run.warp.specials["gridDim"]
    return binary("+", x, binary("*", width, binary("+", y, binary("*", height, z))))


def _count(extents: tuple[Value, Value, Value]) -> Value:
    x, y, z = extents
    return binary("*", binary("*", x, y), z)


def group_method(run: Evaluator, group: Group, node: ir.Call, mask: int) -> AnyValue:
    """A method of a cooperative group: ranks and sizes are counted, sync of a block is a barrier."""
    rank, threads = _thread_rank(run), _count(run.warp.specials["blockDim"])
    size = Value(group.size or WARP, INT)
    match node.name:
        case "sync" | "barrier_wait" if group.size is None and not group.kind:
            _barrier(run, node, mask)
        case "sync" | "barrier_arrive" if group.size is None:
            _blocks_wait(run, node, group.kind, mask)
        case "block_rank" | "num_blocks" | "map_shared_rank" if group.kind == CLUSTER:
            for argument in node.arguments:
                run.any_value(argument, mask)
            return _of_cluster(run, node.name)
        case "thread_rank" if group.kind == CLUSTER:
            return unknown(UINT, UNKNOWN, True)
        case "size" | "num_threads" if group.kind == CLUSTER:
            return soft(UINT, False)
        case "thread_rank" if group.kind == GRID:
            return binary("+", binary("*", _block_rank(run), threads), rank)
        case "block_rank" if group.kind == GRID:
            return _block_rank(run)
        case "num_blocks" if group.kind == GRID:
            return _count(run.warp.specials["gridDim"])
        case "size" | "num_threads" if group.kind == GRID:
            return binary("*", _count(run.warp.specials["gridDim"]), threads)
        case "thread_rank":
            return rank if group.size is None else binary("%", rank, size)
        case "meta_group_rank":
            return binary("/", rank, size)
        case "size" | "num_threads" | "group_size":
            return threads if group.size is None else size
        case "meta_group_size":
            return binary("/", threads, size)
        case "group_index":
            return StructValue(BUILTIN_TYPES["dim3"], dict(zip("xyz", run.warp.specials["blockIdx"], strict=True)))
        case "thread_index":
            return StructValue(BUILTIN_TYPES["dim3"], dict(zip("xyz", run.warp.specials["threadIdx"], strict=True)))
        case "shfl" | "shfl_up" | "shfl_down" | "shfl_xor" if len(node.arguments) >= 2:
            moved = ir.Call(node.span, f"__{node.name}", [*node.arguments, ir.Const(node.span, group.size or 32, INT)])
            return _shuffle(run, moved, mask, group.size or WARP, _lanes_of(group))
        case _:
            for argument in node.arguments:
                run.any_value(argument, mask)
            if _is_beyond_warp(group):
                run.recorder.intervals.lost = True
            else:
                _lanes_wait(run, node, _lanes_of(group), mask, group.size or WARP)
            return soft(UINT, True) if node.name in ("any", "all", "ballot") else unknown()
    return unknown()


def _of_cluster(run: Evaluator, what: str) -> AnyValue:
    """A block's index in its cluster, or how many these are, where the kernel's text gives the cluster's shape."""
    shape = run.warp.cluster
    if what == "map_shared_rank" or shape is None:
        return soft(UINT, False) if what != "map_shared_rank" else unknown()
    x, y, z = (at % extent for at, extent in zip(run.warp.position.block, shape, strict=True))
    rank = x + shape[0] * (y + shape[1] * z)
    return Value(rank if what == "block_rank" else shape[0] * shape[1] * shape[2], UINT)


def _forward(run: Evaluator, node: ir.Call, mask: int) -> AnyValue:
    """std::move and the like."""
    return run.any_value(node.arguments[0], mask) if node.arguments else unknown()


def _shared_address(run: Evaluator, node: ir.Call, mask: int) -> AnyValue:
    """A 32-bit number of bytes; it keeps its region, so that what inline PTX is given can be followed."""
    value = run.value(node.arguments[0], mask) if node.arguments else unknown()
    return value.holding(value.data, UINT)


_HANDLERS: dict[str, Callable[[Evaluator, ir.Call, int], AnyValue]] = {
    **dict.fromkeys(_LOADS, _load),
    **dict.fromkeys(_STORES, _store),
    **dict.fromkeys(("min", "max", "fminf", "fmaxf", "fmin", "fmax", "umin", "umax", "imin", "imax"), _extreme),
    **dict.fromkeys(("abs", "labs", "llabs", "fabsf", "fabs"), _absolute),
    **dict.fromkeys(_BLOCK_BARRIERS, _block_barrier),
    "cg::this_thread_block": _this_block,
    "this_thread_block": _this_block,
    "cg::this_grid": _this_grid,
    "this_grid": _this_grid,
    "cg::this_cluster": _this_cluster,
    "this_cluster": _this_cluster,
    "cg::tiled_partition": _partition,
    "tiled_partition": _partition,
    "cg::sync": _group_sync,
    "cg::coalesced_threads": lambda run, node, mask: Group(WARP, COALESCED),
    "move": _forward,
    "forward": _forward,
    "__cvta_generic_to_shared": _shared_address,
    "__builtin_expect": _forward,
    "__builtin_assume": _forward,
    "__syncwarp": _sync_warp,
    CLUSTER_ARRIVE: _cluster_barrier,
    **dict.fromkeys(("__threadfence", "__threadfence_block", "__threadfence_system"), _fence),
    **dict.fromkeys(("__pipeline_commit", "__pipeline_wait_prior"), _own_wait),
    "__pipeline_memcpy_async": _copy_async,
    **dict.fromkeys((BAR_SYNC, BAR_ARRIVE, "__barrier_sync", "__barrier_sync_count"), _numbered_barrier),
}
