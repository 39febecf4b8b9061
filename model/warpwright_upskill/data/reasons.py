"""Why a rewrite gains, in sentences: the reasoning that a plan shows. Every number is one that the analysis counted."""

from __future__ import annotations

import re
from collections.abc import Sequence

from warpwright.assist.counted import counted_changes
from warpwright.assist.prompts import one_line
from warpwright.facts.model import Kernel
from warpwright.rewrites.base import Rewrite
from warpwright.rules.base import Finding


def reasons(kernel: Kernel, after: Kernel | None, findings: Sequence[Finding], step: Rewrite) -> list[str]:
    """What was counted: in the finding that asks for the rewrite, and of both texts; else what the rewrite is for."""
    asking = [finding for finding in findings if any(fix.rewrite == step.rewrite for fix in finding.fixes)]
    counted = counted_changes(kernel, after) if after is not None else []
    return [*map(diagnosis, asking[:1]), *counted] or sentences(step.explanation)[:2]


def diagnosis(finding: Finding) -> str:
    """A finding's name, the place and what was counted there, without the launch and the advice.

    For example "bank-conflict at `a[t]`: 32-way bank conflict on `a[t]`: 32 wavefronts/request (ideal 1)."
    """
    return f"{finding.rule} at `{one_line(finding.span.text)}`: {_sentence(finding.headline)}"


def sentences(text: str) -> list[str]:
    """
    >>> sentences("It waits. It costs 1.5 cycles.")
    ['It waits.', 'It costs 1.5 cycles.']
    """
    return [_sentence(part) for part in re.split(r"(?<=\.)\s+", one_line(text)) if part]


def _sentence(text: str) -> str:
    text = one_line(text)
    return text if text.endswith(".") else text + "."
