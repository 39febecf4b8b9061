"""What Nsight Compute's command line prints of a report in CSV, row by row and instruction by instruction.

The source page (`ncu --import X --page source --csv --print-source cuda,sass`) is a run of tables, one for a source
file and a function:

    "File Path","/home/me/a.cu"
    "Function Name","copy(float *, const float *, int)"
    "Line No","Source","Address","Source","Instructions Executed",...
    "7","out[i] = in[i * n];","-","-","64",...                                    a line and its sums
    "","","0x7fe1af7a0120","      LDG.E R4, desc[UR4][R2.64]","32",...            its instructions
    "","","...","...","-",...                                                     a gap between them

An instruction stands under every line of its chain of inlined calls, and a report of several kernels repeats its rows.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

EXPORT = "ncu --import REPORT --page source --csv --print-source cuda,sass"
UNREADABLE_SOURCE = "<Unable to open source file>"
_DEVICE_FUNCTION = re.compile(r"__global__|__device__")


class NcuError(Exception):
    """A report or a table that cannot be read; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class LineRow:
    """One source line of a table: its text as the report has it, stripped."""

    file: str
    function: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class InstructionRow:
    """One instruction under one line. `cells` are the columns by name, `Address` and `Source` (SASS) among them."""

    file: str
    function: str
    line: int
    cells: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Instruction:
    """One machine instruction. `places` are the lines of its chain of inlined calls, by the report's paths."""

    function: str
    address: int
    cells: Mapping[str, str]
    places: tuple[tuple[str, int], ...]


def table_rows(table: Path) -> Iterator[LineRow | InstructionRow]:
    """The rows of a source page, in its order. Raises NcuError, also where a file is no such page."""
    file, function, line, columns = "", "", 0, [""]
    found = False
    with table.open(newline="", encoding="utf-8-sig", errors="replace") as text:
        try:
            for row in csv.reader(text):
                if row[:1] == ["File Path"]:
                    file = row[1]
                elif row[:1] == ["Function Name"]:
                    function = row[1]
                elif row[:1] == ["Line No"]:
                    columns, found = row, True
                elif not found or len(row) < 3:
                    continue
                elif row[0].isdigit():
                    line = int(row[0])
                    yield LineRow(file, function, line, row[1].strip())
                elif row[2].startswith("0x"):
                    yield InstructionRow(file, function, line, dict(zip(columns[2:], row[2:], strict=False)))
        except (csv.Error, IndexError) as error:
            raise NcuError(f"{table} is not a table of Nsight Compute's ({error}).") from None
    if not found:
        raise NcuError(
            f"{table} is not Nsight Compute's source page with source lines: compile with -lineinfo, profile with "
            f"--section SourceCounters, and export with `{EXPORT}`."
        )


def instructions(rows: Iterator[LineRow | InstructionRow]) -> list[Instruction]:
    """Each instruction of a source page once, in the order in which they first stand there. Raises NcuError."""
    cells: dict[tuple[str, int], Mapping[str, str]] = {}
    places: dict[tuple[str, int], dict[tuple[str, int], None]] = {}
    for row in rows:
        if isinstance(row, InstructionRow):
            try:
                key = row.function, int(row.cells["Address"], 16)
            except (KeyError, ValueError):
                raise NcuError("The table has an instruction without an address: it is damaged.") from None
            cells.setdefault(key, row.cells)
            places.setdefault(key, {})[row.file, row.line] = None
    return [Instruction(*key, each, tuple(places[key])) for key, each in cells.items()]


def innermost(places: Collection[tuple[str, int]], in_kernel: Callable[[str, int], bool]) -> tuple[str, int]:
    """The callee's place of a chain of inlined calls: helpers before kernels, then what is declared first.

    >>> innermost([("a.cu", 30), ("a.cu", 9), ("a.cu", 12)], lambda file, line: line == 30)
    ('a.cu', 9)
    """
    return min(places, key=lambda place: (in_kernel(*place), place[1], place[0]))


def in_kernel(lines: list[str], line: int) -> bool:
    """Whether the last function that begins above a 1-based line is a kernel.

    >>> in_kernel(["__device__ int f()", "{ }", "__global__ void k()", "{", "}"], 4)
    True
    """
    for text in reversed(lines[:line]):
        if mark := _DEVICE_FUNCTION.search(text):
            return mark[0] == "__global__"
    return False


def count(cells: Mapping[str, str], column: str) -> int:
    """A whole number in a cell; 0 where the column is absent, empty or a dash. Raises NcuError.

    >>> count({"a": "1,024", "b": "-", "c": "12.0"}, "a"), count({"b": "-"}, "b"), count({"c": "12.0"}, "c")
    (1024, 0, 12)
    """
    text = cells.get(column, "").replace(",", "")
    if text in ("", "-"):
        return 0
    try:
        number = int(float(text))
    except (ValueError, OverflowError):
        number = -1
    if number < 0:
        raise NcuError(f"The table has '{text}' under {column}, which is not a count.")
    return number


@dataclass(frozen=True, slots=True)
class LaunchRow:
    """One profiled launch of a report. `kernel` is its function as Nsight Compute spells it."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared_bytes: int


_DYNAMIC = "Dynamic Shared Memory Per Block"
_BYTES = {"byte": 1, "Kbyte": 1000, "Mbyte": 1000_000}


def launch_rows(table: Path) -> list[LaunchRow]:
    """The launches of a details page (`ncu --import X --page details --csv`), in their order. Raises NcuError."""
    found: dict[str, tuple[str, tuple[int, int, int], tuple[int, int, int]]] = {}
    shared: dict[str, int] = {}
    with table.open(newline="", encoding="utf-8-sig", errors="replace") as text:
        try:
            for row in csv.DictReader(text):
                key = row["ID"]
                if key not in found:
                    found[key] = row["Kernel Name"], _three(row["Grid Size"]), _three(row["Block Size"])
                if row.get("Metric Name") == _DYNAMIC:
                    unit = _BYTES.get((row.get("Metric Unit") or "").partition("/")[0], 1)
                    shared[key] = round(float((row["Metric Value"] or "0").replace(",", "")) * unit)
        except (csv.Error, KeyError, TypeError, ValueError) as error:
            raise NcuError(f"{table} is not Nsight Compute's details page ({error}).") from None
    return [LaunchRow(*launch, shared.get(key, 0)) for key, launch in found.items()]


def _three(text: str) -> tuple[int, int, int]:
    x, y, z = (int(number) for number in re.findall(r"\d+", text))
    return x, y, z


def kernel_of(function: str) -> str:
    """The plain name of a kernel from its function as Nsight Compute spells it.

    >>> kernel_of("void ns::scale<float, (int)4>(T1 *, const ns::V<T1> *)"), kernel_of("copy(float *, int)")
    ('scale', 'copy')
    >>> kernel_of("void <unnamed>::tail<ns::A<(bool)1>>(int (*)(int))"), kernel_of("_Z4copyPf"), kernel_of("k")
    ('tail', '_Z4copyPf', 'k')
    """
    depth, plain = 0, ""
    for at, letter in enumerate(function):
        if letter == "(" and not depth and not function.startswith("(anonymous namespace)", at):
            break
        depth += (letter == "<") - (letter == ">")
        if not depth and letter != ">":
            plain += letter
    return plain.rpartition("::")[2].rpartition(" ")[2].strip() or function
