"""Plans are labelled by what was measured, ask about what applies, and are judged by what their first choice gains."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.upskill import SAMPLES, gains_of_turn, write_measured
from warpwright.assist.prompts import plan_answer
from warpwright.facts.analyze import analyze
from warpwright.syntax.source import read_source
from warpwright_upskill.data.plans import MEASURED, Planned, measured_jobs, plan_of, without_contradictions
from warpwright_upskill.data.render import brief, render
from warpwright_upskill.evaluation.judge_plans import in_fixed_order, judge_plan
from warpwright_upskill.evaluation.plans import fixed_order, plan_summary, right_by_chance
from warpwright_upskill.examples import Example, Provenance

TURN = read_source(SAMPLES / "tiles" / "turn" / "kernel.cu")


def planned(best: str) -> Planned:
    (kernel,) = analyze(TURN).defined_kernels
    return Planned(TURN, kernel.name, gains_of_turn(best), MEASURED, Provenance("sample", "tiles/turn"))


def example(best: str = "pad-shared-array") -> Example:
    made = plan_of(planned(best), "1")
    assert isinstance(made, Example)
    return made


def test_choices_are_what_applies_and_the_best_is_the_answer() -> None:
    made = example()
    assert made.question is not None
    assert {name for name, _ in made.question.rewrites} == set(planned("pad-shared-array").gains)
    assert made.rewrites == ("pad-shared-array",)
    assert (made.metrics.speedup, made.metrics.speedup_basis) == (2.0, "measured")
    rendered = render(made)
    assert rendered is not None
    analysis = json.loads(rendered.answer)["analysis"]
    assert "wavefronts" in analysis and analysis.endswith("So pad-shared-array.")
    assert rendered.prompt.endswith("# Plan to make the kernel run faster\n")


def test_what_gains_nothing_or_applies_no_more_is_no_plan() -> None:
    whole = planned("pad-shared-array")
    slower = replace(whole, gains=dict.fromkeys(whole.gains, 1.0))
    assert "none gains" in getattr(plan_of(slower, "1"), "reason", "")
    other = replace(whole, gains={**whole.gains, "warp-per-row": 3.0})
    assert "Other rewrites apply" in getattr(plan_of(other, "1"), "reason", "")


def test_contradictory_answers_are_dropped_and_equal_ones_kept_once() -> None:
    one = example()
    assert one.question is not None
    shuffled = replace(one, question=replace(one.question, rewrites=one.question.rewrites[::-1]))
    assert without_contradictions([one, shuffled]) == [one]
    assert without_contradictions([one, example("swizzle-shared-array")]) == []


def test_a_plan_is_worth_what_its_first_choice_gains() -> None:
    made = example()
    right = judge_plan(made, plan_answer("It waits for the banks.", ["pad-shared-array"], 1.8))
    assert right.is_valid and right.is_right and right.is_estimated
    wrong = judge_plan(made, plan_answer("It waits for the banks.", ["swizzle-shared-array"], 1.8))
    assert wrong.is_valid and not wrong.is_right and wrong.reached == 0.5 and not wrong.is_estimated
    assert judge_plan(made, "pad it").reached == 0.0


def test_the_fixed_order_is_that_of_the_gains_that_are_known() -> None:
    made = example()
    assert judge_plan(made, in_fixed_order(made, [made])).is_right
    assert not judge_plan(made, in_fixed_order(made, [example("swizzle-shared-array")])).is_right


def test_the_fixed_order_is_judged_by_the_share_of_the_best_gain() -> None:
    made = example()
    held, other = replace(made, split="held-out"), example("swizzle-shared-array")
    good, bad = (plan_summary(fixed_order([held], [known, held])) for known in (made, other))
    assert (good["plans"], good["valid"], good["right_first"], good["reached"]) == (1, 1, 1, 1.0)
    assert (bad["valid"], bad["right_first"], bad["reached"]) == (1, 0, 0.5)
    assert 0 < right_by_chance([held]) < 1


def test_names_vary_and_the_record_stays(tmp_path: Path) -> None:
    gains = write_measured(tmp_path / "table.json")
    (job,) = measured_jobs(SAMPLES, tmp_path / "table.json", 2, "1").values()
    found = [each for each in job() if isinstance(each, Example)]
    assert [each.metrics.scores for each in found] == [gains] * 3
    assert len({each.source for each in found}) == 3


@pytest.mark.parametrize("limit", [5, 30, 240])
def test_an_analysis_ends_in_the_choice(limit: int) -> None:
    said = brief(["a" * 300, "b" * 20 + ".", "So x."], limit)
    assert said.endswith("So x.") and len(said) <= limit
