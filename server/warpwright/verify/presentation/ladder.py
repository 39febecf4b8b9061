"""The ladder: each rung, whether the candidate reached it, and what was done there."""

from __future__ import annotations

from collections.abc import Iterator

from warpwright.verify.presentation.blocks import JUDGES, Cell, Json, Section, Table, Tone, count
from warpwright.verify.presentation.compared import is_change
from warpwright.verify.report import UNTIMED, Level, Status


def ladder(report: Json) -> Section:
    rows = tuple(_row(report, level) for level in Level)
    return Section("", (Table(("", "", ""), rows, frozenset({0, 1, 2})),))


def _row(report: Json, level: Level) -> tuple[Cell, Cell, Cell]:
    if str(level) in report["levels"]:
        mark, tone = "yes", "good"
    else:
        mark, tone = ("no", "bad") if _failed_at(report, level) else ("-", "dim")
        tone = "warn" if level is Level.FASTER and report["status"] == Status.INCONCLUSIVE else tone
    return Cell(str(level)), Cell(mark, _tone(tone)), Cell("; ".join(_done(report, level)))


def _tone(name: str) -> Tone:
    return "good" if name == "good" else "bad" if name == "bad" else "warn" if name == "warn" else "dim"


def _failed_at(report: Json, level: Level) -> bool:
    """Whether the candidate was tried on this rung and did not hold."""
    status, reached = report["status"], report["levels"]
    match level:
        case Level.PARSED:
            return status == Status.DOES_NOT_COMPILE and not reached
        case Level.COMPILED:
            return bool(reached) and status in (Status.DOES_NOT_COMPILE, Status.TIMEOUT) and not report["compile"]
        case Level.ANALYSED:
            return bool(report["new_findings"]) or report["finding_gone"] is False
        case Level.CORRECT:
            tried = bool(report["cases"]) or report["compile"] is not None
            return tried and status in (Status.WRONG, Status.UNSAFE, Status.TIMEOUT)
        case Level.FASTER:
            return status in (Status.SLOWER, Status.INCONCLUSIVE)


def _done(report: Json, level: Level) -> Iterator[str]:
    reached = str(level) in report["levels"]
    match level:
        case Level.PARSED:
            alone = report.get("goal") == "formula"
            old = "the formula is read and written" if alone else "no syntax error that the original has not"
            yield old if reached else "a new syntax error"
        case Level.COMPILED:
            yield from _compiled(report)
        case Level.ANALYSED:
            yield from _analysed(report)
        case Level.CORRECT:
            yield from _compared(report)
        case Level.FASTER:
            yield from _timed(report)


def _compiled(report: Json) -> Iterator[str]:
    compiled = report["compile"]
    if compiled is None:
        if str(Level.COMPILED) in report["levels"]:
            yield "the whole file" if report.get("goal") == "formula" else "both whole files"
        elif report["levels"]:
            yield {Status.NOT_RUN: "not compiled", Status.TIMEOUT: "it did not end"}.get(report["status"], "refused")
        return
    options = " ".join(compiled["flags"]) or "no further options"
    origin = f" (from {compiled['flags_from']})" if compiled.get("flags_from") else ""
    yield f"{compiled['compiler']} for {compiled['arch']}, both whole files, {options}{origin}"


def _analysed(report: Json) -> Iterator[str]:
    if str(Level.COMPILED) not in report["levels"] or report.get("goal") == "formula":
        return
    if report["finding_gone"] is not None:
        yield "the finding is gone" if report["finding_gone"] else "the finding is still there"
    new = report["new_findings"]
    yield f"new: {new[0]['rule']} at line {new[0]['line']}" if new else "no new warning or error"


_FAILED = {Status.TIMEOUT: "it does not end", Status.UNSAFE: "it fails when it runs", Status.WRONG: "it cannot be run"}


def _compared(report: Json) -> Iterator[str]:
    cases = report["cases"]
    if not cases:
        if _failed_at(report, Level.CORRECT):
            yield _FAILED[report["status"]]
        return
    if "launches" in cases[0]:
        right = sum(case["ok"] for case in cases)
        yield f"{right} of {count(len(cases), 'run')} of the host code launch the same, in the same order"
        return
    shapes = len({tuple(case["shape"].items()) for case in cases})
    kinds = len({case["distribution"] for case in cases if not is_change(case)})
    judge = JUDGES.get(report["environment"].get("judge", ""), "the original")
    right = sum(case["ok"] for case in cases)
    tried = f"{count(shapes, 'shape')}, {count(kinds, 'kind')} of values"
    yield f"{right} of {count(len(cases), 'comparison')} with {judge} hold: {tried}"


def _timed(report: Json) -> Iterator[str]:
    speed = report["speed"]
    if speed and report.get("goal") == "reference":
        yield f"timed at {count(len(speed), 'shape')}; there is nothing to be faster than"
    elif speed:
        rounds = [each["rounds"] for each in speed if "rounds" in each]
        least = f", {min(rounds)} rounds or more each" if rounds else ""
        yield f"{count(len(speed), 'shape')}, interleaved with the original{least}"
    elif report["backend"] in UNTIMED and report["cases"]:
        yield f"not timed: the {report['backend']} times nothing"
    elif str(Level.CORRECT) in report["levels"]:
        yield "not timed: it was not asked to be faster" if report.get("goal") == "fix" else "not timed"
