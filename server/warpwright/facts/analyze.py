"""From a file's text to the facts about its kernels."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import NamedTuple, TypeVar

from warpwright.cuda.linkage import launched_elsewhere
from warpwright.facts import ir
from warpwright.facts.body_facts import BodyFacts
from warpwright.facts.cache import KernelCache, kernel_key, reached
from warpwright.facts.launches import DEFAULT_BLOCKS, LaunchSite
from warpwright.facts.lower import Lowerer
from warpwright.facts.model import (
    MAX_THREADS_PER_BLOCK,
    UNEVEN_EXTENT,
    Access,
    Assumptions,
    Barrier,
    Basis,
    Branch,
    Callee,
    Dim3,
    DoubtfulWait,
    Kernel,
    Launch,
    Parameter,
    Program,
    SharedArray,
)
from warpwright.facts.overloads import by_kernel
from warpwright.facts.recorder import NO_END, Recorder
from warpwright.facts.running import kernel_steps, run_warps, step_budget, step_share
from warpwright.facts.steps import OutOfStepsError
from warpwright.facts.trace import Traced, traced
from warpwright.facts.types import CType
from warpwright.facts.unit import FunctionText, IncludeReader, Unit, collect
from warpwright.facts.unit_launches import UnitLaunches
from warpwright.syntax.nodes import descendants, parameters_of, uncommented
from warpwright.syntax.source import Source, Span

T = TypeVar("T")

_SETTINGS = "settings"
_UNREAD = "host code nests too deeply, or takes too many steps: not all launches are read"
MAX_SHAPES = 4
"""Distinct block shapes and template arguments that are looked at per kernel."""

SiteReader = Callable[[bool], list[LaunchSite]]
"""A kernel's launches where sizes are no multiple of anything; if asked so, with a host function's one size as such."""


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
    return _program(source, include, assume or Assumptions(), cache)


def _program(
    source: Source, include: IncludeReader, assume: Assumptions, cache: KernelCache | None, only: str = ""
) -> Program:
    """Of the kernels of the name `only`, or of all."""
    unit = collect(source, include, assume)
    unit.step_share = step_share(unit)
    launches = UnitLaunches(cache.launches if cache is not None else None)
    sites = _sites(unit, launches)
    uneven: dict[bool, dict[FunctionText, list[LaunchSite]]] = {}

    def uneven_sites(text: FunctionText, supposes: bool) -> list[LaunchSite]:
        if supposes not in uneven:
            uneven[supposes] = _sites(replace(unit, extent=UNEVEN_EXTENT, supposes=supposes), launches)
        return uneven[supposes][text]

    kernels = [
        _cached_kernel(unit, text, of_it, partial(uneven_sites, text), cache)
        for text, of_it in sites.items()
        if only in ("", text.name)
    ]
    defined = {text.name for text in unit.kernels()}
    for name, launched in launches.of(unit).items():
        first = launched[0].launch.span
        if first is not None and name not in defined:
            kernels.append(Kernel(name, first.source, first, first, None, launches=tuple(s.launch for s in launched)))
    if not launches.whole:
        kernels = [replace(k, incomplete="; ".join(filter(None, (k.incomplete, _UNREAD)))) for k in kernels]
    kernels.sort(key=lambda k: (k.source is not source, k.source.path, k.span.start))

    def again(name: str, edited: Source) -> Program:
        def read(from_path: str, name: str) -> Source | None:
            found = include(from_path, name)
            return edited if found is not None and found.path == edited.path else found

        return _program(edited if edited.path == source.path else source, read, assume, cache, name)

    has_main = "main" in unit.functions
    kernels = [
        replace(
            k, again=partial(again, k.name), sources=unit.sources, launched_elsewhere=_elsewhere(k, source, has_main)
        )
        for k in kernels
    ]
    return Program(source, unit.sources, tuple(kernels), unit.assume, tuple(unit.unread_includes))


def _elsewhere(kernel: Kernel, unit: Source, has_main: bool) -> str:
    if kernel.node is None:
        return ""
    return launched_elsewhere(kernel.source, kernel.node, kernel.name, unit, has_main=has_main)


def _sites(unit: Unit, launches: UnitLaunches) -> dict[FunctionText, list[LaunchSite]]:
    """The launches of each kernel; the block of one that the text does not give is the user's for that kernel."""
    found = by_kernel(unit.kernels(), launches.of(unit))
    blocks = unit.assume.blocks
    if not blocks:
        return found
    return {text: [_with_block(site, blocks.get(text.name)) for site in sites] for text, sites in found.items()}


def _with_block(site: LaunchSite, block: Dim3 | None) -> LaunchSite:
    if block is None or site.launch.basis is Basis.EXACT:
        return site
    return replace(site, launch=replace(site.launch, block=block, source=f"{site.launch.source}, {_SETTINGS}"))


def _cached_kernel(
    unit: Unit, text: FunctionText, sites: list[LaunchSite], uneven: SiteReader, cache: KernelCache | None
) -> Kernel:
    names = reached(unit, text)
    functions = names.functions
    callees = tuple(Callee(f.name, f.source, f.node) for f in functions[1:])
    whole = partial(replace, callees=callees, macros=names.macros, number_types=names.number_types)
    if cache is None:
        return whole(_kernel(unit, text, sites, uneven))
    supposed = _supposed_sites(sites, uneven)
    shapes = tuple(
        (
            *(s.launch.grid, s.launch.block, s.launch.dynamic_shared_bytes, s.launch.basis, s.template_arguments),
            *(s.arguments, s.allocated, s.unfilled, s.members, s.memory, s.is_reached, s.is_certain),
            *(kind.name if kind is not None else "" for kind in s.objects),
        )
        for s in (*sites, *supposed)
    )
    key = kernel_key(unit, functions, (unit.step_share, shapes))
    kernel = cache.find(functions, key)
    if kernel is None:
        kernel = _kernel(unit, text, sites, uneven)
        cache.keep(functions, key, kernel)
    launches = tuple(s.launch for s in sites) if sites else kernel.launches
    return whole(kernel, launches=launches)


def _kernel(unit: Unit, text: FunctionText, sites: list[LaunchSite], uneven: SiteReader) -> Kernel:
    source = text.source
    name_node = next((n for n in descendants(text.node, "identifier") if source.node_code(n) == text.name), text.node)
    span, name_span = source.span(text.outer), source.span(name_node)
    try:
        return _interpreted(unit.reading(kernel_steps(unit.step_share)), text, sites, uneven, span, name_span)
    except RecursionError:
        launches = tuple(s.launch for s in sites)
        return Kernel(
            text.name, source, span, name_span, text.node, launches=launches, incomplete="it nests too deeply"
        )


def _interpreted(
    unit: Unit, text: FunctionText, sites: list[LaunchSite], uneven: SiteReader, span: Span, name_span: Span
) -> Kernel:
    launches = [s.launch for s in sites] or [_assumed_launch(unit, text)]
    shapes = _distinct_shapes(text, sites) or [_Shape(0, None)]
    unit.step_budget = step_budget(unit.step_share, len(shapes))
    accesses: list[Access] = []
    branches: dict[tuple[str, int, int], Branch] = {}
    barriers: dict[tuple[str, int], Barrier] = {}
    doubtful: dict[tuple[str, int, int], DoubtfulWait] = {}
    certain: list[Traced] = []
    function: ir.Function | None = None
    incomplete: list[str] = []
    overrun: set[str] = set()
    reach: dict[str, int] = {}
    body_facts = BodyFacts()
    bounded = _all_exact(sites, len(shapes))
    for index, site, only_numbers in shapes:
        macros = dict(unit.macros)
        try:
            function = Lowerer(unit, text.source, _template_bindings(text, site)).function(text)
        except OutOfStepsError:
            break
        unit.macros = macros
        incomplete += function.incomplete
        recorder = Recorder()
        stopped = run_warps(unit, function, launches[index], site, recorder)
        if stopped:
            incomplete.append(stopped)
        incomplete += sorted(recorder.left_out)
        said = {_count(access) for access in accesses}
        of_shape = list(recorder.access_facts(index))
        if not only_numbers or any(_count(access) not in said for access in of_shape):
            accesses += of_shape
        accesses += body_facts.read(unit, function, recorder.callees, index)
        overrun |= recorder.overrun
        bounded = bounded and not stopped and not recorder.open_ended and recorder.saw_whole_block(launches[index])
        for name, end in recorder.reach.items():
            reach[name] = max(reach.get(name, 0), end)
        for branch in recorder.branch_facts(index):
            key = branch.span.key
            known = branches.get(key)
            if known is None or (branch.warps_diverging or 0.0) > (known.warps_diverging or 0.0):
                branches[key] = branch
        if site is not None:
            certain.append(traced(unit, text, function, launches[index], site, index))
            certain.append(_supposed(unit, text, function, index, _supposed_sites([site], uneven)))
        found = recorder.barrier_facts()
        if recorder.barriers_are_bounded:
            found += _uneven_barriers(unit, text, function, index, uneven(False))
        doubtful = {**recorder.doubtful_waits, **doubtful}
        for barrier in found:
            seen = barriers.get((barrier.span.path, barrier.span.start))
            if seen is None or (barrier.divergent and not seen.divergent):
                barriers[barrier.span.path, barrier.span.start] = barrier
    if unit.steps.spent:
        incomplete.append("it takes more steps than one kernel is given")
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
        races=tuple(race for each in certain for race in each.races),
        outside=tuple(access for each in certain for access in each.outside),
        missed_waits=tuple(wait for each in certain for wait in each.missed_waits),
        doubtful_waits=tuple(doubtful.values()),
        unwritten=tuple(read for each in certain for read in each.unwritten),
        promotions=_by_place(body_facts.promotions),
        divisions=_by_place(body_facts.divisions),
        powers=_by_place(body_facts.powers),
        incomplete="; ".join(dict.fromkeys(incomplete)) or None,
        arch=unit.assume.arch,
    )


def _supposed_sites(sites: list[LaunchSite], uneven: SiteReader) -> list[LaunchSite]:
    """The kernel's launches where sizes that come from outside are supposed: none where all follow from the text."""
    return [] if all(site.is_certain for site in sites) else uneven(True)


def _supposed(unit: Unit, text: FunctionText, function: ir.Function, index: int, sites: list[LaunchSite]) -> Traced:
    """What lies outside of its array where a host function's one size is no multiple of the block.

    `x[i]` without `i < n` is inside for n = 4096 and outside for 4093, where the grid is rounded up.
    """
    site = sites[index] if index < len(sites) else None
    if site is None or not site.is_certain or not any(site.allocated):
        return Traced()
    unit = replace(unit, extent=UNEVEN_EXTENT)
    found = traced(unit, text, function, site.launch, site, index)
    return Traced(outside=tuple(replace(access, supposed=UNEVEN_EXTENT) for access in found.outside))


def _uneven_barriers(
    unit: Unit, text: FunctionText, function: ir.Function, index: int, sites: list[LaunchSite]
) -> list[Barrier]:
    """The barriers that split a block when the sizes that the text does not give are not a multiple of anything.

    `if (i < n) { ...; __syncthreads(); }` is uniform for n = 4096 and not for 4093; a bound that the kernel itself
    rounds up to whole blocks is uniform for both. `sites` are the kernel's launches under such sizes.
    """
    unit = replace(unit, extent=UNEVEN_EXTENT)
    site = sites[index] if index < len(sites) else None
    recorder = Recorder()
    run_warps(unit, function, site.launch if site is not None else _assumed_launch(unit, text), site, recorder)
    reason = f"a size that is not a multiple of the block, such as {UNEVEN_EXTENT}, splits it"
    return [
        replace(barrier, basis=Basis.ASSUMED, reason=reason)
        for barrier in recorder.barrier_facts()
        if barrier.divergent and barrier.basis is Basis.EXACT
    ]


class _Shape(NamedTuple):
    """A launch that is looked at; `only_numbers` where it is another's shape with other integers passed."""

    launch: int
    site: LaunchSite | None
    only_numbers: bool = False


def _distinct_shapes(text: FunctionText, sites: list[LaunchSite]) -> list[_Shape]:
    """The first launch of each block shape and set of template arguments, and one more that passes other integers than
    the first: a warm-up with a stride of 1 tells little. Launches whose conditions fail count where no others are."""
    reached = [(i, site) for i, site in enumerate(sites) if site.is_reached] or list(enumerate(sites))
    found: dict[str, _Shape] = {}
    for index, site in reached:
        instance = (site.template_arguments, site.objects) if text.template else ()
        found.setdefault(repr((site.launch.block, instance)), _Shape(index, site))
    out = list(found.values())[:MAX_SHAPES]
    if out and len(out) < MAX_SHAPES:
        looked_at = {shape.launch for shape in out}
        first = reached[0][1]
        others = (_Shape(i, s, True) for i, s in reached if i not in looked_at and _other_numbers(first, s))
        out += islice(others, 1)
    return out


def _count(access: Access) -> tuple[Hashable, ...]:
    """What two launches of one shape may say differently about an access."""
    place = access.span.path, access.span.start, access.span.end, access.kind
    return *place, access.sectors_per_request, access.wavefronts_per_request, access.basis, access.why


def _other_numbers(first: LaunchSite, site: LaunchSite) -> bool:
    """Whether two launches pass different integers, both of which the text gives."""
    return any(
        one is not None and other is not None and not one.assumed and not other.assumed and one.value != other.value
        for one, other in zip(first.arguments, site.arguments, strict=False)
    )


def _by_place(facts: dict[tuple[str, int, int], T]) -> tuple[T, ...]:
    return tuple(facts[place] for place in sorted(facts))


def _all_exact(sites: list[LaunchSite], looked_at: int) -> bool:
    """Whether every launch is looked at and has a block that the text gives."""
    different = {repr((s.launch.grid, s.launch.block, s.template_arguments, s.arguments, s.objects)) for s in sites}
    return len(different) == looked_at and all(s.launch.basis is Basis.EXACT for s in sites)


def _template_bindings(text: FunctionText, site: LaunchSite | None) -> dict[str, CType | int]:
    given = site.template_arguments if site is not None else ()
    out: dict[str, CType | int] = {}
    for (name, is_type, _), argument in zip(text.template, given, strict=False):
        if argument is not None and is_type == isinstance(argument, CType):
            out[name] = argument
    open_names = {name for name, is_type, _ in text.template if is_type and name not in out}
    objects = site.objects if site is not None and open_names else ()
    for parameter, kind in zip(parameters_of(text.node), objects, strict=False):
        typed = parameter.child_by_field_name("type")
        name = text.source.node_code(typed) if typed is not None else ""
        declarator = parameter.child_by_field_name("declarator")
        if kind is not None and name in open_names and declarator is not None and declarator.type == "identifier":
            out[name] = kind
    return out


def _assumed_launch(unit: Unit, text: FunctionText) -> Launch:
    """The shape taken where no launch is found: the user's, that of __launch_bounds__, or one of its dimensions."""
    grid: tuple[None, None, None] = (None, None, None)
    if (block := unit.assume.block_of(text.name)) is not None:
        return Launch(grid, block, None, Basis.ASSUMED, _SETTINGS)
    bounds = next(descendants(text.node, "launch_bounds"), None)
    if bounds is not None and bounds.named_children:
        threads = Lowerer(unit, text.source).constant(uncommented(bounds)[0])
        if threads and 0 < threads <= MAX_THREADS_PER_BLOCK and _dimensions_used(text) == 1:
            return Launch(grid, (threads, 1, 1), None, Basis.ASSUMED, "__launch_bounds__")
    return Launch(grid, DEFAULT_BLOCKS[_dimensions_used(text)], None, Basis.ASSUMED, "default")


def _dimensions_used(text: FunctionText) -> int:
    body = text.source.node_code(text.node)
    return 3 if "threadIdx.z" in body else 2 if "threadIdx.y" in body else 1


# -- declarations -----------------------------------------------------------------------------------------------


def _parameters(text: FunctionText, function: ir.Function) -> Iterator[Parameter]:
    spans = [text.source.span(node) for node in parameters_of(text.node)]
    for parameter, span in zip(function.parameters, spans, strict=False):
        kind = parameter.type
        pointer = kind.kind == "pointer"
        target = kind.to if pointer else kind
        spelled = span.one_line
        const = "const" in (spelled.split("*")[0] if pointer else spelled).split()
        size = target.size if target is not None else None
        yield Parameter(parameter.name, spelled, pointer, const, size, span)


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
