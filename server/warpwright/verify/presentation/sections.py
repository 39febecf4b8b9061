"""A verification report for people: what was run, how, and how sure it is. Made from the report's JSON."""

from __future__ import annotations

from warpwright.verify.presentation.blocks import Cell, Json, Section, Tone
from warpwright.verify.presentation.compared import compared_section
from warpwright.verify.presentation.compiled import changes, compiled_section
from warpwright.verify.presentation.conditions import (
    conditions_section,
    notes_section,
    unchecked_section,
    uncovered_section,
)
from warpwright.verify.presentation.ladder import ladder
from warpwright.verify.presentation.program import program_section
from warpwright.verify.presentation.timed import limits_section, timed_section
from warpwright.verify.report import Status

_GOOD = (Status.FASTER, Status.CORRECT)
_BAD = (Status.WRONG, Status.UNSAFE, Status.DOES_NOT_COMPILE, Status.SLOWER, Status.TIMEOUT)


def headline(report: Json) -> Cell:
    """The verdict in a few words."""
    status = report["status"]
    tone: Tone = "good" if status in _GOOD else "bad" if status in _BAD else "warn"
    return Cell(report["badge"], tone)


def coverage(report: Json) -> Cell | None:
    """What of the program the verdict holds for, below the headline; None where nothing is left to say."""
    return Cell(report["coverage"], "warn") if report.get("coverage") else None


def sections(report: Json) -> list[Section]:
    """All of it, the ladder first; what there is nothing to say of is left out."""
    made = [
        ladder(report),
        uncovered_section(report),
        compiled_section(report),
        compared_section(report),
        timed_section(report),
        limits_section(report),
        program_section(report),
        notes_section(report),
        unchecked_section(report),
        conditions_section(report),
    ]
    return [section for section in made if section is not None]


def summary(report: Json) -> list[Section]:
    """The ladder, and what the compiler made otherwise: for one of several candidates."""
    changed = changes(report)
    return [ladder(report), *([Section("", (Cell(changed),))] if changed else [])]
