"""What a kernel command found, as a page that a person reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from warpwright.editor.markdown import code, number, prose

_DONE = {"speed": "Optimize", "memory": "Reduce memory of", "fix": "Fix"}


def outcome_report(outcome: Mapping[str, Any], path: str) -> str:
    """The result of `optimize` as Markdown: the model's plan and words, each candidate, its verdict and its diff."""
    return "\n".join(_lines(outcome, path)) + "\n"


def outcome_summary(outcome: Mapping[str, Any], badge: str) -> str:
    """One sentence for the user when the command ends.

    >>> outcome_summary({"kernel": "k", "candidates": [], "best": None, "reason": "No rewrite applies."}, "")
    'k: No rewrite applies.'
    """
    kernel = outcome["kernel"]
    candidates = outcome["candidates"]
    if outcome["best"] is not None:
        names = ", ".join(candidates[outcome["best"]]["rewrites"])
        return f"{kernel}: {names} ({badge})"
    return f"{kernel}: {outcome['reason']}"


def _lines(outcome: Mapping[str, Any], path: str) -> Iterator[str]:
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
    for index, candidate in enumerate(outcome["candidates"]):
        chosen = " (chosen)" if index == outcome["best"] else ""
        yield f"\n## {', '.join(code(name) for name in candidate['rewrites'])}{chosen}\n"
        yield from (f"{prose(explanation)}\n" for explanation in candidate["explanations"])
        report = candidate["report"]
        not_timed = ", not timed" if report["status"] == "correct" and not report.get("speed") else ""
        yield f"Verdict: **{report['status']}** on {report.get('backend', 'none')}{not_timed}"
        if report.get("reason"):
            yield f"\n{prose(report['reason'])}"
        yield ""
        yield from _compile_lines(report.get("compile") or {})
        yield from _fenced(candidate.get("diff") or "", "diff")
    if outcome["reason"]:
        yield f"\n## Result\n\n{prose(outcome['reason'])}"
    if outcome["declined"]:
        yield "\n## What does not apply\n"
        yield from (f"- {code(declined['rewrite'])}: {prose(declined['reason'])}" for declined in outcome["declined"])


def _compile_lines(compiled: Mapping[str, Any]) -> Iterator[str]:
    figures = [(name.replace("_", " "), value) for name, value in compiled.items() if isinstance(value, int | float)]
    if figures:
        yield from ("| Compiled | |", "|---|---|")
        yield from (f"| {name} | {number(value)} |" for name, value in figures if not isinstance(value, bool))
        yield ""


def _fenced(text: str, language: str) -> Iterator[str]:
    fence = "```"
    while fence in text:
        fence += "`"
    yield f"{fence}{language}"
    yield text.rstrip("\n")
    yield fence
