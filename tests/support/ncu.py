"""Nsight Compute's source page in CSV, in the layout that `ncu --page source --print-source cuda,sass` prints."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

COLUMNS = (
    "Instructions Executed", "Thread Instructions Executed", "Predicated-On Thread Instructions Executed",
    "Avg. Threads Executed", "Avg. Predicated-On Threads Executed", "Divergent Branches", "Address Space",
    "Access Operation", "Access Size", "L1 Wavefronts Shared", "L1 Wavefronts Shared Ideal",
    "L2 Theoretical Sectors Global", "L2 Theoretical Sectors Global Ideal", "L2 Theoretical Sectors Local",
)  # fmt: skip
SHORT = {
    "inst": "Instructions Executed", "on": "Predicated-On Thread Instructions Executed", "div": "Divergent Branches",
    "space": "Address Space", "op": "Access Operation", "bits": "Access Size", "wf": "L1 Wavefronts Shared",
    "wfi": "L1 Wavefronts Shared Ideal", "sec": "L2 Theoretical Sectors Global",
    "ideal": "L2 Theoretical Sectors Global Ideal", "loc": "L2 Theoretical Sectors Local",
}  # fmt: skip

Instruction = tuple[str, str, Mapping[str, object]]
"""(address, SASS, cells by their short names)"""


def source_page(
    path: str | Path,
    text: str,
    lines: Mapping[int, Sequence[Instruction]],
    function: str,
    shown: bool = True,
) -> str:
    """The table of one file and function: each line with its text, then its instructions. `shown` is false for a report
    without the source."""
    out = io.StringIO()
    write = csv.writer(out, quoting=csv.QUOTE_ALL).writerow
    write(["File Path", str(path)])
    write(["Function Name", function])
    write(["Line No", "Source", "Address", "Source", *COLUMNS])
    texts = text.splitlines()
    for number, instructions in lines.items():
        write([number, texts[number - 1].strip() if shown else "", "-", "-", *["0"] * len(COLUMNS)])
        for address, sass, cells in instructions:
            given = {SHORT[name]: value for name, value in cells.items()}
            write(["", "", address, sass, *(given.get(column, _default(column)) for column in COLUMNS)])
        write(["", "", "...", "...", *["-"] * len(COLUMNS)])
    return out.getvalue()


def _default(column: str) -> str:
    return "-" if column.startswith(("Address", "Access")) else "0"


def line_of(text: str, part: str) -> int:
    """The 1-based number of the first line that holds `part`."""
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


def joined(pages: Iterable[str]) -> str:
    return "".join(pages)
