"""Machine code (SASS) with the source lines that each instruction comes from, through nvdisasm.

ptxas merges neighbouring accesses into wider ones, and what a warp requests is what it made of them: the profiler
counts requests of these instructions.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from warpwright.directories import cache_dir
from warpwright.facts.model import AccessKind, Space
from warpwright.missing import Missing
from warpwright.progress import IsCancelled, never_cancelled
from warpwright.sandbox.confine import Policy, system_folders
from warpwright.toolchain import cache
from warpwright.toolchain.file_names import unescaped
from warpwright.toolchain.find import find_toolchain
from warpwright.toolchain.opcodes import memory_uses, width_of
from warpwright.toolchain.process import LOG, run_limited

OUTPUT_BYTES = 512 << 20
MEMORY_BYTES = 12 << 30
_ADVICE = "Install it with `pip install nvidia-cuda-nvdisasm`, or install the CUDA toolkit."

_SECTION = re.compile(r"^\.text\.(\S+):$")
_PLACE = re.compile(r'^\s*//## File "([^"]*)", line (\d+)(?: inlined at "([^"]*)", line (\d+))?')
_INSTRUCTION = re.compile(
    r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:\{\s*)?(@!?U?P\w+)?\s*([A-Z][\w.]*)\s*(.*?)\s*(?:;.*|\}\s*)?$", re.ASCII
)
_LABEL = re.compile(r"^(\.L_x_\d+|\$[\w$.]+):$", re.ASCII)


class DisassemblyError(Exception):
    """Machine code that cannot be read; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class MachineInstruction:
    """One instruction of a kernel's machine code, `@!P0 LDG.E.64 R6, desc[UR6][R8.64+0xc]`.

    `offset` is in bytes from the start of the kernel's code. `places` are (file, line): the innermost first, then the
    calls that it was inlined into; empty where the compiler gives none. `function` is "" in the kernel itself, else the
    mangled name of the function that the kernel calls and that lies behind its code. `label` stands before it, as the
    target of branches.
    """

    offset: int
    opcode: str
    operands: str = ""
    guard: str = ""
    places: tuple[tuple[str, int], ...] = ()
    function: str = ""
    label: str = ""

    @property
    def text(self) -> str:
        """As nvdisasm prints it, without the semicolon."""
        return " ".join(part for part in (self.guard, self.opcode, self.operands) if part)

    @property
    def is_never_executed(self) -> bool:
        """Whether its guard is never true. ptxas places such loads to keep a distance between other instructions."""
        return self.guard in {"@!PT", "@!UPT"}


@dataclass(frozen=True, slots=True)
class MemoryInstruction:
    """One access of a kernel's machine code. An instruction that reads one space and writes another stands twice.

    `file` and `line` are the innermost place, `callers` those that it was inlined into, from inside out. `space` is
    None for a generic address, `width` is in bytes per lane. `offset` is the instruction's own, in bytes from the
    kernel's start: the order of the machine code.
    """

    file: str
    line: int
    opcode: str
    space: Space | None
    kind: AccessKind
    width: int
    offset: int
    callers: tuple[tuple[str, int], ...] = ()


def machine_code(
    cubin: Path, *, timeout: float = 120.0, is_cancelled: IsCancelled = never_cancelled
) -> dict[str, tuple[MachineInstruction, ...]] | Missing:
    """The instructions of each kernel of a cubin by mangled name, without the padding behind them.

    Lines are known where the cubin was compiled with -lineinfo. Raises DisassemblyError and CancelledError.
    """
    toolchain = find_toolchain()
    if isinstance(toolchain, Missing):
        return toolchain
    if toolchain.nvdisasm is None:
        reason = f"NVIDIA's disassembler nvdisasm was not found beside {toolchain.nvcc}, on PATH or among its wheels."
        return Missing("nvdisasm", reason, _ADVICE)
    return parse_machine_code(_disassembled(toolchain.nvdisasm, cubin, timeout, is_cancelled))


def memory_instructions(
    cubin: Path, *, timeout: float = 120.0, is_cancelled: IsCancelled = never_cancelled
) -> dict[str, tuple[MemoryInstruction, ...]] | Missing:
    """The accesses of each kernel of a cubin by mangled name, in the order of its machine code.

    Lines are known where the cubin was compiled with -lineinfo. Raises DisassemblyError and CancelledError.
    """
    found = machine_code(cubin, timeout=timeout, is_cancelled=is_cancelled)
    return found if isinstance(found, Missing) else accesses_of(found)


def _disassembled(nvdisasm: Path, cubin: Path, timeout: float, is_cancelled: IsCancelled) -> str:
    """What nvdisasm prints of a cubin, kept in the user's cache under a hash of the cubin and the disassembler.

    Without its analysis of data flow, which finds the targets of computed branches and takes a third of its time.
    """
    try:
        key = cache.key_of("nvdisasm", cubin.read_bytes(), str(nvdisasm), nvdisasm.stat().st_mtime_ns)
    except OSError as error:
        raise DisassemblyError(f"{error.filename} cannot be read ({error.strerror}).") from error
    kept = cache.lookup(key, LOG)
    if kept is not None:
        return kept.output
    try:
        with cache.building_directory() as directory:
            finished = run_limited(
                [str(nvdisasm), "-c", "-gi", "-ndf", str(cubin.absolute())],
                directory=directory,
                environment=os.environ,
                timeout=timeout,
                output_bytes=OUTPUT_BYTES,
                memory_bytes=MEMORY_BYTES,
                is_cancelled=is_cancelled,
                policy=Policy(reads=(*system_folders(), str(nvdisasm.parent.parent), str(cubin.absolute().parent))),
            )
            if finished.stopped:
                raise DisassemblyError(f"{nvdisasm} {finished.stopped}.")
            if finished.returncode != 0:
                said = next((line.strip() for line in finished.output.splitlines() if line.strip()), "nothing")
                raise DisassemblyError(f"{nvdisasm} cannot read {cubin.name}; it said: {said.rstrip('.')}.")
            return cache.store(key, LOG, directory, ()).output
    except OSError as error:
        raise DisassemblyError(
            f"{nvdisasm} could not be run, or {cache_dir()} not written ({error.strerror})."
        ) from error


def parse_machine_code(text: str) -> dict[str, tuple[MachineInstruction, ...]]:
    """The instructions in what `nvdisasm -c -gi` prints. Lines that are no instruction are passed over.

    nvdisasm prints a place where it differs from the one before, even one of another kernel. The line table says
    nothing of the toolkit's own functions, such as a division's (`$__internal_0_$...`): they have no place.

    >>> text = '''.text._Z1kPf:
    ... \\t//## File "/a.cu", line 3 inlined at "/a.cu", line 9
    ... \\t//## File "/a.cu", line 9
    ...         /*0070*/              @!P0 LDG.E.64.CONSTANT R6, desc[UR6][R8.64+0xc] ;
    ... .L_x_0:
    ...         /*0080*/                   BRA `(.L_x_0);
    ...         /*0090*/                   NOP;'''
    >>> first, second = parse_machine_code(text)["_Z1kPf"]
    >>> first.text, first.places
    ('@!P0 LDG.E.64.CONSTANT R6, desc[UR6][R8.64+0xc]', (('/a.cu', 3), ('/a.cu', 9)))
    >>> second.opcode, second.operands, second.label, second.offset
    ('BRA', '`(.L_x_0)', '.L_x_0', 128)
    """
    kernels: dict[str, list[MachineInstruction]] = {}
    found: list[MachineInstruction] = []
    chain: list[tuple[str, int]] = []
    printed: tuple[tuple[str, int], ...] = ()
    places = printed
    function = label = ""
    in_header = False
    for line in text.splitlines():
        if match := _INSTRUCTION.match(line):
            if in_header:
                places = printed = tuple(chain)
                in_header = False
            offset, guard, opcode, operands = match.groups()
            found.append(MachineInstruction(int(offset, 16), opcode, operands, guard or "", places, function, label))
            label = ""
        elif match := _PLACE.match(line):
            if not in_header:
                chain, in_header = [], True
            for path, row in ((match[1], match[2]), (match[3], match[4])):
                if path is not None and (not chain or chain[-1] != (unescaped(path), int(row))):
                    chain.append((unescaped(path), int(row)))
        elif match := _SECTION.match(line):
            found = kernels.setdefault(match[1], [])
            places, function, label = printed, "", ""
        elif match := _LABEL.match(line):
            if match[1].startswith("$"):
                places = () if match[1].startswith("$__internal_") else printed
                function, label = match[1].rpartition("$")[2], ""
            else:
                label = match[1]
    return {name: tuple(_without_padding(instructions)) for name, instructions in kernels.items()}


def _without_padding(instructions: list[MachineInstruction]) -> list[MachineInstruction]:
    """Without the NOPs at the end, which fill the last line of the instruction cache."""
    end = len(instructions)
    while end and instructions[end - 1].opcode == "NOP" and not instructions[end - 1].guard:
        end -= 1
    return instructions[:end]


def accesses_of(code: Mapping[str, Iterable[MachineInstruction]]) -> dict[str, tuple[MemoryInstruction, ...]]:
    """The accesses among the instructions of each kernel, those of instructions that never run among them."""
    return {name: tuple(access for each in found for access in _accesses(each)) for name, found in code.items()}


def _accesses(instruction: MachineInstruction) -> Iterable[MemoryInstruction]:
    uses = memory_uses(instruction.opcode)
    if not uses:
        return
    (file, line), callers = (instruction.places or (("", 0),))[0], instruction.places[1:]
    width = width_of(instruction.opcode)
    for use in uses:
        yield MemoryInstruction(file, line, instruction.opcode, use.space, use.kind, width, instruction.offset, callers)
