"""The memory instructions of machine code (SASS), with their source lines and widths, through nvdisasm.

ptxas merges neighbouring accesses into wider ones, and what a warp requests is what it made of them: the profiler
counts requests of these instructions. Source of the opcodes: CUDA Binary Utilities, "Instruction Set Reference".
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from warpwright.directories import cache_dir
from warpwright.facts.model import AccessKind, Space
from warpwright.missing import Missing
from warpwright.progress import IsCancelled, never_cancelled
from warpwright.toolchain import cache
from warpwright.toolchain.find import find_toolchain
from warpwright.toolchain.process import LOG, run_limited

OUTPUT_BYTES = 512 << 20
MEMORY_BYTES = 12 << 30
_ADVICE = "Install it with `pip install nvidia-cuda-nvdisasm`, or install the CUDA toolkit."

_OPCODES: dict[str, tuple[tuple[Space | None, AccessKind], ...]] = {
    "LDG": ((Space.GLOBAL, AccessKind.LOAD),),
    "STG": ((Space.GLOBAL, AccessKind.STORE),),
    "LDS": ((Space.SHARED, AccessKind.LOAD),),
    "STS": ((Space.SHARED, AccessKind.STORE),),
    "LDL": ((Space.LOCAL, AccessKind.LOAD),),
    "STL": ((Space.LOCAL, AccessKind.STORE),),
    "LDC": ((Space.CONSTANT, AccessKind.LOAD),),
    "LD": ((None, AccessKind.LOAD),),
    "ST": ((None, AccessKind.STORE),),
    "LDSM": ((Space.SHARED, AccessKind.LOAD),),
    "STSM": ((Space.SHARED, AccessKind.STORE),),
    "LDGSTS": ((Space.GLOBAL, AccessKind.LOAD), (Space.SHARED, AccessKind.STORE)),
    "ATOM": ((None, AccessKind.ATOMIC),),
    "ATOMG": ((Space.GLOBAL, AccessKind.ATOMIC),),
    "ATOMS": ((Space.SHARED, AccessKind.ATOMIC),),
    "RED": ((None, AccessKind.ATOMIC),),
    "REDG": ((Space.GLOBAL, AccessKind.ATOMIC),),
    "REDS": ((Space.SHARED, AccessKind.ATOMIC),),
}
_WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "F64": 8, "128": 16, "256": 32}
_SECTION = re.compile(r"^\.text\.(\S+):$")
_PLACE = re.compile(r'^\s*//## File "([^"]*)", line (\d+)(?: inlined at "([^"]*)", line (\d+))?')
_INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:\{\s*)?(?:@!?U?P\w+\s+)?([A-Z][\w.]*)")


class DisassemblyError(Exception):
    """Machine code that cannot be read; the message is one sentence."""


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


def memory_instructions(
    cubin: Path, *, timeout: float = 120.0, is_cancelled: IsCancelled = never_cancelled
) -> dict[str, tuple[MemoryInstruction, ...]] | Missing:
    """The memory instructions of each kernel of a cubin by mangled name, in the order of its machine code.

    Lines are known where the cubin was compiled with -lineinfo. Raises DisassemblyError and CancelledError.
    """
    toolchain = find_toolchain()
    if isinstance(toolchain, Missing):
        return toolchain
    if toolchain.nvdisasm is None:
        reason = f"NVIDIA's disassembler nvdisasm was not found beside {toolchain.nvcc}, on PATH or among its wheels."
        return Missing("nvdisasm", reason, _ADVICE)
    return parse_memory_instructions(_disassembled(toolchain.nvdisasm, cubin, timeout, is_cancelled))


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


def parse_memory_instructions(text: str) -> dict[str, tuple[MemoryInstruction, ...]]:
    """The memory instructions in what `nvdisasm -c -gi` prints.

    >>> text = '''.text._Z1kPf:
    ... \\t//## File "/a.cu", line 3 inlined at "/a.cu", line 9
    ... \\t//## File "/a.cu", line 9
    ...         /*0070*/                   LDG.E.64.CONSTANT R6, desc[UR6][R8.64+0xc] ;
    ... \\t//## File "/a.cu", line 16
    ...         /*0080*/              @!P0 STS.128 [R2+UR4], R4 ;'''
    >>> first, second = parse_memory_instructions(text)["_Z1kPf"]
    >>> first.line, first.callers, first.space, first.kind, first.width
    (3, (('/a.cu', 9),), <Space.GLOBAL: 'global'>, <AccessKind.LOAD: 'load'>, 8)
    >>> second.line, second.opcode, second.width, second.offset
    (16, 'STS.128', 16, 128)
    """
    kernels: dict[str, list[MemoryInstruction]] = {}
    found: list[MemoryInstruction] = []
    places: list[tuple[str, int]] = []
    in_header = False
    for line in text.splitlines():
        if match := _INSTRUCTION.match(line):
            in_header = False
            opcode = match[2]
            for space, kind in _OPCODES.get(opcode.partition(".")[0], ()):
                file, number = places[0] if places else ("", 0)
                width = width_of(opcode)
                callers = tuple(places[1:])
                found.append(MemoryInstruction(file, number, opcode, space, kind, width, int(match[1], 16), callers))
        elif match := _PLACE.match(line):
            if not in_header:
                places, in_header = [], True
            for path, row in ((match[1], match[2]), (match[3], match[4])):
                if path is not None and (not places or places[-1] != (path, int(row))):
                    places.append((path, int(row)))
        elif match := _SECTION.match(line):
            found = kernels.setdefault(match[1], [])
            places, in_header = [], False
    return {name: tuple(instructions) for name, instructions in kernels.items()}


def width_of(opcode: str) -> int:
    """Bytes per lane of a memory instruction: four where it names no width.

    >>> width_of("LDG.E"), width_of("LDS.U16"), width_of("STG.E.128"), width_of("ATOMG.E.CAS.64.STRONG.GPU")
    (4, 2, 16, 8)
    >>> width_of("LDSM.16.MT88.4")
    16
    """
    name, *modifiers = opcode.split(".")
    if name in {"LDSM", "STSM"}:
        return 4 * next((int(m) for m in modifiers if m in {"2", "4"}), 1)
    return next((_WIDTHS[m] for m in modifiers if m in _WIDTHS), 4)
