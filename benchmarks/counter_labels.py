"""What Nsight Compute's tables say of a program, as the rows of a label file. labels/README.md describes the fields."""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from warpwright.toolchain.ncu_tables import in_kernel, innermost, instructions, table_rows

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


def counters(cells: Mapping[str, str]) -> dict[str, Any] | None:
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
    """The program's own source files."""

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
        if file not in self.text:
            path = self.folder / file
            self.text[file] = path.read_text(errors="replace").splitlines() if path.exists() else []
        return in_kernel(self.text[file], line)


def blocks(report: Path, folder: Path) -> list[dict[str, Any]]:
    """The blocks of one program: each instruction once, at its innermost line in the program's own files."""
    own = Own(folder)
    first: dict[str, int] = {}
    grouped: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for each in instructions(table_rows(report)):
        row = counters(each.cells)
        places = {(name, line) for file, line in each.places if (name := own.name(file)) is not None}
        if row is None or not places:
            continue
        file, line = innermost(places, own.in_kernel)
        first[each.function] = min(first.get(each.function, each.address), each.address)
        grouped.setdefault((file, each.function), []).append({"line": line, "addr": each.address} | row)
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
