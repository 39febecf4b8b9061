"""Facts with what the compiler says of each kernel, and the occupancy that follows from it.

The compiler reports registers, spills and shared memory of each instance of a kernel; the text gives the block and the
dynamic shared memory of each launch. Together they are what the driver computes the occupancy from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from warpwright.facts.model import Basis, Kernel, Launch, Program
from warpwright.facts.occupancy import Occupancy, occupancy
from warpwright.facts.resources import KernelResources
from warpwright.syntax.names import has_arguments, qualified, template_arguments, unqualified


def with_compiled(program: Program, resources: Iterable[KernelResources]) -> Program:
    """The program, each of whose kernels carries its compiled instances.

    Instances are known by the kernel's name. Of kernels that share one, those in a namespace of their own are told
    apart; the others, such as overloads, carry none.
    """
    compiled = tuple(resources)
    names = Counter(kernel.name for kernel in program.defined_kernels)
    places = Counter(_qualified(kernel) for kernel in program.defined_kernels)

    def told(kernel: Kernel) -> Kernel:
        if kernel.node is None:
            return kernel
        mine = tuple(each for each in compiled if unqualified(each.name) == kernel.name)
        if names[kernel.name] > 1:
            place = _qualified(kernel)
            mine = tuple(each for each in mine if places[place] == 1 and qualified(each.name) == place)
        return replace(kernel, compiled=mine)

    return replace(program, kernels=tuple(map(told, program.kernels)))


@dataclass(frozen=True, slots=True)
class LaunchOccupancy:
    """How many blocks of one compiled instance fit on a multiprocessor, launched as `launch` says.

    `basis` is assumed where the launch's block or its dynamic shared memory is.
    """

    resources: KernelResources
    launch: Launch
    occupancy: Occupancy
    basis: Basis

    @property
    def shared_bytes(self) -> int:
        """Static and dynamic shared memory of one block."""
        return self.resources.shared_bytes + (self.launch.dynamic_shared_bytes or 0)


def occupancies(kernel: Kernel) -> Iterator[LaunchOccupancy]:
    """Of each launch with each instance that it can mean; none where no instance is known."""
    for launch in kernel.launches:
        for resources in instances_of(kernel, launch):
            found = occupancy_of(kernel, launch, resources)
            if found is not None:
                yield found


def occupancy_of(kernel: Kernel, launch: Launch, resources: KernelResources) -> LaunchOccupancy | None:
    """None where the block, the dynamic shared memory or the architecture is not known.

    A launch that is not in sight is taken to give no dynamic shared memory to a kernel that declares none.
    """
    dynamic = launch.dynamic_shared_bytes
    if dynamic is None and launch.span is None and not any(array.dynamic for array in kernel.shared_arrays):
        dynamic = 0
    if dynamic is None or not launch.threads:
        return None
    arch = resources.arch or kernel.arch
    shared = resources.shared_bytes + dynamic
    try:
        found = occupancy(arch, resources.registers, shared, launch.threads, resources.barriers)
    except ValueError:
        return None
    return LaunchOccupancy(resources, launch, found, Basis.EXACT if launch.basis is Basis.EXACT else Basis.ASSUMED)


def instances_of(kernel: Kernel, launch: Launch) -> tuple[KernelResources, ...]:
    """The compiled instances that a launch can mean: those of its template arguments where it writes them."""
    written = template_arguments(launch.span.text.partition("<<<")[0]) if launch.span is not None else ()
    return tuple(each for each in kernel.compiled if has_arguments(each.name, written)) or kernel.compiled


def _qualified(kernel: Kernel) -> str:
    """The kernel's name with the namespaces around its definition."""
    parts = [kernel.name]
    node = kernel.node.parent if kernel.node is not None else None
    while node is not None:
        if node.type == "namespace_definition":
            name = node.child_by_field_name("name")
            parts.append(kernel.source.node_text(name) if name is not None else "(anonymous namespace)")
        node = node.parent
    return "::".join(reversed(parts))
