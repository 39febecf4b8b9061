"""Why a rewrite gains, in sentences: the reasoning that a plan shows. Every number is one that the analysis counted."""

from __future__ import annotations

import re
from collections.abc import Sequence

from warpwright.assist.prompts import one_line
from warpwright.facts.model import Divergence, Kernel, Space
from warpwright.rewrites.base import Rewrite
from warpwright.rules.base import Finding
from warpwright.rules.words import number


def reasons(kernel: Kernel, after: Kernel | None, findings: Sequence[Finding], step: Rewrite) -> list[str]:
    """What was counted: in the finding that asks for the rewrite, and of both texts; else what the rewrite is for."""
    asking = [finding for finding in findings if any(fix.rewrite == step.rewrite for fix in finding.fixes)]
    counted = outcome(kernel, after) if after is not None else []
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


def outcome(before: Kernel, after: Kernel) -> list[str]:
    """What the counts were and are, per kind of number that changed.

    For example: "Shared memory: 16.5 times fewer wavefronts." Counts are of the requests that were looked at in the
    kernel's first launch, so that they can be compared between two texts of one kernel.
    """
    said: list[str] = []
    for space, noun in ((Space.SHARED, "wavefronts"), (Space.GLOBAL, "sectors")):
        was, now = _transactions(before, space), _transactions(after, space)
        if was and now and round(was) != round(now):
            more = now > was
            factor = number(now / was if more else was / now)
            said.append(f"{space.capitalize()} memory: {factor} times {'more' if more else 'fewer'} {noun}.")
    was_split, now_split = _diverging(before), _diverging(after)
    if was_split != now_split:
        said.append(f"Branches that split every warp: {was_split} before, {now_split} after.")
    if before.shared_bytes != after.shared_bytes and None not in (before.shared_bytes, after.shared_bytes):
        said.append(f"Shared memory of a block: {before.shared_bytes} bytes become {after.shared_bytes}.")
    return said


def _transactions(kernel: Kernel, space: Space) -> float | None:
    """Sectors (global) or wavefronts (shared) of all requests looked at in the first launch; None where unknown."""
    total = 0.0
    for access in kernel.accesses:
        if access.launch == 0 and access.space is space:
            each = access.wavefronts_per_request if space is Space.SHARED else access.sectors_per_request
            if each is None:
                return None
            total += each * access.requests
    return total


def _diverging(kernel: Kernel) -> int:
    return sum(b.divergence is Divergence.EVERY_WARP and b.launch == 0 for b in kernel.branches)


def _sentence(text: str) -> str:
    text = one_line(text)
    return text if text.endswith(".") else text + "."
