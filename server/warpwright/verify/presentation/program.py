"""What the program's own test said, with the times of both sides."""

from __future__ import annotations

from statistics import median

from warpwright.verify.presentation.blocks import Cell, Json, Section, Table, Tone, cells
from warpwright.verify.report import ProgramStatus

_TONES: dict[str, Tone] = {ProgramStatus.SAME: "good", ProgramStatus.DIFFERS: "bad", ProgramStatus.NOT_RUN: "warn"}


def program_section(report: Json) -> Section | None:
    """None where the project names no test."""
    program = report.get("program")
    if program is None:
        return None
    said = program["reason"] or f"The same {program['compared']}: `{program['run']}`."
    blocks: list[Cell | Table] = [Cell(said, _TONES[program["status"]])]
    sides = [(name, program[name]) for name in ("original", "candidate") if program[name]]
    if sides:
        rows = [("exit status", [str(side["exit_status"]) for _, side in sides])]
        rows += [("a run (median)", [f"{median(side['seconds']):.2f} s" for _, side in sides])]
        rows += [("runs", [str(len(side["seconds"])) for _, side in sides])]
        if program["build"]:
            rows += [("its build", [f"{side['build_seconds']:.1f} s" for _, side in sides])]
        head = ("", *(name for name, _ in sides))
        blocks.append(Table(head, tuple(cells(name, *values) for name, values in rows)))
    return Section("The program's own test", tuple(blocks))
