"""Rounds of sampling and retraining, preference training, and where the verifying is done."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.upskill import json_lines, ran, refused, settings
from warpwright_upskill.console import StageError
from warpwright_upskill.data.neighbours import neighbours
from warpwright_upskill.data.render import render
from warpwright_upskill.examples import Example, Metrics, Provenance
from warpwright_upskill.gemma import EOS, Tokens, Vocabulary, vocabulary_hash
from warpwright_upskill.retrain import Lesson, lesson_of, retrain, write_lesson
from warpwright_upskill.rows import Row, read_rows, write_rows
from warpwright_upskill.training.config import Config
from warpwright_upskill.training.spread import CHUNK, spread
from warpwright_upskill.training.verdicts import Verdict, judge

ROW = Row("a", "formula", (2, 10, 11, 20, 21, EOS), 3)
RIGHT, WRONG = Verdict(""), Verdict("It computes something else.")


def test_what_a_round_keeps() -> None:
    own, other, wrong = (20, 21), (22,), (23,)
    rows = [ROW, replace(ROW, id="b"), replace(ROW, id="c")]
    answers = [[own, other, wrong, wrong], [own, own, own, own], [wrong, wrong, (24,), ()]]
    verdicts = [RIGHT, RIGHT, WRONG, WRONG, *[RIGHT] * 4, *[WRONG] * 4]
    lesson = lesson_of(rows, answers, verdicts)
    assert (lesson.answers, lesson.right) == (12, 6)
    assert [row.id for row in lesson.kept] == ["a", "a+0", "c"]
    assert lesson.kept[1].answer == (22, EOS)
    assert [(pair.row.id, pair.wrong, pair.fix) for pair in lesson.pairs] == [
        ("a", wrong, own), ("c", wrong, own), ("c", (24,), own), ("c", (), own)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("task", "wanted", "said", "reason"),
    [
        ("formula", " y[i] = 2 * x[i]", " y[i] = 2 *", "expected"),
        ("formula", " y[i] = 2 * x[i]", "", "missing"),
        ("plan", '{"analysis": "", "optimizations": ["a"], "estimated_speedup": 1.5}', "{", "no plan"),
        ("plan", '{"analysis": "", "optimizations": ["a"], "estimated_speedup": 1.5}',
         '{"analysis": "", "optimizations": ["b"], "estimated_speedup": 1.5}', "a is best"),
        ("repair", "@why A.\n@original\n a\n@updated\n b\n@end", "@why A.\n@original\n a\n@updated\n c\n@end", "other"),
        ("kernel", "__global__ void k() {}", "__global__ void j() {}", "another"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(task: str, wanted: str, said: str, reason: str) -> None:
    assert reason in judge(task, wanted, said).reason
    assert judge(task, wanted, wanted).right


def length(text: str) -> int:
    return len(text)


@pytest.mark.parametrize("where", ["1", "2"])
def test_items_are_spread_and_come_back_in_order(where: str) -> None:
    items = ["x" * (number % 7) for number in range(CHUNK + 5)]
    assert spread(length, items, where) == [len(each) for each in items]
    assert spread(length, [], where) == []


@pytest.mark.parametrize("where", ["0", "many", "http://a"])
def test_nowhere_to_spread_to(where: str) -> None:
    with pytest.raises(StageError, match="--workers"):
        spread(length, ["a"], where)


def test_items_are_spread_by_ray() -> None:
    pytest.importorskip("ray")
    assert spread(len, ["a", "bb"] * CHUNK, "ray") == [1, 2] * CHUNK


@pytest.fixture(scope="module")
def asked(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two prompts: the tiny model can learn one by heart."""
    tokens = Tokens(tiny)
    rows: list[Row] = []
    for name, text in (("a", " y[i] = x[i]"), ("b", " y[i] = 2 * x[i]")):
        prompt = (2, *tokens.encode(f"// Task: {name}\n// Formula:"))
        rows.append(Row(name, "formula", (*prompt, *tokens.encode(text), EOS), len(prompt)))
    tokens.close()
    path = tmp_path_factory.mktemp("asked") / "asked.rows"
    write_rows(rows, vocabulary_hash(tiny)[0], path)
    return path


BY_HEART = settings(
    rank=8, alpha=16, learning_rate=0.01, epochs=30, batch=1, mix="{formula=1}", answer_tokens=24, device="cpu"
)


@pytest.mark.slow
@pytest.mark.upskill
@pytest.mark.llm
def test_a_model_that_answers_wrongly_is_taught_until_it_does_not(tiny: Path, asked: Path, tmp_path: Path) -> None:
    quick = [*BY_HEART, *settings(max_steps=1)]
    ran("train", asked, "--model", tiny, "--out", tmp_path / "adapter", *quick)
    command = ("retrain", asked, "--model", tiny, "--adapter", tmp_path / "adapter", "--out", tmp_path / "rounds")
    sampling = ("--rounds", "2", "--each", "2", "--temperature", "0.01", "--history", asked)
    said = ran(*command, *sampling, *BY_HEART).stdout
    first, second = (json.loads(line) for line in said.splitlines())
    assert (first["answers"], first["right"], first["kept"], first["history"]) == (4, 0, {"formula": 2}, 2)
    assert second["right"] == 4 and second["kept"] == {}
    pairs = json_lines(tmp_path / "rounds" / "round1" / "pairs.jsonl")
    assert {pair["fix"] for pair in pairs} == {" y[i] = x[i]", " y[i] = 2 * x[i]"}
    assert all(pair["reason"] and pair["prompt"].endswith("// Formula:") for pair in pairs)
    assert ran(*command, *sampling, *BY_HEART).stdout == said, "what is there is not made again"


@pytest.mark.slow
@pytest.mark.upskill
@pytest.mark.llm
def test_right_answers_become_likelier_than_wrong_ones(tiny: Path, asked: Path, tmp_path: Path) -> None:
    ran("train", asked, "--model", tiny, "--out", tmp_path / "adapter", *BY_HEART, *settings(max_steps=1))
    rows = read_rows(asked, *vocabulary_hash(tiny))
    answers = [[row.answer[:-1][::-1]] for row in rows]
    write_lesson(lesson_of(rows, answers, [WRONG, WRONG]), tiny, Vocabulary(tiny), tmp_path)
    command = ("prefer", tmp_path / "pairs.rows", "--model", tiny, "--adapter", tmp_path / "adapter")
    ran(*command, "--out", tmp_path / "preferred", *BY_HEART, *settings(max_steps=8))
    report = json.loads((tmp_path / "preferred" / "training.json").read_text())
    assert report["loss"][0] == pytest.approx(0.6931, abs=0.02)
    assert report["loss"][-1] < 0.6 and report["preferred_more_than_before"][-1] == 1
    assert "no pairs" in refused("prefer", asked, "--model", tiny, "--adapter", tmp_path, "--out", tmp_path / "a")
    write_lesson(Lesson((), (), 0, 0), tiny, Vocabulary(tiny), tmp_path)
    assert "answered nothing wrongly" in refused(*command, "--out", tmp_path / "a")


@pytest.mark.upskill
@pytest.mark.llm
def test_nothing_to_ask(tiny: Path, asked: Path, tmp_path: Path) -> None:
    rows = read_rows(asked, *vocabulary_hash(tiny))
    with pytest.raises(StageError, match="no training row"):
        retrain(
            gguf=tiny, rows=rows, history=(), adapter=tmp_path, out=tmp_path, config=Config(mix=(("plan", 1.0),)),
            rounds=1, prompts=2, each=1, temperature=0.5,
        )  # fmt: skip


def test_what_a_request_shows_is_like_it_and_never_its_answer() -> None:
    def example(structure: str, formula: str, split: str = "train") -> Example:
        where = Provenance("sampler", "map", structure)
        return Example("formula", formula, where, Metrics("parsed", "test"), formula=formula, split=split)

    found = [example(s, f"y[i] = {n} * x[i]", "dev" if n == 4 else "train") for s in "ab" for n in (1, 1, 2, 3, 4)]
    shown = neighbours(found, 1.0)
    pairs = [(one, other) for one, other in zip(found, shown, strict=True) if other is not None]
    assert len(pairs) == len(found) and neighbours(found, 1.0) == shown and not any(neighbours(found, 0.0))
    assert all(one.formula != other.formula and other.split == "train" for one, other in pairs)
    assert sum(one.provenance == other.provenance for one, other in pairs) > len(pairs) / 2
    rendered = render(*pairs[0])
    assert rendered is not None and rendered.prompt.startswith(f"// Like: {pairs[0][1].problem}\n// Formula: y[i]")
