"""Profiles from Nsight Compute's tables: machine instructions added up at the source lines that they come from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from warpwright.facts.line_sums import LineSum
from warpwright.facts.model import AccessKind, Space
from warpwright.facts.profile import Backend, Inputs, InstructionSet, Profile, ProfiledLaunch, Traffic, text_hash
from warpwright.syntax.encoding import shown_bytes
from warpwright.toolchain.ncu_tables import (
    UNREADABLE_SOURCE,
    Instruction,
    LaunchRow,
    LineRow,
    NcuError,
    count,
    in_kernel,
    innermost,
    instructions,
    kernel_of,
    table_rows,
)
from warpwright.toolchain.opcodes import MemoryUse, memory_uses, width_of

_SASS = re.compile(r"\s*(?P<guard>@!?U?P\w+\s+)?(?P<op>[A-Z]\w*)(?P<suffix>[\w.]*)")
_SPACES = {"Global": Space.GLOBAL, "Shared": Space.SHARED, "Local": Space.LOCAL}
NOTABLE_SHARE = 1.0
"""Percent of the instructions that stand in other files from which it is said."""
_TOOLKIT = re.compile(r"[\\/](?:cuda[^\\/]*|nvidia)[\\/](?:.*[\\/])?include[\\/]")
_CAST = re.compile(r"\([\w: ]+\)(?=-?\d)")


def profiles_of(
    table: Path,
    texts: Mapping[str, bytes],
    kernels: Iterable[str],
    launches: Sequence[LaunchRow] = (),
    source: str = "",
    device: str = "",
) -> list[Profile]:
    """The profiles that a source page in CSV holds of some kernels, the one with the most instructions first.

    `texts` are the program's files by path, the one asked for first; what stands in other files (the toolkit's headers)
    is counted at the line that calls it. `launches` are the report's own, empty where only the table is at hand. Raises
    NcuError, also where the table is of another text than this one.
    """
    wanted = set(kernels)
    rows = [row for row in table_rows(table) if kernel_of(row.function) in wanted]
    if not rows:
        raise NcuError(f"{table} holds none of the kernels {', '.join(sorted(wanted))}.")
    own = _own_files([row for row in rows if isinstance(row, LineRow)], texts, table)
    by_function: dict[str, list[Instruction]] = {}
    for each in instructions(iter(rows)):
        by_function.setdefault(each.function, []).append(each)
    found = [
        _profile(function, each, own, texts, launches, ProfiledLaunch(None, None, None, source=source), device)
        for function, each in by_function.items()
    ]
    return sorted(found, key=lambda profile: -sum(line.instructions for line in profile.lines))


@dataclass(frozen=True, slots=True)
class _Own:
    """A report's files that are the program's: by the report's path, the program's. `checked`: the texts agree."""

    paths: Mapping[str, str]
    checked: bool


def _own_files(rows: Sequence[LineRow], texts: Mapping[str, bytes], table: Path) -> _Own:
    """Which file of a report is which of the program's: of one name, and with the text that the report shows.

    Raises NcuError where a report's text differs from that of every file of its name. A header of the toolkit may have
    the name of the program's.
    """
    lines = {path: shown_bytes(data).splitlines() for path, data in texts.items()}
    paths: dict[str, str] = {}
    differing: list[tuple[str, LineRow]] = []
    checked = False
    for file in dict.fromkeys(row.file for row in rows if not _TOOLKIT.search(row.file)):
        shown = [row for row in rows if row.file == file and row.text not in ("", UNREADABLE_SOURCE)]
        for path in sorted((p for p in texts if _name(p) == _name(file)), key=lambda p: -_shared_parts(p, file)):
            other = next((row for row in shown if not _says(lines[path], row)), None)
            if other is None:
                paths[file] = path
                checked = checked or bool(shown)
                break
            differing.append((path, other))
    for path, row in differing:
        if row.file not in paths:
            raise NcuError(
                f"{table} was made of another text than {path} has now: its line {row.line} was `{row.text}`. "
                "Profile the present text."
            )
    if not paths:
        seen = ", ".join(sorted({_name(row.file) for row in rows}))
        raise NcuError(f"{table} covers other files than the one asked for: {seen}.")
    return _Own(paths, checked)


def _says(lines: Sequence[str], row: LineRow) -> bool:
    """Whether a line of a text is what the report shows there.

    Nsight Compute does not escape a cell's quotes, so that of a line with quotes only the beginning may be read.
    """
    if not 1 <= row.line <= len(lines):
        return False
    line, shown = (text.replace('"', "").split() for text in (lines[row.line - 1], row.text))
    return line == shown or ('"' in lines[row.line - 1] and "".join(line).startswith("".join(shown)))


def _parts(path: str) -> list[str]:
    return re.split(r"[\\/]+", path)


def _name(path: str) -> str:
    return _parts(path)[-1]


def _shared_parts(a: str, b: str) -> int:
    """How many of the last parts of two paths are the same."""
    same = 0
    for mine, other in zip(reversed(_parts(a)), reversed(_parts(b)), strict=False):
        if mine != other:
            break
        same += 1
    return same


def _add(total: LineSum, cells: Mapping[str, str]) -> None:
    """Add one instruction to its line."""
    executed = _executed(cells)
    total.instructions += executed
    total.thread_instructions += _threads(cells)
    sass = _SASS.match(cells.get("Source", ""))
    if sass is not None and (sass["op"] == "BRX" or (sass["op"] == "BRA" and sass["guard"])):
        total.branches += executed
        total.divergent_branches += count(cells, "Divergent Branches")
    for each in traffic_of(cells):
        total.add(each)


def _executed(cells: Mapping[str, str]) -> int:
    return count(cells, "Instructions Executed")


def _threads(cells: Mapping[str, str]) -> int:
    return count(cells, "Predicated-On Thread Instructions Executed")


def traffic_of(cells: Mapping[str, str]) -> Iterator[Traffic]:
    """What one instruction did to memory. `cp.async` (LDGSTS) reads global and writes shared memory."""
    sass = _SASS.match(cells.get("Source", ""))
    if sass is None:
        return
    op, executed, threads = sass["op"], _executed(cells), _threads(cells)
    told = _SPACES.get(cells.get("Address Space", ""))
    known = next(iter(memory_uses(op)), None)
    if told is None and (known is None or not _is_followed(known) or cells.get("Address Space") == "-"):
        return
    space = told or (known.space if known else None) or Space.GLOBAL
    kind = known.kind if known else AccessKind.STORE if op.startswith("ST") else AccessKind.LOAD
    if op.startswith(("ATOM", "RED")):
        kind = AccessKind.ATOMIC
    size = count(cells, "Access Size") // 8 or width_of(op + sass["suffix"])
    base = Traffic(space, kind, size, executed, threads)
    match space:
        case Space.GLOBAL:
            yield replace(
                base,
                sectors=count(cells, "L2 Theoretical Sectors Global"),
                ideal_sectors=count(cells, "L2 Theoretical Sectors Global Ideal"),
            )
        case Space.LOCAL:
            yield replace(base, sectors=count(cells, "L2 Theoretical Sectors Local"))
        case _:
            yield _shared(base, cells)
    if op == "LDGSTS":
        yield _shared(replace(base, space=Space.SHARED, kind=AccessKind.STORE), cells)


def _is_followed(use: MemoryUse) -> bool:
    """Whether an access is counted where no lane was ever on, so that the table names no space. A generic atomic is
    taken to be to global memory."""
    return use.space not in (None, Space.CONSTANT) or use.kind is AccessKind.ATOMIC


def _shared(base: Traffic, cells: Mapping[str, str]) -> Traffic:
    got, ideal = count(cells, "L1 Wavefronts Shared"), count(cells, "L1 Wavefronts Shared Ideal")
    return replace(base, wavefronts=got, ideal_wavefronts=ideal)


def _profile(
    function: str,
    executed: Sequence[Instruction],
    own: _Own,
    texts: Mapping[str, bytes],
    launches: Sequence[LaunchRow],
    launch: ProfiledLaunch,
    device: str,
) -> Profile:
    lines = {path: shown_bytes(data).splitlines() for path, data in texts.items()}
    sums: dict[tuple[str, int], LineSum] = {}
    elsewhere = 0
    for each in executed:
        if not _executed(each.cells):
            continue
        places = {(own.paths[file], line) for file, line in each.places if file in own.paths and line}
        if not places:
            elsewhere += _executed(each.cells)
            continue
        place = innermost(places, lambda file, line: in_kernel(lines[file], line))
        _add(sums.setdefault(place, LineSum()), each.cells)
    ordered = sorted(sums.items(), key=lambda item: item[0])
    counted = tuple(total.line(*place, InstructionSet.SASS) for place, total in ordered)
    notes = []
    share = 100 * elsewhere / (elsewhere + sum(line.instructions for line in counted)) if elsewhere else 0.0
    if share >= NOTABLE_SHARE:
        notes.append(f"{share:.0f} % of the instructions stand at no line of these files.")
    if not own.checked:
        notes.append("The report holds no source text, so that it is not known whether it is of the present one.")
    mine = [each for each in launches if _plain(each.kernel) == _plain(function)]
    namesakes = [each for each in launches if kernel_of(each.kernel) == kernel_of(function)]
    mine = mine or (namesakes if len(namesakes) == 1 else [])
    if mine:
        first = mine[0]
        launch = replace(launch, grid=first.grid, block=first.block, dynamic_shared_bytes=first.dynamic_shared_bytes)
    if len(mine) > 1:
        notes.append(f"The report holds {len(mine)} launches of this kernel; these are the counts of the first.")
    spoken = {path: text_hash(data) for path, data in texts.items()}
    return Profile(
        kernel=kernel_of(function),
        launch=launch,
        backend=Backend.NCU,
        texts=spoken if own.checked else {},
        lines=counted,
        notes=tuple(notes),
        device=device,
        function=function,
        inputs=Inputs.APPLICATION,
    )


def _plain(function: str) -> str:
    """A function's name without what one page writes and another does not: casts of template arguments, spaces.

    >>> _plain("void k<float, (int)256>(T1 *)") == _plain("void k<float, 256>(T1*)")
    True
    """
    return "".join(_CAST.sub("", function).split())
