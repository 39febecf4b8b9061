"""Compiled kernels with the places at which they spill registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from warpwright.facts.model import AccessKind
from warpwright.facts.resources import KernelResources, SpillPlace
from warpwright.missing import Missing
from warpwright.progress import IsCancelled, never_cancelled
from warpwright.toolchain.compilation import Compiled
from warpwright.toolchain.cubin_info import kernel_info
from warpwright.toolchain.local_traffic import LocalAccess, LocalPurpose, local_traffic
from warpwright.toolchain.machine_code import DisassemblyError, machine_code


def with_spills(compiled: Compiled, is_cancelled: IsCancelled = never_cancelled) -> Mapping[str, KernelResources]:
    """The resources of all kernels, keyed as `compiled.kernels`.

    Those that spill are disassembled for the places; where that cannot be done, or spills cannot be told from arrays,
    they stay without. Raises CancelledError.
    """
    kernels = compiled.kernels
    if compiled.cubin is None or not any(each.spill_bytes for each in kernels.values()):
        return kernels
    try:
        code = machine_code(compiled.cubin, is_cancelled=is_cancelled)
        info = kernel_info(compiled.cubin.read_bytes())
    except (DisassemblyError, OSError):
        return kernels
    if isinstance(code, Missing):
        return kernels
    instructions = code

    def told(kernel: KernelResources) -> KernelResources:
        name = kernel.mangled_name
        if not kernel.spill_bytes or name not in instructions:
            return kernel
        marked = info[name].spills if name in info else ()
        return replace(kernel, spills=_by_place(local_traffic(instructions[name], kernel, marked)))

    return {name: told(each) for name, each in kernels.items()}


def _by_place(accesses: Sequence[LocalAccess]) -> tuple[SpillPlace, ...]:
    """One for each place, in the order of the source; none where an access may be a spill or not."""
    if any(access.use is LocalPurpose.UNKNOWN for access in accesses):
        return ()
    places: dict[tuple[tuple[str, int], ...], list[LocalAccess]] = {}
    for access in accesses:
        if access.use is LocalPurpose.SPILL:
            places.setdefault(access.instruction.places, []).append(access)
    return tuple(_place(at, places[at]) for at in sorted(places))


def _place(at: tuple[tuple[str, int], ...], accesses: Sequence[LocalAccess]) -> SpillPlace:
    stores = [access.width for access in accesses if access.kind is AccessKind.STORE]
    loads = [access.width for access in accesses if access.kind is AccessKind.LOAD]
    return SpillPlace(at, len(stores), len(loads), sum(stores), sum(loads))
