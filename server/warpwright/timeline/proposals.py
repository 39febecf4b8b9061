"""What would make a traced program faster, by how much, and what that figure rests on."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from warpwright.timeline.host import Cause, is_launch
from warpwright.timeline.lines import LineCost
from warpwright.timeline.model import Activity, Place, Trace, Work
from warpwright.timeline.places import loop_around, reads_files, text_at
from warpwright.timeline.shares import Shared

_LEAST = 0.03
"""Of the wall time; below it nothing is proposed."""
_LEAST_LAUNCHES, _LEAST_LAUNCHES_A_WAIT = 20, 8
"""For a CUDA graph: launches in all, and as many times the waits."""
_GRAPH_LAUNCH = 1000
"""Nanoseconds between kernels of a CUDA graph."""
_PINNED_RATE = 24.0
"""Bytes in a nanosecond that pinned memory gives where the trace has no copy from it: PCIe 4.0 x16, rounded down."""
_PINNED_RATE_5, _ON_PCIE_5 = 50.0, ("H100", "H200", "B100", "B200", "B300", "GB200", "RTX 50", "PRO 6000")
"""Likewise of PCIe 5.0 x16, and names of GPUs that have it."""
_MOST_WORKERS = 8
_SMALL_OPERATOR = 30_000
"""Nanoseconds that an operator takes of which most is the way to it."""
_FEW_BLOCKS = 132
_SHORT_KERNEL = 20_000
"""Nanoseconds: kernels of few blocks that take longer fill the GPU, turn after turn."""
_LISTED_TENSOR = 500
"""Nanoseconds that torch._foreach_* takes for each tensor of its lists."""
_HOST_LAUNCH = 2000
"""Nanoseconds of host code around a launch that a graph spares; what is more is the program's own."""
_OPERANDS = re.compile(r"(?:array|Array)<char ?\*, (\d{1,2})")
"""How many arrays an element-wise kernel of PyTorch reads and writes, in its name."""
_ELEMENTWISE = ("elementwise", "triton_poi", "fused_dropout", "CatArrayBatchedCopy", "index_elementwise")


@dataclass(frozen=True, slots=True)
class Proposal:
    """`saved` is wall time in nanoseconds without what recording adds, `gain` how many times faster the program would
    be; `basis` is what both rest on. Gains of several proposals do not multiply: they may save the same time."""

    kind: str
    text: str
    places: tuple[Place, ...]
    saved: int
    gain: float
    basis: str


def proposals(trace: Trace, shared: Shared, costs: Sequence[LineCost]) -> list[Proposal]:
    """The worthwhile ones, the largest gain first."""
    totals = shared.totals()
    found = [
        *_waits(trace, costs),
        *_graph(trace, costs),
        *_batching(trace, shared, costs),
        *_fusion(trace, shared),
        *_pinning(trace, shared, totals, costs),
        *_loading(trace, shared, totals, costs),
        *_reading(costs),
        *_python(shared, costs),
        *_round_trips(trace, shared, totals, costs),
        *_memory(trace, costs),
        *_operators(trace, shared, costs),
    ]
    own = shared.own
    made = [
        Proposal(kind, text, places, min(saved, own - 1), own / max(1, own - saved), basis)
        for kind, text, places, saved, basis in found
        if own and saved >= _LEAST * own
    ]
    return sorted(made, key=lambda each: -each.saved)


_IN_TORCH = {
    "wait": "keep the value on the GPU (torch.where, masks as factors), or read it every so many iterations",
    "graph": 'torch.compile(mode="reduce-overhead"), or torch.cuda.graph for fixed shapes',
    "pinned": "DataLoader(pin_memory=True) and .to(device, non_blocking=True)",
    "memory": "no empty_cache() in a loop, and the same shapes in each step",
}
_IN_CUDA = {
    "wait": "let work queue up on its stream, and wait once, where the host needs what was computed",
    "graph": "cudaStreamBeginCapture, then cudaGraphLaunch in each turn, for fixed shapes",
    "pinned": "allocate the host's side by cudaMallocHost, and copy by cudaMemcpyAsync on a stream of its own",
    "memory": "allocate before the loop, or from a pool (cudaMallocAsync)",
}


def _cures(trace: Trace) -> Mapping[str, str]:
    return _IN_TORCH if trace.is_python else _IN_CUDA


_Found = tuple[str, str, tuple[Place, ...], int, str]


def _waits(trace: Trace, costs: Sequence[LineCost]) -> Iterator[_Found]:
    for cost in costs:
        if cost.waits:
            what, count = max(cost.waits.items(), key=lambda item: item[1])
            yield (
                "synchronisation",
                f"{what} waits for the GPU {count} times: {_cures(trace)['wait']}",
                (cost.place,),
                cost.idle.get(Cause.SYNCHRONISATION, 0),
                "the idle time of the GPU that these waits cause",
            )


def _graph(trace: Trace, costs: Sequence[LineCost]) -> Iterator[_Found]:
    """All launches replayed that nothing waits for: the host's time between kernels goes, a graph's gap comes."""
    launching = [cost for cost in costs if cost.launches and not cost.waits]
    waits = sum(sum(cost.waits.values()) for cost in costs)
    count = sum(cost.launches for cost in launching)
    idle = sum(cost.idle.get(cause, 0) for cost in launching for cause in (Cause.LAUNCHES, Cause.PYTHON))
    idle += sum(min(cost.idle.get(Cause.HOST, 0), cost.launches * _HOST_LAUNCH) for cost in launching)
    if count >= max(_LEAST_LAUNCHES, _LEAST_LAUNCHES_A_WAIT * waits):
        yield (
            "CUDA graph",
            f"record the {count} launches as a CUDA graph ({_cures(trace)['graph']})",
            tuple(cost.place for cost in sorted(launching, key=lambda each: -each.launches)[:5]),
            idle - count * _GRAPH_LAUNCH,
            "the host's idle-GPU time on lines that launch, less 1 us for each kernel; shapes must not change, and "
            "nothing may wait for the GPU in between",
        )


def _batching(trace: Trace, shared: Shared, costs: Sequence[LineCost]) -> Iterator[_Found]:
    work: dict[int, list[Activity]] = defaultdict(list)
    for each in trace.activities:
        if each.kind is Work.KERNEL:
            work[each.correlation].append(each)
    small = {key for key, some in work.items() if all(map(_is_small, some))}
    share = len(small) / len(work) if work else 0.0
    filled = sum(_blocks(each) for key in small for each in work[key]) / max(1, sum(len(work[key]) for key in small))
    filled = min(1.0, filled / _FEW_BLOCKS)
    for cost in costs:
        turns = _turns(cost, costs)
        if cost.launches >= 32 and share > 0.5 and turns >= 2:
            loop = [each for each in costs if each.place in (cost.place, loop_around(cost.place))]
            idle = min(shared.own, sum(each.wall for each in loop))
            saved = idle * (1 - 1 / turns) + cost.gpu * (1 - max(1 / turns, filled))
            listed = 0 if any(each.views for each in loop) else _LISTED_TENSOR * cost.visits
            yield (
                "batching",
                f"{turns:.0f} turns of this loop launch kernels of few blocks one after the other: stack "
                "the inputs and launch once (torch.bmm, torch.func.vmap, torch._foreach_*)",
                (cost.place,),
                round(min(saved, shared.own * (1 - 1 / turns))) - listed,
                f"kernels of {_FEW_BLOCKS} blocks fill a GPU, those of fewer leave some idle: all iterations at once "
                "take as long as one, or as their blocks do"
                + (f", and {_LISTED_TENSOR / 1e3:g} us for each tensor of a list" if listed else "")
                + "; holds where iterations do not depend on each other",
            )


def _is_small(kernel: Activity) -> bool:
    return 0 < _blocks(kernel) <= _FEW_BLOCKS and kernel.end - kernel.start <= _SHORT_KERNEL


def _turns(cost: LineCost, costs: Sequence[LineCost]) -> float:
    """How many turns the innermost loop around a line takes each time that it begins: its head is met once more than
    its body. 0 where the line is in no loop."""
    head = loop_around(cost.place) if cost.place.exact else None
    heads = next((each.visits for each in costs if each.place == head), 0)
    return cost.visits / max(1, heads - cost.visits) if heads else 0.0


def _blocks(activity: Activity) -> int:
    blocks = 1
    for each in activity.grid:
        blocks *= each
    return blocks if activity.grid else 0


def _fusion(trace: Trace, shared: Shared) -> Iterator[_Found]:
    saved = runs = kernels = 0
    for run in (part for whole in _runs(trace, shared) for part in _turns_of(whole)):
        saved += round(sum(each.end - each.start for each in run) * (1 - _left_by_fusion(run)))
        runs += 1
        kernels += len(run)
    if runs:
        yield (
            "fusion",
            f"{kernels} element-wise kernels follow each other in {runs} runs: fuse each run (torch.compile, or "
            "`warpwright formula` writes the kernel)",
            (),
            saved,
            "fused, a run reads once what it does not make itself and writes one array; its time goes with these",
        )


def _left_by_fusion(run: Sequence[Activity]) -> float:
    """The part of what a run reads and writes that is left where it is one kernel. Each kernel that reads more than one
    array brings the others in from outside."""
    operands = [int(found[1]) if (found := _OPERANDS.search(each.name)) else 2 for each in run]
    return min(1.0, (2 + sum(max(0, each - 2) for each in operands)) / sum(operands))


def _turns_of(run: Sequence[Activity]) -> Iterator[Sequence[Activity]]:
    """A run cut where its kernels begin anew for the third time, as turns of a loop do: what a turn ends with is a
    result, which is written also where the turn is one kernel."""
    names = [each.name for each in run]
    for period in range(2, len(run) // 3 + 1):
        if names[period:] == names[:-period]:
            yield from (run[at : at + period] for at in range(0, len(run), period))
            return
    yield run


def _runs(trace: Trace, shared: Shared) -> Iterator[list[Activity]]:
    """Element-wise kernels that follow each other on a stream, of the same grid."""
    streams: dict[tuple[int, int], list[Activity]] = defaultdict(list)
    for each in trace.activities:
        if shared.start <= each.start < shared.end:
            streams[each.device, each.stream].append(each)
    for some in streams.values():
        run: list[Activity] = []
        for each in sorted(some, key=lambda activity: activity.start):
            simple = each.kind is Work.KERNEL and any(part in each.name for part in _ELEMENTWISE)
            if run and not (simple and each.grid == run[0].grid):
                if len(run) > 1:
                    yield run
                run = []
            if simple:
                run.append(each)
        if len(run) > 1:
            yield run


def _pinning(trace: Trace, shared: Shared, totals: Mapping[Cause, int], costs: Sequence[LineCost]) -> Iterator[_Found]:
    up = [each for each in trace.activities if each.direction == "HtoD" and shared.start <= each.start < shared.end]
    pageable = [each for each in up if each.pageable]
    size = sum(each.bytes for each in pageable)
    if not size:
        return
    pinned = [each for each in up if not each.pageable and each.bytes >= 1 << 20]
    taken = sum(each.end - each.start for each in pinned)
    is_new = any(name in device for device in trace.devices for name in _ON_PCIE_5)
    assumed = _PINNED_RATE_5 if is_new else _PINNED_RATE
    rate = sum(each.bytes for each in pinned) / taken if taken else assumed
    moved = sum(each.bytes for each in trace.activities if shared.start <= each.start < shared.end)
    exposed = totals.get(Cause.COPIES, 0) * size // max(1, moved)
    left = max(0, round(size / rate) - totals.get(Cause.GPU, 0))
    yield (
        "pinned memory",
        f"{len(pageable)} copies of {size / 1e6:.1f} MB come from pageable memory: {_cures(trace)['pinned']}",
        tuple(cost.place for cost in sorted(costs, key=lambda each: -each.pageable_bytes)[:3] if cost.pageable),
        exposed - left,
        f"pinned memory at {rate:.0f} GB/s ({'measured in this trace' if taken else 'assumed'}), "
        "hidden behind the kernels",
    )


def _loading(trace: Trace, shared: Shared, totals: Mapping[Cause, int], costs: Sequence[LineCost]) -> Iterator[_Found]:
    loading = totals.get(Cause.LOADING, 0)
    places = tuple(
        each.place
        for each in sorted(costs, key=lambda cost: -cost.idle.get(Cause.LOADING, 0))[:3]
        if each.idle.get(Cause.LOADING)
    )
    batches = [each for each in (*trace.ranges, *trace.ops) if each.name.startswith("enumerate(DataLoader)")]
    names = {each.name for each in batches}
    if any("MultiProcessing" in name for name in names):
        yield (
            "more workers",
            "the workers of the DataLoader are too slow: more of them, a higher prefetch_factor, "
            "persistent_workers=True, cheaper decoding, or part of it on the GPU",
            places,
            loading,
            "all of the time spent waiting for batches; an upper bound",
        )
        return
    if not names:
        return
    workers = min(_MOST_WORKERS, max(2, trace.processors - 1)) if trace.lines else _MOST_WORKERS
    rest = shared.own - loading
    at_once = workers if trace.busy < 0.5 else min(workers, max(1, trace.processors))
    yield (
        "workers",
        f"load in the background: DataLoader(num_workers={workers}, persistent_workers=True)",
        places,
        loading - max(0, loading // at_once - rest) - loading // len(batches),
        f"{at_once} load at once while the rest of the program goes on, and nothing loads ahead of the first batch"
        + ("" if at_once == workers else ": loading computes, and more processors are not free"),
    )


def _host(cost: LineCost) -> int:
    return cost.idle.get(Cause.OPERATORS, 0) + cost.idle.get(Cause.PYTHON, 0)


def _reading(costs: Sequence[LineCost]) -> Iterator[_Found]:
    for cost in costs:
        time = cost.idle.get(Cause.LOADING, 0)
        if time and cost.visits > 1 and cost.place.exact and reads_files(cost.place) and loop_around(cost.place):
            yield (
                "read once",
                f"this line reads a file {cost.visits} times: read it before the loop, or in a DataLoader's workers",
                (cost.place,),
                round(time * (1 - 1 / cost.visits)),
                "all of the line's time but for one visit",
            )


def _round_trips(
    trace: Trace, shared: Shared, totals: Mapping[Cause, int], costs: Sequence[LineCost]
) -> Iterator[_Found]:
    down = sum(each.bytes for each in trace.activities if each.direction == "DtoH")
    if 4 * down > sum(each.bytes for each in trace.activities) and down >= 1 << 20:
        yield (
            "stay on the GPU",
            f"{down / 1e6:.1f} MB go to the host: compute on the GPU what is needed of them, and copy results alone",
            tuple(each.place for each in sorted(costs, key=lambda cost: -cost.pageable_bytes)[:2] if each.pageable),
            totals.get(Cause.COPIES, 0) + sum(e.idle.get(Cause.SYNCHRONISATION, 0) for e in costs if e.pageable),
            "all of the time of copies, and of the waits at these lines; an upper bound",
        )


def _memory(trace: Trace, costs: Sequence[LineCost]) -> Iterator[_Found]:
    found = [cost for cost in costs if cost.idle.get(Cause.SETUP)]
    found.sort(key=lambda cost: ("empty_cache" not in text_at(cost.place), -cost.idle[Cause.SETUP]))
    if found:
        yield (
            "keep memory",
            f"CUDA allocates or frees memory, or loads modules: {_cures(trace)['memory']}",
            tuple(cost.place for cost in found[:3]),
            sum(cost.idle[Cause.SETUP] for cost in found),
            "all of the lines' time in such calls",
        )


def _python(shared: Shared, costs: Sequence[LineCost]) -> Iterator[_Found]:
    for cost in costs[:5]:
        time = cost.idle.get(Cause.PYTHON, 0)
        if time >= 0.1 * shared.own:
            yield (
                "Python",
                "this line is Python alone: move it out of the loop, do it once, or on tensors",
                (cost.place,),
                time,
                "all of the line's time while no GPU worked; an upper bound",
            )


def _operators(trace: Trace, shared: Shared, costs: Sequence[LineCost]) -> Iterator[_Found]:
    on_gpu = any(is_launch(call.name) for call in trace.calls)
    for cost in costs[:5]:
        time = cost.idle.get(Cause.OPERATORS, 0)
        turns, head = _turns(cost, costs), loop_around(cost.place)
        if turns >= 8 and cost.operators >= 100 and time < cost.operators * _SMALL_OPERATOR:
            yield (
                "vectorise",
                f"{turns:.0f} turns of this loop call operators on few elements: one on all of them costs about "
                "as much",
                (cost.place,),
                round(sum(_host(each) for each in costs if each.place in (cost.place, head)) * (1 - 1 / turns)),
                "the time of the line and of the loop's head but for one turn",
            )
        elif on_gpu and time >= 0.1 * shared.own:
            yield (
                "to the GPU",
                "this line computes on the CPU while the GPU waits: create the tensors on the GPU, or move them first",
                (cost.place,),
                cost.wall + _copied_after(cost, costs),
                "all of the line's time while no GPU worked, and of pageable copies in its loop; an upper bound",
            )


def _copied_after(cost: LineCost, costs: Sequence[LineCost]) -> int:
    """The idle time of copies from pageable memory on other lines of a line's loop: they copy what it made."""
    loop = loop_around(cost.place) if cost.place.exact else None
    beside = [each for each in costs if loop and each is not cost and each.pageable and loop_around(each.place) == loop]
    return sum(each.idle.get(cause, 0) for each in beside for cause in (Cause.COPIES, Cause.SYNCHRONISATION))
