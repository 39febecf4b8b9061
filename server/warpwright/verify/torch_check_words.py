"""What `torch-check` found, in words: rows of a table, and Markdown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from warpwright.verify.torch_check import Found, TorchCheck

STATUS = {
    "ran": "ran",
    "fallback": "SILENT FALLBACK",
    "wrong": "WRONG RESULT",
    "breaks": "GRAPH BREAK",
    "raises": "raises an error",
    "not-run": "not checked",
    "crashed": "CRASHED",
    "hung": "HUNG",
}
HEAD = ("check", "kernel", "launches", "time", "what was seen")


def headline(report: TorchCheck) -> str:
    """The verdict in one sentence."""
    number, kernels = len(report.faults), " or ".join(report.kernels[:3])
    tried = sum(each.status != "not-run" for each in report.found)
    if not number:
        checks = f"{tried} check{'s' if tried != 1 else ''}"
        return f"{kernels} ran in every call of {report.operator} that gave a result ({checks})."
    return f"{report.operator}: {number} of {tried} checks found what no error tells."


def sight(report: TorchCheck) -> str:
    """With which eyes it was seen."""
    if report.gpu:
        return f"torch {report.torch} on {report.gpu}; launches as the profiler saw them."
    return (
        f"torch {report.torch} without a GPU: launches cannot be seen here, only whether the operator was dispatched "
        "and what torch computed in its place."
    )


def row(found: Found) -> tuple[str, str, str, str, str]:
    launches = str(found.launches) if found.launches else "0" if found.is_fault else "-"
    share = "-" if found.share is None else f"{found.share:.0%}"
    return found.check, STATUS[found.status], launches, share, found.said


def explained(found: Found) -> str:
    """A fault with its cause and its cure."""
    parts = [f"{found.check}: {STATUS[found.status].lower()}. {_sentence(found.said)}"]
    parts += [f"Cause: {found.cause}."] if found.cause else []
    parts += [f"Cure: {found.cure}"] if found.cure else []
    return " ".join(parts)


def step_words(step: Mapping[str, Any]) -> str:
    """The training step with and without the operator."""
    if "error" in step:
        return f"The training step was not measured: {step['error']}"
    gain, bound = step["gain"], step["bound"]
    low, high = step["gain_quartiles"]
    return (
        f"Training step: {step['without_ms']:.3g} ms without, {step['with_ms']:.3g} ms with the operator: "
        f"{gain:.2f}x (half of the rounds: {low:.2f} to {high:.2f}). Its part of the step without it is "
        f"{step['share']:.0%}, so that no operator however fast gains more than {bound:.2f}x (Amdahl); with it, "
        f"{step['share_with']:.0%} (medians of {step['rounds']} rounds)."
    )


def markdown(report: TorchCheck) -> str:
    """
    >>> report = TorchCheck("f", "2.13", "", ("a::f",), (Found("eager", "ran", launches=1, share=0.5),))
    >>> print(markdown(report).splitlines()[-1])
    | eager | ran | 1 | 50% |  |
    """
    lines = [f"## torch-check: {report.operator}", "", headline(report), "", sight(report), ""]
    lines += [f"| {' | '.join(HEAD)} |", "|---|---|--:|--:|---|"]
    lines += [f"| {' | '.join(each.replace('|', chr(92) + '|') for each in row(one))} |" for one in report.found]
    lines += ["", *(f"- {explained(each)}" for each in report.faults)] if report.faults else []
    lines += ["", step_words(report.step)] if report.step is not None else []
    return "\n".join(lines)


def _sentence(said: str) -> str:
    is_word = re.match(r"[a-z]+(?:\s|$)", said) is not None
    return "" if not said else f"{said[0].upper() if is_word else said[0]}{said[1:]}{'' if said.endswith('.') else '.'}"
