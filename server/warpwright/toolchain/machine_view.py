"""What the compiler made of each kernel of a file: its machine code and PTX, with what an expert looks for marked.

A `MachineView` has all of it; `toolchain.machine_lines` adds it up by source line.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from warpwright.facts.model import Space
from warpwright.facts.resources import KernelResources
from warpwright.missing import Missing
from warpwright.progress import IsCancelled, never_cancelled
from warpwright.toolchain.compilation import Compiled, CompiledPtx
from warpwright.toolchain.cubin_info import KernelInfo, kernel_info
from warpwright.toolchain.local_traffic import LocalPurpose, local_traffic
from warpwright.toolchain.machine_code import MachineInstruction, machine_code
from warpwright.toolchain.names import demangle
from warpwright.toolchain.opcodes import Family, MemoryUse, family_of, is_double, memory_uses, width_of
from warpwright.toolchain.ptx_lines import PtxInstruction, parse_ptx_lines

Json = dict[str, Any]
Place = tuple[str, int]
_WIDE_BYTES = 16


class Mark(StrEnum):
    """What makes an instruction worth a look. VARIABLE is an array, or another object with an address, in local memory;
    LOCAL is local memory of which it is not known what for."""

    SPILL = "spill"
    VARIABLE = "local variable"
    LOCAL = "local memory"
    FP64 = "FP64"
    TENSOR = "tensor core"
    WIDE = "128-bit"  # or wider
    GENERIC = "generic address"
    CALL = "call"
    PREDICATED = "predicated"
    NEVER = "never runs"


@dataclass(frozen=True, slots=True)
class Step:
    """One machine instruction. `width` is in bytes per lane, 0 where it accesses no memory."""

    instruction: MachineInstruction
    family: Family
    uses: tuple[MemoryUse, ...]
    width: int
    marks: tuple[Mark, ...]

    @property
    def counts(self) -> bool:
        """Whether it counts as an access: what never runs does not."""
        return Mark.NEVER not in self.marks


@dataclass(frozen=True, slots=True)
class KernelCode:
    """One compiled instance of a kernel. `sass` and `ptx` are in the order of the code."""

    resources: KernelResources
    sass: tuple[Step, ...]
    ptx: tuple[PtxInstruction, ...] = ()

    @property
    def name(self) -> str:
        return self.resources.name

    def families(self) -> Counter[Family]:
        """How many instructions of each family."""
        return Counter(step.family for step in self.sass)

    def marked(self) -> Counter[Mark]:
        """How many instructions carry each mark."""
        return Counter(mark for step in self.sass for mark in step.marks)

    def accesses(self) -> Counter[MachineAccess]:
        """How many accesses of each kind and width; constants, which most operands are, left out."""
        return accesses_of(self.sass)


@dataclass(frozen=True, slots=True, order=True)
class MachineAccess:
    """A kind of access: `space` is "global", "shared", "local" or "generic", `kind` "load", "store" or "atomic"."""

    space: str
    kind: str
    width: int


@dataclass(frozen=True, slots=True)
class MachineView:
    """The kernels of one compilation in the order of the text. `compiler` and `flags` say what was run."""

    arch: str
    compiler: str
    flags: tuple[str, ...] = ()
    kernels: tuple[KernelCode, ...] = field(default_factory=tuple)


def machine_view(
    compiled: Compiled, ptx: CompiledPtx | None = None, is_cancelled: IsCancelled = never_cancelled
) -> MachineView | Missing:
    """Disassemble what was compiled with -lineinfo, and read the PTX beside it where it is given.

    Runs nvdisasm once for each cubin; later calls read what is kept. `compiled` is one that went well. Raises
    DisassemblyError and CancelledError.
    """
    assert compiled.cubin is not None, compiled.reason
    code = machine_code(compiled.cubin, is_cancelled=is_cancelled)
    if isinstance(code, Missing):
        return code
    ptx_code = parse_ptx_lines(ptx.text) if ptx is not None and ptx.ok else {}
    info = kernel_info(compiled.cubin.read_bytes())
    kernels = [
        kernel_code(
            code.get(each.mangled_name, ()),
            each,
            ptx_code.get(each.mangled_name, ()),
            info.get(each.mangled_name, KernelInfo()).spills,
        )
        for each in compiled.kernels.values()
    ]
    kernels.sort(key=lambda kernel: (_first_line(kernel), kernel.name))
    return MachineView(compiled.arch, compiled.compiler, compiled.flags, tuple(kernels))


def kernel_code(
    code: Iterable[MachineInstruction],
    resources: KernelResources,
    ptx: tuple[PtxInstruction, ...] = (),
    spills: Collection[int] = (),
) -> KernelCode:
    """The instructions of one kernel with their marks. `spills` are the offsets that the cubin marks as such.

    >>> load = MachineInstruction(0, "LDG.E.128", "R4, [R2.64]", "@!P0", (("/a.cu", 3),))
    >>> code = kernel_code([load], KernelResources("k", "k", 8, 0, 0, 0, 0, 0, 0))
    >>> [mark.value for mark in code.sass[0].marks], code.accesses()
    (['128-bit', 'predicated'], Counter({MachineAccess(space='global', kind='load', width=16): 1}))
    """
    code = tuple(code)
    local = {access.instruction.offset: access.use for access in local_traffic(code, resources, spills)}
    return KernelCode(resources, tuple(_step(each, local) for each in code), ptx)


def _step(instruction: MachineInstruction, local: Mapping[int, LocalPurpose]) -> Step:
    opcode = instruction.opcode
    family, uses = family_of(opcode, instruction.operands), memory_uses(opcode)
    width = width_of(opcode) if uses else 0
    return Step(instruction, family, uses, width, tuple(_marks(instruction, family, uses, width, local)))


def _marks(
    instruction: MachineInstruction,
    family: Family,
    uses: tuple[MemoryUse, ...],
    width: int,
    local: Mapping[int, LocalPurpose],
) -> Iterable[Mark]:
    if instruction.is_never_executed:
        yield Mark.NEVER
        return
    match local.get(instruction.offset):
        case LocalPurpose.SPILL:
            yield Mark.SPILL
        case LocalPurpose.ARRAY:
            yield Mark.VARIABLE
        case LocalPurpose.UNKNOWN:
            yield Mark.LOCAL
    if is_double(instruction.opcode):
        yield Mark.FP64
    if family is Family.TENSOR:
        yield Mark.TENSOR
    if width >= _WIDE_BYTES and any(use.space is not Space.CONSTANT for use in uses):
        yield Mark.WIDE
    if any(use.space is None for use in uses):
        yield Mark.GENERIC
    if instruction.opcode.startswith("CALL"):
        yield Mark.CALL
    if instruction.guard:
        yield Mark.PREDICATED


def accesses_of(steps: Iterable[Step]) -> Counter[MachineAccess]:
    """How many accesses of each kind and width some instructions are; constants left out."""
    return Counter(
        MachineAccess(use.space.value if use.space is not None else "generic", use.kind.value, step.width)
        for step in steps
        if step.counts
        for use in step.uses
        if use.space is not Space.CONSTANT
    )


def called(step: Step) -> str:
    """The function that a call goes to, as the source has it; "" for one that a register holds.

    >>> code = kernel_code([MachineInstruction(0, "CALL.REL.NOINC", "`($_Z1kPf$_Z4slowfi)")],
    ...                    KernelResources("k", "k", 8, 0, 0, 0, 0, 0, 0))
    >>> called(code.sass[0])
    'slow'
    """
    _, _, target = step.instruction.operands.partition("`(")
    name = target.rstrip(") ")
    return demangle(name.rpartition("$")[2]) if name else ""


def own_places(places: Iterable[Place], files: Container[str]) -> tuple[Place, ...]:
    """The places of an instruction that lie in some files, the innermost first.

    An instruction of a toolkit's header belongs to the line of the user's that it was inlined into.

    >>> own_places((("/cuda/include/x.h", 3), ("/w/../a.cu", 9)), {"/a.cu"})
    (('/a.cu', 9),)
    """
    return tuple((path, line) for file, line in places if (path := os.path.normpath(file)) in files)


def _first_line(kernel: KernelCode) -> tuple[str, int]:
    return next((step.instruction.places[-1] for step in kernel.sass if step.instruction.places), ("", 0))


def view_json(view: MachineView) -> Json:
    """The whole view as JSON: for each kernel what it takes, the sums, and each instruction with its lines."""
    return {
        "version": 1,
        "arch": view.arch,
        "compiler": view.compiler,
        "flags": list(view.flags),
        "kernels": [_kernel_json(kernel) for kernel in view.kernels],
    }


def _kernel_json(kernel: KernelCode) -> Json:
    return {
        "name": kernel.name,
        "resources": asdict(kernel.resources),
        "families": {family.value: count for family, count in kernel.families().most_common()},
        "marks": {mark.value: count for mark, count in kernel.marked().most_common()},
        "accesses": [{**asdict(access), "count": count} for access, count in sorted(kernel.accesses().items())],
        "sass": [_step_json(step) for step in kernel.sass],
        "ptx": [
            {"row": each.row, "text": each.text, "places": _places_json(each.places), "function": each.function}
            for each in kernel.ptx
        ],
    }


def _step_json(step: Step) -> Json:
    each = step.instruction
    return {
        "offset": each.offset,
        "guard": each.guard,
        "opcode": each.opcode,
        "operands": each.operands,
        "places": _places_json(each.places),
        "function": each.function,
        "label": each.label,
        "family": step.family.value,
        "accesses": [
            {"space": use.space.value if use.space else "generic", "kind": use.kind.value} for use in step.uses
        ],
        "bytes": step.width,
        "marks": [mark.value for mark in step.marks],
    }


def _places_json(places: Iterable[Place]) -> list[Json]:
    return [{"file": file, "line": line} for file, line in places]
