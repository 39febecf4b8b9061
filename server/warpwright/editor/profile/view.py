"""A profile laid out over the text that it is of: what the table in a terminal and the page in a browser both show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath

from warpwright.facts.document import dims_text
from warpwright.facts.model import Basis, Kernel, Program, Space
from warpwright.facts.profile import Backend, Fault, Inputs, InstructionSet, Line, Profile
from warpwright.problems.guesses import NOT_RECONSTRUCTED, not_reconstructed
from warpwright.syntax.source import Source


@dataclass(frozen=True, slots=True)
class Counts:
    """What one line, or a whole run, did. A pair is (transactions, fewest possible); None where there are none, its
    second part None where the fewest are not known."""

    instructions: int
    threads_per_instruction: float
    global_sectors: tuple[int, int | None] | None
    shared_wavefronts: tuple[int, int | None] | None
    local_sectors: tuple[int, int | None] | None
    branches: int
    divergent_branches: int


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the text; `line` and `counts` are None where nothing was executed."""

    number: int
    text: str
    line: Line | None
    counts: Counts | None
    faults: tuple[Fault, ...]


@dataclass(frozen=True, slots=True)
class FileView:
    """All lines of one file; `first` to `last` are those that belong to the kernel or were executed."""

    path: str
    rows: tuple[Row, ...]
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class View:
    """A whole profile. `largest` are the greatest counts of any line, for bars."""

    profile: Profile
    files: tuple[FileView, ...]
    total: Counts
    largest: Counts
    elsewhere: tuple[Fault, ...]

    @property
    def instruction_set(self) -> InstructionSet:
        own = InstructionSet.PTX if self.profile.backend is Backend.EMULATOR else InstructionSet.SASS
        return next((line.instruction_set for line in self.profile.lines), own)


def view_of(profile: Profile, program: Program) -> View:
    """The profile over the program's files: the one asked for first, then each other one that was executed in."""
    lines = {(line.file, line.line): line for line in profile.lines}
    faults: dict[tuple[str, int], list[Fault]] = {}
    for fault in profile.faults:
        faults.setdefault((fault.file, fault.line), []).append(fault)
    kernel = _definition(profile, program)
    spoken = {file for file, _ in (*lines, *faults)}
    files = []
    for path, source in program.sources.items():
        own = kernel if kernel is not None and kernel.source.path == path else None
        if path in spoken or own is not None:
            span = (own.span.line, own.span.end_line) if own is not None else None
            files.append(_file(source, lines, faults, span))
    files.sort(key=lambda each: each.path != program.source.path)
    shown = {(file.path, row.number) for file in files for row in file.rows}
    counts = [row.counts for file in files for row in file.rows if row.counts is not None]
    return View(
        profile,
        tuple(files),
        counts_of(profile.lines),
        _largest(counts),
        tuple(fault for fault in profile.faults if (fault.file, fault.line) not in shown),
    )


def _definition(profile: Profile, program: Program) -> Kernel | None:
    """The kernel's definition; of specialisations and overloads, which share a name, the one that ran the most."""
    ran = [(line.file, line.line, line.instructions) for line in profile.lines]

    def share(kernel: Kernel) -> int:
        first, last = kernel.span.line, kernel.span.end_line
        return sum(count for file, line, count in ran if file == kernel.source.path and first <= line <= last)

    return max((k for k in program.defined_kernels if k.name == profile.kernel), key=share, default=None)


def _file(
    source: Source,
    lines: Mapping[tuple[str, int], Line],
    faults: Mapping[tuple[str, int], list[Fault]],
    span: tuple[int, int] | None,
) -> FileView:
    count = len(source.line_starts) - (not source.data or source.data.endswith(b"\n"))
    rows = []
    for number in range(1, count + 1):
        line = lines.get((source.path, number))
        counts = counts_of([line]) if line is not None else None
        rows.append(Row(number, source.line_text(number), line, counts, tuple(faults.get((source.path, number), ()))))
    marked = [row.number for row in rows if row.line is not None or row.faults] + list(span or ())
    return FileView(source.path, tuple(rows), min(marked), max(marked))


def counts_of(lines: Iterable[Line]) -> Counts:
    """The sum of some lines."""
    lines = list(lines)
    instructions = sum(line.instructions for line in lines)
    threads = sum(line.thread_instructions for line in lines)
    return Counts(
        instructions,
        threads / instructions if instructions else 0.0,
        _pair(lines, Space.GLOBAL),
        _pair(lines, Space.SHARED),
        _pair(lines, Space.LOCAL),
        sum(line.branches for line in lines),
        sum(line.divergent_branches for line in lines),
    )


def _pair(lines: Iterable[Line], space: Space) -> tuple[int, int | None] | None:
    traffic = [each for line in lines for each in line.of(space)]
    if space is Space.SHARED:
        pairs = [(t.wavefronts, t.ideal_wavefronts) for t in traffic if t.wavefronts is not None]
    else:
        pairs = [(t.sectors, t.ideal_sectors) for t in traffic if t.sectors is not None]
    if not pairs:
        return None
    ideals = [ideal for _, ideal in pairs if ideal is not None]
    return sum(got for got, _ in pairs if got is not None), sum(ideals) if len(ideals) == len(pairs) else None


def _largest(counts: Iterable[Counts]) -> Counts:
    counts = list(counts)

    def most(pairs: Iterable[tuple[int, int | None] | None]) -> tuple[int, int | None]:
        return max((pair[0] for pair in pairs if pair is not None), default=0), None

    return Counts(
        max((c.instructions for c in counts), default=0),
        32.0,
        most(c.global_sectors for c in counts),
        most(c.shared_wavefronts for c in counts),
        most(c.local_sectors for c in counts),
        max((c.branches for c in counts), default=0),
        max((c.divergent_branches for c in counts), default=0),
    )


def excess(pair: tuple[int, int | None] | None) -> float | None:
    """Transactions over the fewest possible; None where that is not known or there were none.

    >>> excess((64, 8)), excess((64, None)), excess(None)
    (8.0, None, None)
    """
    return pair[0] / pair[1] if pair is not None and pair[1] else None


def counts_words(counts: Counts, kind: InstructionSet) -> str:
    """`4,096 PTX instructions, 32.0 threads each; 64 global sectors (ideal 8); 2 of 64 branches divergent`."""
    threads = f"{counts.threads_per_instruction:.1f} threads each"
    parts = [f"{counts.instructions:,} {kind.value.upper()} instructions, {threads}"]
    for name, pair in (
        ("global sectors", counts.global_sectors),
        ("shared wavefronts", counts.shared_wavefronts),
        ("local sectors", counts.local_sectors),
    ):
        if pair is not None:
            fewest = f" (ideal {pair[1]:,})" if pair[1] is not None and pair[1] < pair[0] else ""
            parts.append(f"{pair[0]:,} {name}{fewest}")
    if counts.branches:
        parts.append(f"{counts.divergent_branches:,} of {counts.branches:,} branches divergent")
    return "; ".join(parts)


def made_by(profile: Profile) -> str:
    """Who counted, in words."""
    if profile.backend is Backend.EMULATOR:
        return "emulated: the compiler's PTX, run on the CPU"
    return f"measured: Nsight Compute{f' on {profile.device}' if profile.device else ''}"


def run_of(profile: Profile) -> str:
    """What was run, in words: `grid 4 x 1 x 1, block 256 x 1 x 1, n = 1000`."""
    launch = profile.launch
    parts = []
    if launch.grid is not None:
        parts.append(f"grid {dims_text(launch.grid)}")
    if launch.block is not None:
        parts.append(f"block {dims_text(launch.block)}")
    if launch.dynamic_shared_bytes:
        parts.append(f"{launch.dynamic_shared_bytes:,} bytes of dynamic shared memory")
    parts += [f"{name} = {size:,}" for name, size in launch.shape.items()]
    if not parts:
        parts.append("a launch that the table does not describe")
    source = {"launch": "the launch in the text", "inferred": "the kernel's text"}.get(launch.source, launch.source)
    return ", ".join(parts) + (f", from {source}" if source else "")


INSTRUCTIONS = {
    InstructionSet.PTX: (
        "PTX instructions, counted once for each warp that executes one. They are the compiler's intermediate code: "
        "the GPU runs the machine code made of it, so they are not to be compared with Nsight Compute's instructions."
    ),
    InstructionSet.SASS: "Machine instructions (SASS), counted once for each warp that executes one.",
}
BASES = {
    Basis.EMULATED: (
        "The compiler's PTX was run on the CPU, lane by lane, and its memory requests were counted. Machine code can "
        "merge, widen or drop requests that stand in the PTX."
    ),
    Basis.MEASURED: "Counted by the GPU's own counters and read by Nsight Compute.",
}
INPUTS = {
    Inputs.PROBLEM: "Made up for the kernel's problem: what depends on the values of arrays shows one case among many.",
    Inputs.APPLICATION: "The application's own.",
}


def fault_words(fault: Fault) -> str:
    """`out-of-bounds: Thread (3, 0, 0) of block (0, 0, 0) reads past the end of a. Met 12 times.`; of one that may come
    of what was guessed of the launch, that and what was guessed."""
    text = f"{fault.kind.value}: {fault.message}"
    if fault.count > 1:
        text += f" Met {fault.count:,} times."
    if fault.other is not None and fault.other.file != fault.file:
        text += f" The other access stands at {PurePath(fault.other.file).name}:{fault.other.line}."
    return f"{not_reconstructed(text.removesuffix('.'), fault.guessed)}." if fault.guessed else text


def faults_words(profile: Profile) -> str:
    """`2 faults`, or that the launch could not be reconstructed; "" for neither."""
    own = len(profile.own_faults)
    if own:
        return f"{own} fault{'s' if own != 1 else ''}"
    return NOT_RECONSTRUCTED if profile.faults else ""
