"""Each rewrite's docstring, run: Before becomes After exactly, and After is left alone."""

from __future__ import annotations

import pytest
from support.carets import assert_same
from support.findings import proposed
from support.pages import code, sections
from warpwright.rewrites.base import Declined, Rewrite, RewriteKind
from warpwright.rewrites.registry import all_rewrites

HEADINGS = ["", "Before", "After", "Assumes", "Cost"]
rewrites = pytest.mark.parametrize("kind", all_rewrites(), ids=lambda kind: kind.name)


@rewrites
def test_page_has_its_sections(kind: RewriteKind) -> None:
    assert list(sections(kind.doc)) == HEADINGS
    assert kind.summary.endswith(".")
    assert kind.goals
    assert set(kind.goals) <= {"speed", "memory", "fix"}


@rewrites
def test_before_becomes_after(kind: RewriteKind) -> None:
    page = sections(kind.doc)
    for before, after in zip(code(page["Before"]), code(page["After"]), strict=True):
        result = proposed(before, kind.name)
        assert isinstance(result, Rewrite), result
        assert_same(after, result.apply().text(), "After")
        assert result.title
        assert result.explanation.endswith(".")
        assert isinstance(proposed(after, kind.name), Declined)
