"""What Verify found out, as a page that a person reads and as one sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from warpwright.editor.markdown import code, number, prose

_MOST_CASES = 40


def verified_page(answer: Mapping[str, Any], path: str) -> str:
    """The answer of the job "verify" as Markdown: each comparison with what was run, and what could not be."""
    return "\n".join(_lines(answer, path)) + "\n"


def verified_sentence(answer: Mapping[str, Any]) -> str:
    """
    >>> verified_sentence({"kernel": "k", "checks": [{"against": "its last committed version", "badge": "correct"}]})
    'k against its last committed version: correct'
    """
    found = (f"against {check['against']}: {check['badge']}" for check in answer["checks"])
    return f"{answer['kernel']} {'; '.join(found)}"


def is_refuted(answer: Mapping[str, Any]) -> bool:
    """Whether a comparison came out against the kernel."""
    bad = ("wrong", "unsafe", "does-not-compile", "timeout")
    return any(check["report"]["status"] in bad for check in answer["checks"])


def _lines(answer: Mapping[str, Any], path: str) -> Iterator[str]:
    yield f"# Verify {code(answer['kernel'])}"
    yield ""
    yield prose(path)
    for check in answer["checks"]:
        yield from _check(check)
    if answer["left_out"]:
        yield "\n## What it was not compared with\n"
        yield from (f"- {prose(sentence)}" for sentence in answer["left_out"])


def _check(check: Mapping[str, Any]) -> Iterator[str]:
    report = check["report"]
    yield f"\n## Against {prose(check['against'])}\n"
    yield f"Verdict: **{prose(check['badge'])}**"
    if report["reason"]:
        yield f"\n{prose(report['reason'])}"
    yield f"\nReached: {', '.join(report['levels']) or 'nothing'}. Run on: {prose(report['backend'])}."
    compiled = report["compile"] or {}
    before = compiled.get("original") or {}
    figures = {name: value for name, value in compiled.items() if isinstance(value, int) and value is not True}
    if figures:
        yield f"\nCompiled by {prose(compiled['compiler'])} for {prose(compiled['arch'])}:\n"
        yield from ("| | now | before |", "|---|---|---|")
        for name, value in figures.items():
            yield f"| {name.replace('_', ' ')} | {value:,} | {before.get(name, '')} |"
    yield from _cases(report["cases"])
    for speed in report["speed"]:
        low, high = speed["ci95"]
        yield (
            f"\nTimed at {_shape(speed['shape'])}: {number(speed['candidate_us'])} us, before "
            f"{number(speed['baseline_us'])} us: {number(speed['speedup'])}x (95 % CI {low:.2f}-{high:.2f})"
        )
    if report["notes"]:
        yield "\nNotes:\n"
        yield from (f"- {prose(note)}" for note in report["notes"])


def _cases(cases: list[Mapping[str, Any]]) -> Iterator[str]:
    if not cases:
        return
    good = sum(1 for case in cases if case["ok"])
    yield f"\nCompared: {good} of {len(cases)} agree.\n"
    yield from ("| size | values | largest difference | |", "|---|---|---|---|")
    ordered = sorted(cases, key=lambda case: bool(case["ok"]))
    for case in ordered[:_MOST_CASES]:
        gap = "" if case["max_abs"] is None else f"{case['max_abs']:.3g}"
        verdict = "agrees" if case["ok"] else prose(case["reason"] or "differs")
        yield f"| {_shape(case['shape'])} | {prose(case['distribution'])} | {gap} | {verdict} |"
    if len(cases) > _MOST_CASES:
        yield f"\n{len(cases) - _MOST_CASES} more, of which all agree or are as above."


def _shape(shape: Mapping[str, int]) -> str:
    return ", ".join(f"{prose(name)} = {size:,}" for name, size in shape.items()) or "its own size"
