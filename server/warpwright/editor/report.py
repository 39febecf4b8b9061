"""What verification and a kernel command found, as a page of Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from warpwright.editor.markdown import code, prose
from warpwright.rules.words import number
from warpwright.verify.presentation.blocks import Cell, Section, Table
from warpwright.verify.presentation.sections import coverage, headline, sections, summary
from warpwright.verify.presentation.several import overview

_DONE = {"speed": "Optimize", "memory": "Reduce memory of", "fix": "Fix", "fixAll": "Fix all", "generate": "Generate"}
_MARKS = {"good": "✓ ", "bad": "✗ ", "warn": "! "}

Json = Mapping[str, Any]


def report_page(report: Json, files: str) -> str:
    """A verification report; `files` says what was verified."""
    title = code(report["kernel"]) or "A candidate"
    return (
        "\n".join([f"# {title}: {prose(report['badge'])}", "", prose(files), "", *_report(report, whole=True)]) + "\n"
    )


def overview_page(what: str, reports: Sequence[tuple[str, Json]]) -> str:
    """Several reports at a glance."""
    return "\n".join(_section(overview(what, reports))) + "\n"


def outcome_report(outcome: Json, path: str) -> str:
    """The result of `optimize`: the model's plan and words, each candidate, its verdict and its diff."""
    return "\n".join(_lines(outcome, path)) + "\n"


def _lines(outcome: Json, path: str) -> Iterator[str]:
    yield f"# {_DONE.get(outcome['goal'], outcome['goal'])} {code(outcome['kernel'])}"
    yield ""
    yield prose(path)
    yield ""
    yield "## Plan"
    yield ""
    plan = outcome.get("plan")
    if plan:
        yield prose(plan["analysis"])
        yield ""
        yield from (f"1. {code(name)}" for name in plan["optimizations"])
        if plan.get("estimated_speedup") is not None:
            yield f"\nThe model expects {number(plan['estimated_speedup'])}x; that is its guess, not a measurement."
        yield "\nThe model's own words:\n"
        yield from _fenced(plan["raw"], "json")
    else:
        yield prose(outcome.get("plan_missing") or "There is no plan: no model was asked.")
    if len(outcome["candidates"]) > 1:
        tried = [(", ".join(each["rewrites"]), each["report"]) for each in outcome["candidates"]]
        yield ""
        yield from _section(overview("candidate", tried))
    for index, candidate in enumerate(outcome["candidates"]):
        chosen = index == outcome["best"]
        yield f"\n## {', '.join(code(name) for name in candidate['rewrites'])}{' (chosen)' if chosen else ''}\n"
        yield from (f"{prose(explanation)}\n" for explanation in candidate["explanations"])
        yield from _report(candidate["report"], whole=chosen)
        yield from _fenced(candidate.get("diff") or "", "diff")
    if outcome["reason"]:
        yield f"\n## Result\n\n{prose(outcome['reason'])}"
    if outcome["declined"]:
        yield "\n## What does not apply\n"
        yield from (f"- {code(declined['rewrite'])}: {prose(declined['reason'])}" for declined in outcome["declined"])


def _report(report: Json, *, whole: bool) -> Iterator[str]:
    said = headline(report)
    yield f"{_MARKS.get(said.tone, '')}**{prose(said.text)}**"
    yield ""
    if covered := coverage(report):
        yield prose(covered.text)
        yield ""
    if report["reason"]:
        yield prose(report["reason"])
        yield ""
    for section in sections(report) if whole else summary(report):
        yield from _section(section)


def _section(section: Section) -> Iterator[str]:
    if section.title:
        yield f"### {section.title}"
        yield ""
    for block in section.blocks:
        if isinstance(block, Table):
            yield from _table(block)
        else:
            yield prose(block.text)
        yield ""


def _table(table: Table) -> Iterator[str]:
    yield _row([code(name) if "  " in name else prose(name) for name in table.head])
    yield _row([":--" if number in table.left else "--:" for number in range(len(table.head))])
    yield from (_row([_cell(cell) for cell in row]) for row in table.rows)


def _row(texts: list[str]) -> str:
    return f"| {' | '.join(texts)} |"


def _cell(cell: Cell) -> str:
    if cell.drawn:  # spaces in the middle of a code span are kept, where a bar would end the cell
        return f"`{cell.text.replace(' ', NO_BREAK).replace('|', '¦')}`"
    return prose(cell.text)


NO_BREAK = "\N{NO-BREAK SPACE}"


def _fenced(text: str, language: str) -> Iterator[str]:
    fence = "```"
    while fence in text:
        fence += "`"
    yield f"{fence}{language}"
    yield text.rstrip("\n")
    yield fence
