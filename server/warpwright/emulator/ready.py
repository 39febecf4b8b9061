"""From a kernel's source text to a program that can be launched: nvcc's PTX, read and translated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from importlib.util import find_spec
from typing import TYPE_CHECKING

from warpwright.facts.model import Kernel
from warpwright.facts.model import Program as Unit
from warpwright.missing import Missing
from warpwright.problems.model import Problem
from warpwright.progress import IsCancelled, never_cancelled
from warpwright.toolchain.compile import compile_cubin, compile_ptx
from warpwright.toolchain.machine_code import DisassemblyError, MemoryInstruction, memory_instructions
from warpwright.toolchain.names import instance_of, no_instance

if TYPE_CHECKING:
    from warpwright.emulator.program import Program

ARCH = "sm_90"
"""What kernels are compiled for where nobody asks for another: the newest that the emulator covers."""

MOST_REASONS = 3


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
    from warpwright.emulator.program import translate
    from warpwright.emulator.ptx.parse import parse
    from warpwright.emulator.ptx.tokens import PtxError
    from warpwright.emulator.support import unsupported
    from warpwright.emulator.translate.registry import UnsupportedError

    compiled = compile_ptx(unit.source, arch=arch, flags=flags, is_cancelled=is_cancelled)
    if not compiled.ok:
        return Missing("PTX", f"{kernel.name} has no PTX: {compiled.reason}", "")
    name = instance_of(compiled.kernels, kernel.name, problem.instance)
    if name is None:
        return no_instance(kernel.name)
    try:
        module = parse(compiled.text)
    except PtxError as error:
        return Missing("PTX", f"nvcc's PTX cannot be read: {error}", "Report it with the file.")
    try:
        return replace(translate(module, name), sha256=sha256(compiled.text.encode()).hexdigest())
    except UnsupportedError as error:
        sentences = unsupported(module, name) or [f"{error}."]
        said = "; ".join(sentence.removesuffix(".") for sentence in sentences[:MOST_REASONS])
        more = f"; and {len(sentences) - MOST_REASONS} more" if len(sentences) > MOST_REASONS else ""
        return Missing("emulation", f"{kernel.name} cannot be emulated: {said}{more}.", "It can be run on a GPU.")


def machine_code_of(
    unit: Unit, *, arch: str = ARCH, flags: tuple[str, ...] = (), is_cancelled: IsCancelled = never_cancelled
) -> Mapping[str, Sequence[MemoryInstruction]] | Missing:
    """The memory instructions that ptxas made, by kernel, or why they are not known. Raises CancelledError."""
    compiled = compile_cubin(unit.source, arch=arch, flags=flags, is_cancelled=is_cancelled)
    if compiled.cubin is None:
        return Missing("cubin", compiled.reason, "")
    try:
        return memory_instructions(compiled.cubin, is_cancelled=is_cancelled)
    except DisassemblyError as error:
        return Missing("machine code", str(error), "")
