"""What Nsight Compute's tables say of a program, as the rows of a label file. labels/README.md describes the fields."""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

INSTRUCTION = re.compile(r"\s*(?P<guard>@!?U?P\w+\s+)?(?P<op>[A-Z][\w.]*)")
MEMORY = {"Global", "Shared", "Local"}
COLUMNS = {  # a label row's field: Nsight Compute's column
    "thr": "Avg. Predicated-On Threads Executed",
    "sec": "L2 Theoretical Sectors Global",
    "ideal": "L2 Theoretical Sectors Global Ideal",
    "wf": "L1 Wavefronts Shared",
    "wfi": "L1 Wavefronts Shared Ideal",
    "nway": "L1 Conflicts Shared N-Way",
    "div": "Divergent Branches",
}
LAUNCH_METRICS = {
    "Registers Per Thread",
    "Dynamic Shared Memory Per Block",
    "Static Shared Memory Per Block",
    "Block Limit Registers",
    "Block Limit Shared Mem",
    "Theoretical Occupancy",
}


def half(name: str) -> str:
    """`look` or `blind`: which half of the programs one belongs to, by the last bit of the SHA-256 of its name."""
    return "blind" if hashlib.sha256(name.encode()).digest()[-1] & 1 else "look"


def tables(report: Path) -> Iterator[tuple[str, str, int, dict[str, str]]]:
    """Rows of Nsight Compute's source page in CSV: (source file, function, line, columns) of each instruction.

    A table stands for one file and one function. A row with a line number and the line's sums comes before the rows of
    the line's instructions; gaps between those are rows of dots. An instruction stands under every line of its inline
    chain, and a report of several kernels repeats its rows.
    """
    file, function, line, columns = "", "", 0, [""]
    with report.open(newline="", errors="replace") as text:
        for row in csv.reader(text):
            if row[:1] == ["File Path"]:
                file = row[1]
            elif row[:1] == ["Function Name"]:
                function = row[1]
            elif row[:1] == ["Line No"]:
                columns = row
            elif row and row[0].isdigit():
                line = int(row[0])
            elif len(row) > 2 and row[2].startswith("0x"):
                yield file, function, line, dict(zip(columns[2:], row[2:], strict=False))


def counters(cells: dict[str, str]) -> dict[str, Any] | None:
    """One instruction's row of a label file without its place; None where it did not run, or is no access or branch.

    >>> cells = {"Source": "@!P0  STG.E.64 desc[UR6][R2.64], R8", "Instructions Executed": "4"}
    >>> cells |= {"Address Space": "Global", "Access Size": "64", "L2 Theoretical Sectors Global": "32"}
    >>> cells |= {"Avg. Predicated-On Threads Executed": "32"}
    >>> counters(cells)
    {'op': 'STG.E.64', 'inst': 4.0, 'thr': 32.0, 'space': 'Global', 'size': '64', 'sec': 32.0, 'pred': True}
    """
    found = INSTRUCTION.match(cells["Source"])
    executed = cells.get("Instructions Executed", "0")
    if found is None or not executed.replace(".", "").isdigit() or float(executed) == 0:
        return None
    space = cells.get("Address Space", "-")
    if space not in MEMORY and not found["op"].startswith(("BRA", "BRX")):
        return None
    row: dict[str, Any] = {"op": found["op"], "inst": float(executed), "thr": 0.0}
    if space in MEMORY:
        row |= {"space": space, "size": cells["Access Size"]}
    for name, column in COLUMNS.items():
        if column in cells:
            row[name] = float(cells[column]) if cells[column] not in ("", "-") else 0.0
    return row | ({"pred": True} if found["guard"] else {})


class Own:
    """The program's own source files, and which of several lines of an inline chain is the callee's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.text: dict[str, list[str]] = {}

    def name(self, file: str) -> str | None:
        """A path inside the program's folder, or None for a header of the toolkit.

        `file` is an absolute path of the machine that built the program.
        """
        parts = PurePosixPath(file).parts
        if self.folder.name not in parts:
            return None
        return "/".join(parts[parts.index(self.folder.name) + 1 :])

    def in_kernel(self, file: str, line: int) -> bool:
        """Whether the last function that begins above a line is a kernel."""
        if file not in self.text:
            path = self.folder / file
            self.text[file] = path.read_text(errors="replace").splitlines() if path.exists() else []
        for text in reversed(self.text[file][:line]):
            if mark := re.search(r"__global__|__device__", text):
                return mark[0] == "__global__"
        return False

    def callee(self, places: set[tuple[str, int]]) -> tuple[str, int]:
        """The innermost place of a chain of inlined calls: helpers before kernels, then what is declared first."""
        return min(places, key=lambda place: (self.in_kernel(*place), place[1], place[0]))


def blocks(report: Path, folder: Path) -> list[dict[str, Any]]:
    """The blocks of one program: each instruction once, at its innermost line in the program's own files."""
    own = Own(folder)
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    places: dict[tuple[str, str], set[tuple[str, int]]] = {}
    for file, function, line, cells in tables(report):
        key = function, cells["Address"]
        row, name = rows.get(key) or counters(cells), own.name(file)
        if row is not None and name is not None:
            rows[key] = row
            places.setdefault(key, set()).add((name, line))
    first: dict[str, int] = {}
    grouped: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for (function, address), row in rows.items():
        file, line = own.callee(places[function, address])
        first[function] = min(first.get(function, int(address, 16)), int(address, 16))
        grouped.setdefault((file, function), []).append({"line": line, "addr": int(address, 16)} | row)
    for (_, function), found in grouped.items():
        found.sort(key=lambda row: (row["line"], row["addr"]))
        for row in found:
            row["addr"] -= first[function]
    return [{"file": file, "fn": function, "rows": found} for (file, function), found in grouped.items()]


def launches(details: Path) -> list[dict[str, Any]]:
    """Shape, occupancy limits and fired rules of each profiled launch, from Nsight Compute's details page in CSV."""
    found: dict[str, dict[str, Any]] = {}
    with details.open(newline="", errors="replace") as text:
        for row in csv.DictReader(text):
            launch = found.setdefault(
                row["ID"],
                {"kernel": row["Kernel Name"], "block": row["Block Size"], "grid": row["Grid Size"], "rules": []},
            )
            if row["Metric Name"] in LAUNCH_METRICS:
                launch[row["Metric Name"]] = f"{row['Metric Value']} {row['Metric Unit']}".strip()
            if row.get("Rule Name") and row["Rule Name"] not in launch["rules"]:
                launch["rules"].append(row["Rule Name"])
    return list(found.values())
