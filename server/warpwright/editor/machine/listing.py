"""Machine code laid out over the text that it comes from: what a terminal, a Markdown page and a browser all show."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from warpwright.editor.machine.words import access_words, widths_by_kind
from warpwright.facts.model import Space
from warpwright.syntax.source import Source
from warpwright.toolchain.machine_view import KernelCode, MachineView, Mark, Place, Step, own_places
from warpwright.toolchain.names import demangle
from warpwright.toolchain.opcodes import Family
from warpwright.toolchain.ptx_lines import PtxInstruction


@dataclass(frozen=True, slots=True)
class LineBlock:
    """One source line with the instructions that are its own, in the order of the code."""

    path: str
    line: int
    text: str
    steps: tuple[Step, ...]
    ptx: tuple[PtxInstruction, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """One compiled kernel over its text. `rest` are instructions that belong to no line, by their function."""

    kernel: KernelCode
    arch: str
    compiler: str
    flags: tuple[str, ...]
    sources: Mapping[str, Source]
    blocks: tuple[LineBlock, ...]
    rest: tuple[tuple[str, tuple[Step, ...]], ...]

    def places(self, places: Iterable[Place]) -> tuple[Place, ...]:
        """Those of an instruction's places that are in the listed files."""
        return own_places(places, self.sources)


def listing(kernel: KernelCode, view: MachineView, sources: Iterable[Source]) -> Listing:
    """A kernel over some files. The compiler names files by their absolute paths, and the listing does so too."""
    files = {os.path.abspath(source.path): source for source in sources}  # noqa: PTH100 - as the compiler names them
    steps: dict[Place, list[Step]] = {}
    ptx: dict[Place, list[PtxInstruction]] = {}
    rest: dict[str, list[Step]] = {}
    for step in kernel.sass:
        if places := own_places(step.instruction.places, files):
            steps.setdefault(places[0], []).append(step)
        else:
            rest.setdefault(step.instruction.function, []).append(step)
    for each in kernel.ptx:
        if places := own_places(each.places, files):
            ptx.setdefault(places[0], []).append(each)
    order = list(files)
    blocks = tuple(
        LineBlock(
            path, line, _line_text(files[path], line), tuple(steps.get((path, line), ())),
            tuple(ptx.get((path, line), ())),
        )
        for path, line in sorted({*steps, *ptx}, key=lambda place: (order.index(place[0]), place[1]))
    )  # fmt: skip
    left = tuple((function, tuple(found)) for function, found in rest.items())
    return Listing(kernel, view.arch, view.compiler, view.flags, files, blocks, left)


def _line_text(source: Source, line: int) -> str:
    return source.line_text(line) if 1 <= line <= len(source.line_starts) else ""


def summary(kernel: KernelCode) -> Iterator[str]:
    """What there is to say of a whole kernel, one sentence each without its full stop."""
    families = kernel.families()
    kinds = ", ".join(f"{count:,} {family.value}" for family, count in families.most_common())
    yield f"{len(kernel.sass):,} instructions: {kinds}"
    yield resources_words(kernel)
    for (space, kind), widths in widths_by_kind(sorted(kernel.accesses().items())).items():
        yield widths_words(space, kind, widths)
    marked = kernel.marked()
    if used := local_words(marked):
        yield f"local memory: {used}"
    if marked[Mark.FP64]:
        yield f"{marked[Mark.FP64]:,} instructions in double precision"
    if families[Family.OTHER]:
        yield f"{families[Family.OTHER]:,} instructions whose opcodes are not known here"


LOCAL_MARKS = {Mark.SPILL: "of spilled registers", Mark.VARIABLE: "of variables", Mark.LOCAL: "of unknown use"}


def local_words(marked: Counter[Mark]) -> str:
    """What local memory is accessed for, `193 of spilled registers, 14 of variables`; "" where it is not accessed."""
    return ", ".join(f"{marked[mark]:,} {words}" for mark, words in LOCAL_MARKS.items() if marked[mark])


def resources_words(kernel: KernelCode) -> str:
    """`32 registers a thread, 384 bytes of stack, 400 bytes of spill stores and 428 of spill loads`."""
    taken = kernel.resources
    parts = [f"{taken.registers} registers a thread"]
    if taken.stack_bytes:
        parts.append(f"{taken.stack_bytes:,} bytes of stack")
    if taken.spill_bytes:
        stores, loads = taken.spill_store_bytes, taken.spill_load_bytes
        parts.append(f"{stores:,} bytes of spill stores and {loads:,} of spill loads")
    else:
        parts.append("no spills")
    if taken.shared_bytes:
        parts.append(f"{taken.shared_bytes:,} bytes of static shared memory a block")
    return ", ".join(parts)


def widths_words(space: str, kind: str, widths: Iterable[tuple[int, int]]) -> str:
    """`12 of 12 global loads are 4 bytes wide`; of several widths each with its count.

    >>> widths_words("global", "load", [(4, 12)]), widths_words("global", "store", [(8, 1)])
    ('12 of 12 global loads are 4 bytes wide', 'the only global store is 8 bytes wide')
    >>> widths_words("global", "store", [(4, 1), (16, 2)])
    '3 global stores: 1 of 4 bytes a lane, 2 of 16 (128-bit)'
    """
    widths = list(widths)
    if len(widths) > 1:
        return access_words(space, kind, widths)
    ((width, count),) = widths
    wide = f"{width} byte{'s' if width != 1 else ''} wide" + (f" ({8 * width}-bit)" if width >= 16 else "")
    before, behind = ("", " at a generic address") if space == "generic" else (f"{space} ", "")
    if count == 1:
        return f"the only {before}{kind}{behind} is {wide}"
    return f"{count:,} of {count:,} {before}{kind}s{behind} are {wide}"


def remarks(step: Step) -> tuple[str, ...]:
    """What stands beside an instruction: its accesses with their width, but for constants, and its marks, in words.

    >>> from warpwright.facts.resources import KernelResources
    >>> from warpwright.toolchain.machine_code import MachineInstruction
    >>> from warpwright.toolchain.machine_view import kernel_code
    >>> load = MachineInstruction(0, "LDG.E.128", "R4, [R2.64]", "@!P0")
    >>> remarks(kernel_code([load], KernelResources("k", "k", 8, 0, 0, 0, 0, 0, 0)).sass[0])
    ('global load, 16 bytes', '128-bit', 'predicated')
    """
    said = []
    spaces = [
        f"{use.space.value} {use.kind.value}" if use.space else use.kind.value
        for use in step.uses
        if use.space is not Space.CONSTANT
    ]
    if spaces and step.counts:
        said.append(f"{' and '.join(spaces)}, {step.width} byte{'s' if step.width != 1 else ''}")
    return (*said, *(mark_label(step, mark) for mark in step.marks))


def mark_label(step: Step, mark: Mark) -> str:
    """A mark on an instruction: an access is as wide as it is."""
    return f"{8 * step.width}-bit" if mark is Mark.WIDE else mark.value


def function_name(mangled: str) -> str:
    return demangle(mangled) if mangled else ""
