"""From a kernel's source text to a program that can be launched: nvcc's PTX, read and translated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.util import find_spec
from typing import TYPE_CHECKING

from warpwright.facts.model import Kernel
from warpwright.facts.model import Program as Unit
from warpwright.missing import Missing
from warpwright.problems.model import Problem
from warpwright.progress import IsCancelled, never_cancelled
from warpwright.syntax.encoding import encoded
from warpwright.toolchain.compilation import Compiled
from warpwright.toolchain.compile import compile_ptx
from warpwright.toolchain.machine_code import DisassemblyError, MemoryInstruction, memory_instructions
from warpwright.toolchain.names import instance_of, no_instance
from warpwright.toolchain.rights import Reads

if TYPE_CHECKING:
    from warpwright.emulator.program import Program

ARCH = "sm_90"
"""What kernels are compiled for where nobody asks for another: the newest that the emulator covers."""

MOST_REASONS = 3


@dataclass(frozen=True, slots=True)
class Ptx:
    """The compiler's PTX of a file, and the mangled name of the instance of `kernel` that is to be run."""

    text: str
    name: str
    kernel: str


def make_ready(
    unit: Unit,
    kernel: Kernel,
    problem: Problem,
    *,
    arch: str = ARCH,
    flags: tuple[str, ...] = (),
    is_cancelled: IsCancelled = never_cancelled,
) -> Program | Missing:
    """The instance of a kernel that its problem launches, or why it cannot be run. Raises CancelledError.

    Places in it have absolute paths. `flags` are the compiler's. Blocks for seconds where nothing is cached.
    """
    if find_spec("numpy") is None:
        return Missing(
            "numpy", "The emulator computes with NumPy, which is not here.", "Run `pip install 'warpwright[emulator]'`."
        )
    ptx = compiled_instance(unit, kernel, problem, arch=arch, flags=flags, is_cancelled=is_cancelled)
    return ptx if isinstance(ptx, Missing) else translated(ptx)


def compiled_instance(
    unit: Unit,
    kernel: Kernel,
    problem: Problem,
    *,
    arch: str = ARCH,
    flags: tuple[str, ...] = (),
    is_cancelled: IsCancelled = never_cancelled,
    reads: Reads = None,
) -> Ptx | Missing:
    """The first half of `make_ready`, which needs the compiler and no NumPy. Raises CancelledError."""
    compiled = compile_ptx(unit.source, arch=arch, flags=flags, is_cancelled=is_cancelled, reads=reads)
    if not compiled.ok:
        return Missing("PTX", f"{kernel.name} has no PTX: {compiled.reason}", "")
    name = instance_of(compiled.kernels, kernel.name, problem.instance)
    return no_instance(kernel.name) if name is None else Ptx(compiled.text, name, kernel.name)


def translated(ptx: Ptx) -> Program | Missing:
    """The second half, which needs NumPy and no compiler."""
    from warpwright.emulator.program import translate
    from warpwright.emulator.ptx.parse import parse
    from warpwright.emulator.ptx.tokens import PtxError
    from warpwright.emulator.support import unsupported
    from warpwright.emulator.translate.registry import UnsupportedError

    try:
        module = parse(ptx.text)
    except PtxError as error:
        return Missing("PTX", f"nvcc's PTX cannot be read: {error}", "Report it with the file.")
    try:
        return replace(translate(module, ptx.name), sha256=sha256(encoded(ptx.text)).hexdigest())
    except UnsupportedError as error:
        sentences = unsupported(module, ptx.name) or [f"{error}."]
        said = "; ".join(sentence.removesuffix(".") for sentence in sentences[:MOST_REASONS])
        more = f"; and {len(sentences) - MOST_REASONS} more" if len(sentences) > MOST_REASONS else ""
        return Missing("emulation", f"{ptx.kernel} cannot be emulated: {said}{more}.", "It can be run on a GPU.")


def machine_code_of(
    compiled: Compiled, is_cancelled: IsCancelled = never_cancelled
) -> Mapping[str, Sequence[MemoryInstruction]] | Missing:
    """The memory instructions that ptxas made, by kernel, or why they are not known. Raises CancelledError."""
    if compiled.cubin is None:
        return Missing("cubin", compiled.reason, "")
    try:
        return memory_instructions(compiled.cubin, is_cancelled=is_cancelled)
    except DisassemblyError as error:
        return Missing("machine code", str(error), "")
