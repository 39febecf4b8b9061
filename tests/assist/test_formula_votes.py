"""Votes by meaning, over answers of a scripted engine: the untaught model's do not agree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from warpwright.assist.child_engine import ChildEngine
from warpwright.assist.engine import Completion, CompletionRequest, Engine
from warpwright.assist.formula_task import FormulaRequest
from warpwright.assist.formula_votes import formulas_for, voted
from warpwright.assist.weights import ModelFile
from warpwright.formulas.resolve import formula_of
from warpwright.progress import IsCancelled, never_cancelled


class Scripted(ChildEngine):
    """Answers what the test says, in turn; keeps what it was asked."""

    def __init__(self, answers: Sequence[str], stop: str = "end", logs: Sequence[float] = ()) -> None:
        super().__init__(ModelFile(Path("/nonexistent.gguf"), "scripted"))
        self.answers, self.stop, self.logs = list(answers), stop, list(logs)
        self.asked: list[CompletionRequest] = []

    def complete(
        self, request: CompletionRequest, is_cancelled: IsCancelled = never_cancelled, is_enough: object = None
    ) -> Completion:
        self.asked.append(request)
        first, *others = (self.answers.pop(0) for _ in range(1 + len(request.more)))
        logs = [self.logs.pop(0) for _ in range(1 + len(others))] if self.logs else ()
        return Completion(first, self.stop, others=[(each, self.stop) for each in others], logs=logs)


REQUEST = FormulaRequest("row means")


def test_what_most_answers_mean_comes_first() -> None:
    answers = [
        " y[r] = sum[c] x[r, c]",
        " y[r] = mean[c] x[r, c]",
        " y[r] = frob(x[r])",
        " y[r] = 2 *",
        " y[i] = s[i] / J where s[i] = sum[j] x[i, j]",
        " y[r] = (sum[c] 3 * x[r, c]) / (3 * C)",
    ]
    engine = Scripted(answers)
    found = formulas_for(engine, REQUEST, 6)
    assert [(each.formula.text, each.votes) for each in found] == [
        ("y[r] = mean[c] x[r, c]", 3),
        (answers[0].strip(), 1),
    ]
    temperatures = [each for asked in engine.asked for each in (asked.temperature, *asked.more)]
    assert [each > 0 for each in temperatures] == [False] + 5 * [True]
    assert [each.seed for each in engine.asked] == [0, 4]
    assert all(each.grammar for each in engine.asked)


def test_formulas_that_only_random_inputs_show_to_agree_vote_together() -> None:
    texts = ["y[i] = log(exp(x[i]) * exp(x[i]))", "y[i] = x[i] + 1", "y[n] = 2 * x[n]"]
    assert [each.votes for each in voted(list(map(formula_of, texts)))] == [2, 1]


@pytest.mark.parametrize(
    "other",
    ["y[i] = a[i]", "z[i] = x[i]", "x: f64, y[i] = x[i]", "y[i, j] = x[i, j]", "y[i] = s * x[i]", "y[i] = t[x[i]]"],
)
def test_formulas_of_other_arrays_do_not_vote_together(other: str) -> None:
    assert [each.votes for each in voted([formula_of("y[i] = x[i]"), formula_of(other)])] == [1, 1]


def test_of_as_many_votes_the_likelier_comes_first() -> None:
    found = formulas_for(Scripted([" y[i] = x[i]", " y[i] = 2 * x[i]"]), REQUEST, 2)
    assert [each.formula.text for each in found] == ["y[i] = x[i]", "y[i] = 2 * x[i]"]


def test_how_likely_the_text_is_that_stands_for_a_meaning() -> None:
    answers = [" y[i] = 2 * x[i]", " y[i] = x[i] + x[i]", " y[i] = 2 * x[i]", " w: f16, y[i] = 3 * x[i]"]
    found = formulas_for(Scripted(answers, logs=[math.log(0.4), math.log(0.3), math.log(0.4), -0.1]), REQUEST, 4)
    assert [(each.formula.text, each.votes) for each in found] == [("y[i] = 2 * x[i]", 3), ("y[i] = 3 * x[i]", 1)]
    assert [each.likelihood for each in found] == pytest.approx([0.4, 0.0])  # a rule mended the second
    (unsaid,) = formulas_for(Scripted(answers[:1]), REQUEST, 1)
    assert unsaid.likelihood == 0, "who does not say it is not believed"


def test_an_answer_that_was_cut_off_has_no_vote() -> None:
    assert formulas_for(Scripted([" y[i] = x[i]"], "length"), REQUEST, 1) == []


def test_nothing_is_asked_of_who_has_cancelled_or_has_no_time() -> None:
    engine = Scripted([" y[i] = x[i]"])
    assert formulas_for(engine, REQUEST, is_cancelled=lambda: True) == []
    assert formulas_for(engine, REQUEST, budget_seconds=0) == []
    assert engine.asked == []


@pytest.mark.slow
@pytest.mark.llm
def test_the_real_model_is_asked(engine: Engine) -> None:
    found = formulas_for(
        engine, FormulaRequest("copy x to y", "const float* x, float* y, int n", ("negate x", "y[i] = -x[i]")), 2
    )
    assert all(each.votes >= 1 for each in found)


def test_no_more_is_asked_once_the_first_cannot_be_overtaken() -> None:
    engine = Scripted([*4 * [" y[i] = x[i]"], *4 * [" y[i] = 2 * x[i]"]])
    found = formulas_for(engine, REQUEST, 8)
    assert [(each.votes, each.samples) for each in found] == [(4, 4)]
    assert len(engine.asked) == 1


def test_no_more_is_asked_of_who_has_nothing_to_say() -> None:
    engine = Scripted([*4 * ["no formula"], *4 * [" y[i] = x[i]"]])
    assert formulas_for(engine, REQUEST, 8) == []
    assert len(engine.asked) == 1


def test_where_no_answer_is_taken_the_model_reads_why() -> None:
    bad, good = [" y[r] = 2 *", " y[r] = frob(x[r])", " y[", " ?"], 4 * [" y[r] = mean[c] x[r, c]"]
    assert formulas_for(Scripted(bad + good), REQUEST, 4) == []
    engine = Scripted(bad + bad + good)
    (found,) = formulas_for(engine, REQUEST, 4, rounds=2)
    assert (found.formula.text, found.votes, found.samples) == ("y[r] = mean[c] x[r, c]", 4, 4)
    last = engine.asked[-1].prompt
    assert last.startswith(engine.asked[0].prompt)
    assert last.count("// Not taken: A value is expected, not the end.") == 2
    assert formulas_for(Scripted(3 * bad), REQUEST, 4, rounds=2) == []


def test_a_rule_mends_before_the_model_is_asked_again() -> None:
    request = FormulaRequest("difference to the left neighbour, wraps around at the border")
    engine = Scripted(4 * [" y[i] = x[i] - x[i - 1]"])
    (found,) = formulas_for(engine, request, 4)
    assert (found.formula.text, len(engine.asked)) == ("y[i] = x[i] - x[i - 1; wrap]", 1)
