"""A kernel by the real model. The untuned one mostly fails: what counts is what is shown and what is said."""

from __future__ import annotations

import pytest
from warpwright.assist.engine import Engine
from warpwright.assist.generate import drafts
from warpwright.assist.screen import refusal


@pytest.mark.slow
@pytest.mark.llm
def test_what_is_shown_passes_the_screen_and_what_is_not_says_why(engine: Engine) -> None:
    seen = list(drafts(engine, "scale a vector of floats by two", budget_seconds=240))
    assert 1 <= len(seen) <= 3
    for draft in seen:
        assert draft.raw
        if draft.shown:
            assert refusal(draft.code) == ""
            assert draft.raw.count(draft.code) == 1
        else:
            assert draft.reason.endswith(".")


@pytest.mark.llm
def test_out_of_time_is_a_draft_that_says_so(engine: Engine) -> None:
    for draft in drafts(engine, "a reduction " * 30, budget_seconds=0.2):
        assert not draft.shown
        assert draft.reason


def test_stops_when_asked(unused_engine: Engine) -> None:
    assert list(drafts(unused_engine, "add", lambda: True)) == []
