"""Each rewrite is a claim; here is its proof: Before and After of its page give the same, run by the emulator."""

from __future__ import annotations

import pytest
from support.findings import proposed
from support.pages import code, sections
from warpwright.rewrites.base import Rewrite, RewriteKind
from warpwright.rewrites.registry import all_rewrites
from warpwright.verify import emulation
from warpwright.verify.budget import Budget
from warpwright.verify.report import Status
from warpwright.verify.verify import verify

PAIRS = [
    pytest.param(kind, before, id=f"{kind.name}-{number}")
    for kind in all_rewrites()
    for number, before in enumerate(code(sections(kind.doc)["Before"]), 1)
]

RACING = frozenset({"add-barrier", "update-atomically"})
"""Rewrites whose Before has no one result, which is what they cure: it is left out for its race, and After has none."""


@pytest.mark.sampled(24)
@pytest.mark.nvcc
@pytest.mark.parametrize(("kind", "before"), PAIRS)
def test_before_and_after_give_the_same(kind: RewriteKind, before: str, monkeypatch: pytest.MonkeyPatch) -> None:
    less = Budget(launch=4_000_000, together=60_000_000, least_candidate=200_000)  # to end sooner
    monkeypatch.setattr(emulation, "BUDGET", less)
    rewrite = proposed(before, kind.name)
    assert isinstance(rewrite, Rewrite), rewrite
    report = verify(rewrite.source, rewrite.apply(), goal=kind.goals[0], backend="emulator", again=True)
    if kind.name in RACING:
        assert report.status in (Status.CURED, Status.CORRECT), (report.status, report.reason, report.notes)
        told = (*report.notes, *(each.text for each in report.uncovered))
        assert any("the candidate does not do that" in text for text in told), told
        return
    assert report.status is Status.CORRECT, (report.status, report.reason, report.notes)
