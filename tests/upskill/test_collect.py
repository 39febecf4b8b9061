"""One command collects examples of all tasks, each confirmed by tools, and goes on where it was stopped."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.upskill import collect_few, json_lines
from warpwright_upskill.data.render import render
from warpwright_upskill.examples import FORMULA, HELD_OUT, PLAN, REPAIR, TRAIN, Example, read_examples

pytestmark = pytest.mark.nvcc


def of(task: str, path: Path) -> list[Example]:
    return [each for each in read_examples(path) if each.task == task]


def test_every_task_has_examples_that_the_server_could_ask_for(collected: Path) -> None:
    assert min(len(of(task, collected)) for task in (FORMULA, PLAN, REPAIR)) >= 3
    for example in read_examples(collected):
        rendered = render(example)
        assert rendered is not None and rendered.answer.strip()
    levels = {(each.provenance.origin, each.metrics.level) for each in of(FORMULA, collected)}
    assert levels == {("requests", "correct"), ("spelled", "evaluated"), ("written", "evaluated")}
    assert {each.split for each in of(REPAIR, collected)} == {TRAIN, HELD_OUT}
    assert [each.provenance.structure for each in of(PLAN, collected)] == ["", "renamed", "renamed"]


def test_what_is_rejected_says_why(collected: Path) -> None:
    rejected = json_lines(collected.with_suffix(".rejected.jsonl"))
    assert rejected and all(each["reason"].endswith((".", ")")) for each in rejected)


def test_it_goes_on_from_the_parts_that_are_there_to_the_same_file(collected: Path) -> None:
    before = collected.read_bytes()
    parts = sorted(collected.parent.glob("parts/*/*.jsonl"))
    (lost,) = [part for part in parts if part.name.startswith("formulas")]
    kept = {part: part.stat().st_mtime_ns for part in parts if part != lost}
    lost.unlink()
    collect_few(collected)
    assert collected.read_bytes() == before
    assert {part: part.stat().st_mtime_ns for part in kept} == kept
