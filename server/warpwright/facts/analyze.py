"""From a file's text to the facts about its kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from warpwright.facts import ir
from warpwright.facts.body_facts import BodyFacts
from warpwright.facts.cache import KernelCache, kernel_key, reached
from warpwright.facts.interpret import Interpreter
from warpwright.facts.lanes import simplify
from warpwright.facts.launches import DEFAULT_BLOCKS, Known, LaunchSite
from warpwright.facts.lower import Lowerer
from warpwright.facts.model import (
    ASSUMED_EXTENT,
    MAX_THREADS_PER_BLOCK,
    UNEVEN_EXTENT,
    WARP,
    Access,
    Assumptions,
    Barrier,
    Basis,
    Branch,
    Dim3,
    Kernel,
    Launch,
    Parameter,
    Program,
    SharedArray,
    Space,
)
from warpwright.facts.overloads import by_kernel
from warpwright.facts.position import Position
from warpwright.facts.recorder import NO_END, Recorder
from warpwright.facts.types import UINT, UNKNOWN_TYPE, CType
from warpwright.facts.unit import FunctionText, IncludeReader, Unit, collect
from warpwright.facts.unit_launches import UnitLaunches
from warpwright.facts.values import ASSUMED, EXACT, AnyValue, Region, StructValue, Value, soft
from warpwright.facts.warp_memory import OutOfStepsError, WarpContext
from warpwright.syntax.nodes import descendants, parameters_of
from warpwright.syntax.source import Source, Span

T = TypeVar("T")

MAX_SHAPES = 4
"""Distinct block shapes and template arguments that are looked at per kernel."""
FIRST_WARPS = 8
"""Warps of the first block that are run before their cost is known."""
SLIGHT = 1e-3
"""The weight of a warp that is run for the code that only it reaches, in its block and of its block."""
FORCED_RUNS = 3
"""Runs in which conditions that were one-sided are followed both ways; each may come upon new ones."""
STEP_BUDGET = 20_000
"""Steps of the interpreter that one block shape of one kernel may take, at most."""
STEPS_BY_FILE = 200_000
STEPS_BY_LINE = 30
LEAST_STEPS = 250
"""A large file's kernels share so many steps for the file and for each of its lines: a generated one ends too."""

SiteReader = Callable[[], list[LaunchSite]]


def no_includes(_from_path: str, _name: str) -> Source | None:
    """An IncludeReader for text without a place on disk."""
    return None


def analyze(
    source: Source,
    include: IncludeReader = no_includes,
    assume: Assumptions | None = None,
    cache: KernelCache | None = None,
) -> Program:
    """The facts about every kernel that the file defines, includes or launches. Never raises on broken text.

    >>> text = b"__global__ void k(float* a) { a[32 * threadIdx.x] = 0; } void f(float* a) { k<<<1, 32>>>(a); }"
    >>> [(a.expression, a.sectors_per_request) for a in analyze(Source("a.cu", text)).kernels[0].accesses]
    [('a[32 * threadIdx.x]', 32.0)]
    """
    unit = collect(source, include, assume or Assumptions())
    unit.step_budget = _step_budget(unit)
    launches = UnitLaunches(cache.launches if cache is not None else None)
    sites = by_kernel(unit.kernels(), launches.of(unit))
    uneven: dict[FunctionText, list[LaunchSite]] = {}

    def uneven_sites(text: FunctionText) -> list[LaunchSite]:
        if not uneven:
            uneven.update(by_kernel(unit.kernels(), launches.of(replace(unit, extent=UNEVEN_EXTENT))))
        return uneven[text]

    kernels = [_cached_kernel(unit, text, of_it, partial(uneven_sites, text), cache) for text, of_it in sites.items()]
    defined = {text.name for text in unit.kernels()}
    for name, launched in launches.of(unit).items():
        first = launched[0].launch.span
        if first is not None and name not in defined:
            kernels.append(Kernel(name, first.source, first, first, None, launches=tuple(s.launch for s in launched)))
    kernels.sort(key=lambda k: (k.source is not source, k.source.path, k.span.start))
    return Program(source, unit.sources, tuple(kernels))


def _cached_kernel(
    unit: Unit, text: FunctionText, sites: list[LaunchSite], uneven: SiteReader, cache: KernelCache | None
) -> Kernel:
    if cache is None:
        return _kernel(unit, text, sites, uneven)
    shapes = tuple((s.launch.grid, s.launch.block, s.launch.basis, s.template_arguments, s.arguments) for s in sites)
    functions = reached(unit, text)
    key = kernel_key(unit, functions, (unit.step_budget, shapes))
    kernel = cache.find(functions, key)
    if kernel is None:
        kernel = _kernel(unit, text, sites, uneven)
        cache.keep(functions, key, kernel)
    return replace(kernel, launches=tuple(s.launch for s in sites)) if sites else kernel


def _kernel(unit: Unit, text: FunctionText, sites: list[LaunchSite], uneven: SiteReader) -> Kernel:
    source = text.source
    name_node = next((n for n in descendants(text.node, "identifier") if source.node_text(n) == text.name), text.node)
    span, name_span = source.span(text.outer), source.span(name_node)
    try:
        return _interpreted(unit, text, sites, uneven, span, name_span)
    except RecursionError:
        launches = tuple(s.launch for s in sites)
        return Kernel(
            text.name, source, span, name_span, text.node, launches=launches, incomplete="it nests too deeply"
        )


def _interpreted(
    unit: Unit, text: FunctionText, sites: list[LaunchSite], uneven: SiteReader, span: Span, name_span: Span
) -> Kernel:
    launches = [s.launch for s in sites] or [_assumed_launch(unit, text)]
    shapes = _distinct_shapes(text, sites) or [(0, None)]
    accesses: list[Access] = []
    branches: dict[tuple[str, int, int], Branch] = {}
    barriers: dict[tuple[str, int], Barrier] = {}
    function: ir.Function | None = None
    incomplete: list[str] = []
    overrun: set[str] = set()
    reach: dict[str, int] = {}
    body_facts = BodyFacts()
    bounded = _all_exact(sites, len(shapes))
    for index, site in shapes:
        macros = dict(unit.macros)
        function = Lowerer(unit, text.source, _template_bindings(text, site)).function(text)
        unit.macros = macros
        incomplete += function.incomplete
        recorder = Recorder()
        stopped = _run_warps(unit, function, launches[index], site, recorder)
        if stopped:
            incomplete.append(stopped)
        accesses += recorder.access_facts(index)
        accesses += body_facts.read(unit, function, recorder.callees, index)
        overrun |= recorder.overrun
        bounded = bounded and not stopped and not recorder.open_ended and recorder.saw_whole_block(launches[index])
        for name, end in recorder.reach.items():
            reach[name] = max(reach.get(name, 0), end)
        for branch in recorder.branch_facts(index):
            key = (branch.span.path, branch.span.start, branch.span.end)
            known = branches.get(key)
            if known is None or (branch.warps_diverging or 0.0) > (known.warps_diverging or 0.0):
                branches[key] = branch
        found = recorder.barrier_facts()
        if recorder.barriers_are_bounded:
            found += _uneven_barriers(unit, text, function, index, uneven())
        for barrier in found:
            seen = barriers.get((barrier.span.path, barrier.span.start))
            if seen is None or (barrier.divergent and not seen.divergent):
                barriers[barrier.span.path, barrier.span.start] = barrier
    arrays = _shared_arrays(function.body) if function is not None else iter(())
    accesses.sort(key=lambda a: (a.span.path != span.path, a.span.path, a.span.start, a.launch, a.kind))
    return Kernel(
        name=text.name,
        source=text.source,
        span=span,
        name_span=name_span,
        node=text.node,
        parameters=tuple(_parameters(text, function)) if function is not None else (),
        shared_arrays=tuple(
            replace(
                array,
                leaves_rows=array.name in overrun,
                used_bytes=reach.get(array.name) if bounded and reach.get(array.name, NO_END) < NO_END else None,
            )
            for array in arrays
        ),
        launches=tuple(launches),
        accesses=tuple(accesses),
        branches=tuple(sorted(branches.values(), key=lambda b: (b.span.path, b.span.start))),
        barriers=tuple(sorted(barriers.values(), key=lambda b: (b.span.path, b.span.start))),
        promotions=_by_place(body_facts.promotions),
        divisions=_by_place(body_facts.divisions),
        powers=_by_place(body_facts.powers),
        incomplete="; ".join(dict.fromkeys(incomplete)) or None,
        arch=unit.assume.arch,
    )


def _uneven_barriers(
    unit: Unit, text: FunctionText, function: ir.Function, index: int, sites: list[LaunchSite]
) -> list[Barrier]:
    """The barriers that split a block when the sizes that the text does not give are no multiple of anything.

    `if (i < n) { ...; __syncthreads(); }` is uniform for n = 4096 and not for 4093; a bound that the kernel itself
    rounds up to whole blocks is uniform for both. `sites` are the kernel's launches under such sizes.
    """
    unit = replace(unit, extent=UNEVEN_EXTENT)
    site = sites[index] if index < len(sites) else None
    recorder = Recorder()
    _run_warps(unit, function, site.launch if site is not None else _assumed_launch(unit, text), site, recorder)
    reason = f"a size that is no multiple of the block, such as {UNEVEN_EXTENT}, splits it"
    return [
        replace(barrier, basis=Basis.ASSUMED, reason=reason)
        for barrier in recorder.barrier_facts()
        if barrier.divergent and barrier.basis is Basis.EXACT
    ]


def _distinct_shapes(text: FunctionText, sites: list[LaunchSite]) -> list[tuple[int, LaunchSite | None]]:
    """The first launch of each block shape and set of template arguments."""
    seen: set[str] = set()
    out: list[tuple[int, LaunchSite | None]] = []
    for index, site in enumerate(sites):
        key = repr((site.launch.block, site.template_arguments if text.template else ()))
        if key not in seen and len(out) < MAX_SHAPES:
            seen.add(key)
            out.append((index, site))
    return out


def _by_place(facts: dict[tuple[str, int, int], T]) -> tuple[T, ...]:
    return tuple(facts[place] for place in sorted(facts))


def _all_exact(sites: list[LaunchSite], looked_at: int) -> bool:
    """Whether every launch is looked at and has a block that the text gives."""
    different = {repr((s.launch.grid, s.launch.block, s.template_arguments, s.arguments)) for s in sites}
    return len(different) == looked_at and all(s.launch.basis is Basis.EXACT for s in sites)


def _template_bindings(text: FunctionText, site: LaunchSite | None) -> dict[str, CType | int]:
    given = site.template_arguments if site is not None else ()
    out: dict[str, CType | int] = {}
    for (name, is_type, _), argument in zip(text.template, given, strict=False):
        if argument is not None and is_type == isinstance(argument, CType):
            out[name] = argument
    return out


def _assumed_launch(unit: Unit, text: FunctionText) -> Launch:
    """The shape taken where no launch is in sight: the user's, that of __launch_bounds__, or one of its dimensions."""
    grid: tuple[None, None, None] = (None, None, None)
    if unit.assume.block is not None:
        return Launch(grid, unit.assume.block, None, Basis.ASSUMED, "settings")
    bounds = next(descendants(text.node, "launch_bounds"), None)
    if bounds is not None and bounds.named_children:
        threads = Lowerer(unit, text.source).constant(bounds.named_children[0])
        if threads and 0 < threads <= MAX_THREADS_PER_BLOCK and _dimensions_used(text) == 1:
            return Launch(grid, (threads, 1, 1), None, Basis.ASSUMED, "__launch_bounds__")
    return Launch(grid, DEFAULT_BLOCKS[_dimensions_used(text)], None, Basis.ASSUMED, "default")


def _dimensions_used(text: FunctionText) -> int:
    body = text.source.node_text(text.node)
    return 3 if "threadIdx.z" in body else 2 if "threadIdx.y" in body else 1


# -- running warps ----------------------------------------------------------------------------------------------


def _run_warps(
    unit: Unit, function: ir.Function, launch: Launch, site: LaunchSite | None, recorder: Recorder
) -> str | None:
    """Interpret a sample of warps; returns why the sample is not whole, if so."""
    block = tuple(extent or 1 for extent in launch.block)
    shape: Dim3 = (block[0], block[1], block[2])
    threads = shape[0] * shape[1] * shape[2]
    if not 0 < threads <= MAX_THREADS_PER_BLOCK:
        return f"a block of {threads} threads cannot be launched"
    arguments = [_argument(parameter, unit.extent, i, site) for i, parameter in enumerate(function.parameters)]
    blocks = list(_sample_blocks(launch, unit.extent))
    warps = (threads + WARP - 1) // WARP
    run = _Run(
        unit, function, launch, shape, arguments, recorder, ASSUMED if launch.basis is not Basis.EXACT else EXACT
    )
    budget = unit.step_budget
    first = FIRST_WARPS if budget == STEP_BUDGET else 2
    try:
        while blocks:
            block_index, block_weight, edge = blocks.pop(0)
            affordable = max(2, budget // (run.cost * (len(blocks) + 1))) if run.cost else first
            samples = _sample_warps(warps, affordable)
            while samples:
                warp, warp_weight = samples.pop(0)
                steps = run.warp(Position(block_index, warp, warp_weight, block_weight, edge))
                if steps > budget:  # one warp has to stand for all
                    samples, blocks = [], []
                elif steps > budget // 4:  # the last warp stands for the others, the last block for the edge
                    samples = samples[-1:] and [(warps - 1, float(warps - 1))]
                    blocks = blocks[-1:]
        run.explore(_spread_blocks(launch), warps, budget)
    except OutOfStepsError:
        return "its loops are too long to be followed whole"
    return None


@dataclass(slots=True)
class _Run:
    """What the interpreted warps of one launch have in common, and the steps of the dearest of them."""

    unit: Unit
    function: ir.Function
    launch: Launch
    shape: Dim3
    arguments: list[AnyValue]
    recorder: Recorder
    basis: int
    cost: int = 0
    regions: dict[str, Region] = field(default_factory=lambda: {})
    functions: dict[tuple[int, str], ir.Function] = field(default_factory=lambda: {})

    def warp(self, position: Position) -> int:
        """Interpret one warp; returns its steps. Raises OutOfStepsError where they are too many."""
        recorder = self.recorder
        context = warp_context(self.shape, self.launch, position, self.basis)
        interpreter = Interpreter(self.unit, recorder, context, self.regions, self.functions)
        position.guards = interpreter.guards
        recorder.begin_warp()
        alive = 0
        try:
            alive = interpreter.run(self.function, list(self.arguments))
        finally:
            recorder.flush()
            if recorder.records_barriers:  # one that explores is not compared with the warps of its block
                recorder.warps_seen.setdefault(position.block, {})[position.warp] = alive
        self.cost = max(self.cost, interpreter.steps)
        return interpreter.steps

    def explore(self, blocks: list[Dim3], warps: int, budget: int) -> None:
        """Find what no sampled warp did: in other blocks, and then by following both ways of what stayed one-sided.

        These warps weigh next to nothing, so that they tell of the code that they are the first to reach and leave
        the counts of the rest as they are.
        """
        self.recorder.records_barriers = False
        for number, block in enumerate(blocks):
            if self.recorder.unexplored and self.cost < budget // 2:
                budget -= self.warp(Position(block, (2 * number + 1) % warps, SLIGHT, SLIGHT, False))
        for run in range(FORCED_RUNS):
            unexplored = self.recorder.unexplored
            if unexplored and (run == 0 or self.cost < budget):
                self.recorder.forced |= unexplored
                budget -= self.warp(Position(blocks[0], 0, SLIGHT, SLIGHT, False))


def _spread_blocks(launch: Launch) -> list[Dim3]:
    """Blocks of the grid that lie far from each other, none of which is an edge."""
    extents = [
        extent if extent is not None else 1 + 4 * (threads != 1)
        for extent, threads in zip(launch.grid, launch.block, strict=True)
    ]
    shares = ((1, 3, 5), (5, 1, 3), (3, 5, 1), (7, 6, 2))
    return [(x * extents[0] // 8, y * extents[1] // 8, z * extents[2] // 8) for x, y, z in shares]


def _step_budget(unit: Unit) -> int:
    """A kernel's share of the file's steps. It goes in halves, so that hardly any edit changes it for all kernels."""
    lines = sum(len(source.line_starts) for source in unit.sources.values())
    share = (STEPS_BY_FILE + STEPS_BY_LINE * lines) // max(1, sum(1 for _ in unit.kernels()))
    budget = STEP_BUDGET
    while budget // 2 >= max(share, LEAST_STEPS):
        budget //= 2
    return budget


def _sample_blocks(launch: Launch, extent: int) -> Iterator[tuple[Dim3, float, bool]]:
    """(block, how many blocks it stands for, is it the grid's last): an inner one, the first and the last. Where
    `extent` is uneven, also the one that holds the end of so many elements."""
    end = [extent // (threads or 1) if threads != 1 else 0 for threads in launch.block]
    if None in launch.grid:
        inside = [int(threads != 1) for threads in launch.block]
        at = inside if extent % WARP == 0 else end
        x, y, z = (i if count is None else 0 for i, count in zip(at, launch.grid, strict=True))
        yield (x, y, z), 1.0, False
        return
    if extent % WARP:
        x, y, z = (min(i, (count or 1) - 1) for i, count in zip(end, launch.grid, strict=True))
        yield (x, y, z), 1.0, False
    grid = [max(1, extent or 1) for extent in launch.grid]
    total = grid[0] * grid[1] * grid[2]
    inner = (grid[0] // 2, grid[1] // 2, grid[2] // 2)
    last = (grid[0] - 1, grid[1] - 1, grid[2] - 1)
    if total > 2 and inner not in ((0, 0, 0), last):
        yield inner, float(total - 2), False
    yield (0, 0, 0), 1.0, total == 1
    if total > 1:
        yield last, 1.0, True


def _sample_warps(count: int, affordable: int) -> list[tuple[int, float]]:
    """(warp, how many warps it stands for): all, or the first, the last and some spread between them.

    >>> _sample_warps(3, 8), _sample_warps(32, 4)
    ([(0, 1.0), (1, 1.0), (2, 1.0)], [(0, 1.0), (10, 15.0), (21, 15.0), (31, 1.0)])
    """
    if count <= affordable:
        return [(warp, 1.0) for warp in range(count)]
    if affordable <= 2:
        return [(0, 1.0), (count - 1, float(count - 1))]
    inner = affordable - 2
    between = (
        [1 + (count - 2) * i // inner for i in range(inner)]
        if inner > 2
        else [count * (i + 1) // 3 for i in range(inner)]
    )
    return [(0, 1.0), *((warp, (count - 2) / inner) for warp in between), (count - 1, 1.0)]


def warp_context(shape: Dim3, launch: Launch, position: Position, basis: int) -> WarpContext:
    """The built-ins of a warp: threads are numbered x first, then y, then z (CUDA C++ Programming Guide, "Thread
    Hierarchy"), and 32 consecutive numbers are a warp."""
    width, height, depth = shape
    first = position.warp * WARP
    threads = [first + lane for lane in range(WARP)]
    on = sum(1 << lane for lane, t in enumerate(threads) if t < width * height * depth)
    xs = Value(simplify([t % width for t in threads]), UINT, basis, 0, True)
    ys = Value(simplify([t // width % height for t in threads]), UINT, basis, 0, height > 1)
    zs = Value(simplify([min(t // (width * height), depth - 1) for t in threads]), UINT, basis, 0, depth > 1)
    one = Value(1, UINT, basis)
    index = [Value(i, UINT, basis) for i in position.block]
    grid = [
        Value(e if e is not None else ASSUMED_EXTENT // 16, UINT, basis if e is not None else ASSUMED, grain=1)
        for e in launch.grid
    ]
    dims = [Value(e, UINT, basis, grain=1) if e is not None else one for e in launch.block]
    specials = {
        "threadIdx": (xs, ys, zs),
        "blockIdx": (index[0], index[1], index[2]),
        "blockDim": (dims[0], dims[1], dims[2]),
        "gridDim": (grid[0], grid[1], grid[2]),
    }
    return WarpContext(specials, position, on)


def _argument(parameter: ir.FunctionParameter, extent: int, index: int, site: LaunchSite | None) -> AnyValue:
    """A kernel's argument: the launch's number, an assumed one, or a pointer to memory of its own, aligned to 256."""
    kind = parameter.type
    if kind.kind == "pointer":
        target = kind.to or UNKNOWN_TYPE
        return Value(0, kind, 0, 0, False, Region(parameter.name, Space.GLOBAL, target))
    if kind.kind == "struct":
        return _struct_argument(parameter.name, kind, extent)
    if kind.is_integer:
        given = site.arguments[index] if site is not None and index < len(site.arguments) else None
        if isinstance(given, Known):
            return Value(given.value, kind, ASSUMED if given.assumed else EXACT, grain=1)
        return Value(extent, kind, ASSUMED, grain=1)
    return soft(kind, False)


def _struct_argument(name: str, kind: CType, extent: int) -> AnyValue:
    fields: dict[str, AnyValue] = {}
    for part, _, member in kind.fields:
        label = f"{name}.{part}"
        if member.kind == "pointer":
            fields[part] = Value(0, member, 0, 0, False, Region(label, Space.GLOBAL, member.to or UNKNOWN_TYPE))
        elif member.is_integer:
            fields[part] = Value(extent, member, ASSUMED, grain=1)
        elif member.kind == "struct":
            fields[part] = _struct_argument(label, member, extent)
        else:
            fields[part] = soft(member, False)
    return StructValue(kind, fields)


# -- declarations -----------------------------------------------------------------------------------------------


def _parameters(text: FunctionText, function: ir.Function) -> Iterator[Parameter]:
    spans = [text.source.span(node) for node in parameters_of(text.node)]
    for parameter, span in zip(function.parameters, spans, strict=False):
        kind = parameter.type
        pointer = kind.kind == "pointer"
        target = kind.to if pointer else kind
        spelled = span.text
        const = "const" in spelled.split("*")[0].split() if pointer else "const" in spelled.split()
        size = target.size if target is not None else None
        yield Parameter(parameter.name, " ".join(spelled.split()), pointer, const, size, span)


def _shared_arrays(statement: ir.Stmt) -> Iterator[SharedArray]:
    match statement:
        case ir.Declare(shared=ir.SharedVariable() as variable):
            yield SharedArray(
                variable.name,
                variable.element.name,
                variable.element.size,
                (None,) if variable.dynamic else variable.dims,
                variable.dynamic,
                variable.span,
            )
        case ir.Block(body=body):
            for child in body:
                yield from _shared_arrays(child)
        case ir.If(then=then, otherwise=otherwise):
            yield from _shared_arrays(then)
            if otherwise is not None:
                yield from _shared_arrays(otherwise)
        case ir.Loop(body=inner):
            yield from _shared_arrays(inner)
        case _:
            return
