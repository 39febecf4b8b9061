"""Facts with the numbers of a run in place of those that were worked out from the text, and with the faults of the run.

A number of the run replaces one of the text only where it is known to be of the same accesses: those of one line, space
and kind, and of one array where the run tells arrays apart. What cannot be told apart keeps what the text gives. What
depends on data stays so where the run's data were made up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from warpwright.facts.model import (
    Access,
    AccessKind,
    Basis,
    Branch,
    Divergence,
    Kernel,
    KernelRun,
    Launch,
    Program,
    RunFault,
    Space,
)
from warpwright.facts.profile import Backend, Fault, Inputs, Line, Profile, Traffic
from warpwright.syntax.source import Source, Span

SAME = 0.1
"""How far a number of the run may be from the text's, as a share, for the text's reason to explain it too."""
_REPLACED = (Space.GLOBAL, Space.SHARED, Space.LOCAL)
_Places = Mapping[tuple[str, int], Line]


def with_profiles(program: Program, profiles: Sequence[Profile]) -> Program:
    """The program with what `profiles` say of its kernels; where two speak of one launch, the first."""
    if not profiles:
        return program

    def told(kernel: Kernel) -> Kernel:
        mine = [each for each in profiles if each.kernel == kernel.name and kernel.node is not None]
        found = (
            _run_fault(fault, profile, kernel, program.sources) for profile in mine for fault in profile.own_faults
        )
        first = {(fault.kind, fault.span.key): fault for fault in reversed(list(found))}
        runs = tuple(run for run in map(_run, mine) if run is not None)
        return replace(reduce(profiled, reversed(mine), kernel), faults=tuple(reversed(first.values())), runs=runs)

    return replace(program, kernels=tuple(map(told, program.kernels)))


def profiled(kernel: Kernel, profile: Profile) -> Kernel:
    """The kernel with the numbers of one run, for the launches of that run's block shape.

    Where the only launch was assumed, the run's block takes its place: it is one that works.
    """
    launches, held = _launches(kernel, profile)
    if not held:
        return kernel
    lines = {(line.file, line.line): line for line in profile.lines}
    accesses = tuple(
        _access(access, kernel.accesses, lines, profile) if access.launch in held else access
        for access in kernel.accesses
    )
    branches = tuple(
        _branch(branch, kernel.branches, lines, profile) if branch.launch in held else branch
        for branch in kernel.branches
    )
    return replace(kernel, launches=launches, accesses=accesses, branches=branches)


def _launches(kernel: Kernel, profile: Profile) -> tuple[tuple[Launch, ...], frozenset[int]]:
    """The kernel's launches, and which of them the run's numbers hold for."""
    block = profile.launch.block
    launches = kernel.launches
    if block is None:
        return launches, frozenset({0} if len(launches) == 1 else ())
    if len(launches) == 1 and launches[0].basis is Basis.ASSUMED:
        source = f"the {profile.basis.value} run"
        return (replace(launches[0], block=block, basis=profile.basis, source=source),), frozenset({0})
    return launches, frozenset(index for index, launch in enumerate(launches) if launch.block == block)


def _access(access: Access, accesses: Sequence[Access], lines: _Places, profile: Profile) -> Access:
    line = lines.get((access.span.path, access.span.line))
    if line is None or access.joined or access.space not in _REPLACED or access.misaligned is not None:
        return access
    if access.basis is Basis.DATA_DEPENDENT and profile.inputs is Inputs.PROBLEM:
        return access
    if access.kind is AccessKind.ATOMIC and access.basis in (Basis.EXACT, Basis.ASSUMED):
        return access  # the compiler may make a loop of it, which asks again for lanes that did not get their turn
    traffic = line.of(access.space, access.kind)
    rivals = [other for other in accesses if _is_beside(access, other)]
    if all(each.array is not None for each in traffic):
        traffic = tuple(each for each in traffic if each.array == access.array)
        rivals = [other for other in rivals if other.array == access.array]
    if not sum(each.requests for each in traffic):
        return access
    own = _per_request(access)
    if rivals and (None in own or any(_per_request(other) != own for other in rivals)):
        return access
    # The machine code may make one wide request of requests that stand apart in the PTX; the text knows where.
    if profile.backend is Backend.EMULATOR and any(each.bytes != access.bytes for each in traffic):
        return access
    return replace(_counted(access, traffic, profile.basis), reached=True)


def _is_beside(access: Access, other: Access) -> bool:
    """Whether a run that knows lines only cannot tell two accesses apart."""
    return (
        other.span != access.span
        and (other.span.path, other.span.line) == (access.span.path, access.span.line)
        and (other.launch, other.space, other.kind) == (access.launch, access.space, access.kind)
    )


def _per_request(access: Access) -> tuple[float | None, float | None]:
    if access.space is Space.SHARED:
        return access.wavefronts_per_request, access.ideal_wavefronts_per_request
    return access.sectors_per_request, access.ideal_sectors_per_request


def _counted(access: Access, traffic: Sequence[Traffic], basis: Basis) -> Access:
    requests = sum(each.requests for each in traffic)

    def each_request(totals: Iterable[int | None]) -> float | None:
        known = [total for total in totals if total is not None]
        return sum(known) / requests if len(known) == len(traffic) else None

    after = replace(
        access,
        basis=basis,
        active_lanes=sum(each.lanes for each in traffic) / requests,
        idle=0.0,
        thinned=False,
        sectors_per_request=each_request(each.sectors for each in traffic),
        ideal_sectors_per_request=each_request(each.ideal_sectors for each in traffic),
        wavefronts_per_request=each_request(each.wavefronts for each in traffic),
        ideal_wavefronts_per_request=each_request(each.ideal_wavefronts for each in traffic),
    )
    fewest = _per_request(after)[1]
    if fewest is not None and fewest < 1:  # a request with a lane on needs one: so many have none, or more
        after = replace(after, idle=1 - fewest)
    pairs = zip(_per_request(access), _per_request(after), strict=True)
    explains = all(was is not None and now is not None and abs(was - now) <= SAME * now for was, now in pairs)
    return after if explains else replace(after, why="")


def _branch(branch: Branch, branches: Sequence[Branch], lines: _Places, profile: Profile) -> Branch:
    """Whether warps parted, where the line has no other condition and the run met this one."""
    line = lines.get((branch.span.path, branch.span.line))
    if line is None or not line.branches:
        return branch
    if branch.divergence is Divergence.DATA_DEPENDENT and profile.inputs is Inputs.PROBLEM:
        return branch
    place = (branch.span.path, branch.span.line, branch.launch)
    if any(b.span != branch.span and (b.span.path, b.span.line, b.launch) == place for b in branches):
        return branch
    why = f"{line.divergent_branches:,} of {line.branches:,} branches parted their warp ({profile.basis.value})"
    if not line.divergent_branches:
        return replace(branch, divergence=Divergence.UNIFORM, warps_diverging=0.0, why=why)
    if branch.divergence in (Divergence.BOUNDARY, Divergence.PARTIAL, Divergence.EVERY_WARP):
        return replace(branch, why=why)
    share = line.divergent_branches / line.branches
    if branch.divergence is Divergence.UNIFORM:  # at a size that the block divides; the run's ends within a warp
        return replace(branch, divergence=Divergence.BOUNDARY, warps_diverging=share, why=why)
    return replace(branch, divergence=Divergence.PARTIAL, warps_diverging=share, why=why)


def _run(profile: Profile) -> KernelRun | None:
    """What a rule may ask of a run; None where what was launched is not known."""
    launch = profile.launch
    if launch.grid is None or launch.block is None or profile.backend is not Backend.EMULATOR:
        return None
    return KernelRun(
        profile.basis,
        launch.grid,
        launch.block,
        tuple(launch.shape.items()),
        frozenset(
            (line.file, line.line, each.space, each.kind, each.array) for line in profile.lines for each in line.traffic
        ),
        frozenset(fault.kind.value for fault in profile.faults),
        frozenset(_lines(profile.faults)),
    )


def _lines(faults: Iterable[Fault]) -> Iterator[tuple[str, int]]:
    for fault in faults:
        yield fault.file, fault.line
        if fault.other is not None:
            yield fault.other.file, fault.other.line


def _run_fault(fault: Fault, profile: Profile, kernel: Kernel, sources: Mapping[str, Source]) -> RunFault:
    """A fault at its place in the text; at the kernel's name where that is in none of the program's files."""
    other = None if fault.other is None else _place(sources.get(fault.other.file), fault.other.line, None, kernel)
    launch = profile.launch
    return RunFault(
        fault.kind.value,
        _place(sources.get(fault.file), fault.line, fault.array, kernel) or kernel.name_span,
        fault.message,
        tuple((thread.block, thread.thread) for thread in fault.threads),
        other,
        fault.array,
        fault.address,
        fault.count,
        profile.basis,
        launch.grid,
        launch.block,
        tuple(launch.shape.items()),
    )


def _place(source: Source | None, line: int, array: str | None, kernel: Kernel) -> Span | None:
    """The only access of that array in a line, else what stands in the line."""
    if source is None or not 0 < line <= len(source.line_starts):
        return None
    spans = {
        access.span
        for access in kernel.accesses
        if array is not None and access.array == array and (access.span.path, access.span.line) == (source.path, line)
    }
    if len(spans) == 1:
        return spans.pop()
    start = source.line_starts[line - 1]
    text = source.data[start : source.line_starts[line]] if line < len(source.line_starts) else source.data[start:]
    code = text.partition(b"//")[0].rstrip() or text.rstrip()
    return Span(source, start + len(code) - len(code.lstrip()), start + len(code))
