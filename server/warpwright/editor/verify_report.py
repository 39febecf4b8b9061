"""What Verify found out, as a page that a person reads and as one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from warpwright.editor.markdown import prose
from warpwright.editor.report import report_page


def verified_page(answer: Mapping[str, Any], path: str) -> str:
    """The answer of the job "verify" as Markdown: each comparison with what was run, and what could not be."""
    pages = [report_page(check["report"], f"{path}, against {check['against']}") for check in answer["checks"]]
    if answer["left_out"]:
        sentences = "\n".join(f"- {prose(sentence)}" for sentence in answer["left_out"])
        pages.append(f"# What it was not compared with\n\n{sentences}\n")
    return "\n".join(pages)


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
