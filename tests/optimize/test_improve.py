"""A repair where nvcc rejects a kernel, the search where it does not, and a larger model where both have nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from warpwright.assist.engine import Engine
from warpwright.assist.free_form import Ask
from warpwright.facts.analyze import analyze
from warpwright.optimize import free_form
from warpwright.optimize import improve as improving
from warpwright.optimize.improve import RejectedError, improve
from warpwright.optimize.mending import Building
from warpwright.optimize.outcome import Outcome
from warpwright.optimize.wish import Wish, WishError
from warpwright.progress import IsCancelled, Progress, never_cancelled, silent
from warpwright.syntax.source import Source
from warpwright.toolchain.compilation import Compiled, Ending
from warpwright.toolchain.messages import CompilerMessage

TEXT = "__global__ void k(float *a) {\n  a[0] = 1.0f;\n}\n"
REJECTED = Compiled(
    Ending.ERRORS,
    (CompilerMessage("k.cu", 2, "error", 'expected a ";"', quoted="  a[0] = 1.0f;", caret=2),),
    'expected a ";" at line 2.',
)


class Made:
    """What was asked of whom, in the place of the compiler, the search and the model."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, rejected: Compiled | None = None) -> None:
        self.wishes: list[Wish] = []
        self.prompts: list[str] = []
        program = analyze(Source("k.cu", TEXT.encode()))
        (kernel,) = program.defined_kernels
        self.program, self.kernel = program, kernel

        def asking(engine: Engine, deadline: float, is_cancelled: IsCancelled) -> Ask:
            del engine, deadline, is_cancelled
            return self.answer

        def mended(*_: object) -> Outcome:
            return Outcome("k", "fix", None, "", (), None, "There is no certain repair.")

        monkeypatch.setattr(free_form, "asking", asking)
        monkeypatch.setattr(improving, "rejection", lambda *_: rejected)
        monkeypatch.setattr(improving, "mended", mended)

    def answer(self, prompt: str, _: int) -> str:
        self.prompts.append(prompt)
        return "no blocks at all"

    def search(self, wish: Wish) -> Outcome:
        self.wishes.append(wish)
        return Outcome("k", "speed", None, "", (), None, "No rewrite helps.")

    def outcome(self, goal: str, wishes: Sequence[str], writer: Engine | None = None) -> Outcome:
        progress: Progress = silent
        return improve(
            self.program, self.kernel, goal, wishes, self.search, findings=(), building=Building(), writer=writer,
            seconds=60.0, progress=progress, is_cancelled=never_cancelled,
        )  # fmt: skip


def test_what_compiles_is_searched_with_all_wishes(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(monkeypatch)
    assert made.outcome("speed", ["more aggressive", "keep it readable"]).reason == "No rewrite helps."
    assert made.wishes == [Wish(aggressive=True, readable=True)]


def test_a_wish_that_no_search_knows_is_for_the_model(monkeypatch: pytest.MonkeyPatch, unused_engine: Engine) -> None:
    made = Made(monkeypatch)
    with pytest.raises(WishError, match="asks for nothing that a search knows"):
        made.outcome("speed", ["in pink"])
    outcome = made.outcome("speed", ["in pink"], unused_engine)
    assert made.wishes == []
    assert "in pink" in made.prompts[0]
    assert "none is offered" in outcome.reason


def test_a_search_in_vain_is_followed_by_the_model(monkeypatch: pytest.MonkeyPatch, unused_engine: Engine) -> None:
    made = Made(monkeypatch)
    outcome = made.outcome("speed", [], unused_engine)
    assert len(made.wishes) == 1 and made.prompts
    assert outcome.reason.startswith("No rewrite helps.") and "none is offered" in outcome.reason


def test_what_is_rejected_is_mended_or_said(monkeypatch: pytest.MonkeyPatch, unused_engine: Engine) -> None:
    made = Made(monkeypatch, REJECTED)
    with pytest.raises(
        RejectedError, match='k cannot be compared with anything until its file compiles: expected a ";"'
    ):
        made.outcome("speed", [])
    assert made.outcome("fix", []).reason == "There is no certain repair."
    made.outcome("fix", [], unused_engine)
    assert 'expected a ";"' in made.prompts[0], "the model is told what the compiler said"
    assert made.wishes == []
