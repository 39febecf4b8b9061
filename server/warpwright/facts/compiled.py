"""Facts with what the compiler says of each kernel, and the occupancy that follows from it.

The compiler reports registers, spills and shared memory of each instance of a kernel; the text gives the block and the
dynamic shared memory of each launch. Together they are what the driver computes the occupancy from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path

from warpwright.facts.carveout import EVERY_KERNEL, carveouts
from warpwright.facts.lifts import Footprint, Lift, lifts
from warpwright.facts.model import MAX_THREADS_PER_BLOCK, Basis, Kernel, Launch, Program
from warpwright.facts.occupancy import Occupancy
from warpwright.facts.resources import KernelResources
from warpwright.syntax.names import has_arguments, qualified, template_arguments, unqualified


def with_compiled(program: Program, resources: Iterable[KernelResources]) -> Program:
    """The program, each of whose kernels carries its compiled instances.

    Instances are known by the kernel's name. Of kernels that share one, those in a namespace of their own are told
    apart; the others, such as overloads, carry none.
    """
    compiled = tuple(resources)
    if not compiled:
        return program
    asked = carveouts(program.sources.values())
    names = Counter(kernel.name for kernel in program.defined_kernels)
    places = Counter(_qualified(kernel) for kernel in program.defined_kernels)

    def told(kernel: Kernel) -> Kernel:
        if kernel.node is None:
            return kernel
        mine = tuple(each for each in compiled if unqualified(each.name) == kernel.name)
        if names[kernel.name] > 1:
            place = _qualified(kernel)
            mine = tuple(each for each in mine if places[place] == 1 and qualified(each.name) == place)
        return replace(kernel, compiled=mine, carveout=asked.get(kernel.name, asked.get(EVERY_KERNEL, 100)))

    return replace(program, kernels=tuple(map(told, program.kernels)))


@dataclass(frozen=True, slots=True)
class LaunchOccupancy:
    """How many blocks of one compiled instance fit on a multiprocessor, launched as `launch` says.

    `basis` is assumed where the launch's block or its dynamic shared memory is.
    """

    resources: KernelResources
    launch: Launch
    footprint: Footprint
    occupancy: Occupancy
    basis: Basis

    @property
    def shared_bytes(self) -> int:
        """Static and dynamic shared memory of one block."""
        return self.footprint.shared_bytes

    @property
    def lifts(self) -> tuple[Lift, ...]:
        """What would let more warps be resident: nothing where the grid has no block more than fit already, and no
        fewer registers where some are spilled."""
        grid = self.launch.grid
        if None not in grid and prod(extent or 0 for extent in grid) <= self.occupancy.blocks:
            return ()
        spills = self.resources.spill_bytes > 0
        return tuple(lift for lift in lifts(self.footprint) if not (spills and lift.registers is not None))


def occupancies(kernel: Kernel) -> Iterator[LaunchOccupancy]:
    """Of each launch with each instance that it can mean; none where no instance is known."""
    for launch in kernel.launches:
        for resources in instances_of(kernel, launch):
            found = occupancy_of(kernel, launch, resources)
            if found is not None:
                yield found


def occupancy_of(kernel: Kernel, launch: Launch, resources: KernelResources) -> LaunchOccupancy | None:
    """None where the block, the dynamic shared memory, the host's preference for it or the architecture is not known.

    A launch that is not found is taken to give no dynamic shared memory to a kernel that declares none.
    """
    dynamic = launch.dynamic_shared_bytes
    if dynamic is None and launch.span is None and not any(array.dynamic for array in kernel.shared_arrays):
        dynamic = 0
    if dynamic is None or not launch.threads or kernel.carveout is None:
        return None
    footprint = Footprint(
        resources.arch or kernel.arch,
        resources.registers,
        resources.shared_bytes + dynamic,
        launch.threads,
        resources.barriers,
        kernel.carveout,
        resources.max_threads or MAX_THREADS_PER_BLOCK,
    )
    try:
        found = footprint.occupancy
    except ValueError:
        return None
    basis = Basis.EXACT if launch.basis is Basis.EXACT else Basis.ASSUMED
    return LaunchOccupancy(resources, launch, footprint, found, basis)


def instances_of(kernel: Kernel, launch: Launch) -> tuple[KernelResources, ...]:
    """The compiled instances that a launch can mean: those of its template arguments where it writes them."""
    written = template_arguments(launch.span.code.partition("<<<")[0]) if launch.span is not None else ()
    return tuple(each for each in kernel.compiled if has_arguments(each.name, written)) or kernel.compiled


@dataclass(frozen=True, slots=True)
class SpillLine:
    """Bytes per thread that the instructions of one line of a kernel's file spill and read back, each counted once."""

    line: int
    store_bytes: int
    load_bytes: int


def spill_lines(kernel: Kernel, resources: KernelResources) -> list[SpillLine]:
    """The lines of the kernel's own file at which an instance spills, most bytes first; of inlined code the innermost
    line of that file."""
    found: dict[int, SpillLine] = {}
    for place in resources.spills:
        line = next((line for file, line in place.places if _is_file(file, kernel.source.path)), None)
        if line is not None:
            so_far = found.get(line, SpillLine(line, 0, 0))
            found[line] = SpillLine(line, so_far.store_bytes + place.store_bytes, so_far.load_bytes + place.load_bytes)
    return sorted(found.values(), key=lambda each: (-each.store_bytes - each.load_bytes, each.line))


def _is_file(compiled: str, path: str) -> bool:
    """Whether the compiler, which names files whole, means a file that was named as `path`."""
    return Path(compiled) == Path(path).absolute()


def _qualified(kernel: Kernel) -> str:
    """The kernel's name with the namespaces around its definition."""
    parts = [kernel.name]
    node = kernel.node.parent if kernel.node is not None else None
    while node is not None:
        if node.type == "namespace_definition":
            name = node.child_by_field_name("name")
            parts.append(kernel.source.node_code(name) if name is not None else "(anonymous namespace)")
        node = node.parent
    return "::".join(reversed(parts))
