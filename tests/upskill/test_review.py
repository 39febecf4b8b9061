"""A teacher reviews examples over HTTP; what it says is checked, and nothing depends on it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest
import support
from support.upskill import ran, refused, run_stage
from warpwright_upskill.data.corpus import examples
from warpwright_upskill.data.requests.catalogue import OPERATORS
from warpwright_upskill.data.requests.compose import composed_of
from warpwright_upskill.examples import Example, Metrics, read_examples, write_json_lines
from warpwright_upskill.review import refusal_of

SERVER = Path(next(iter(support.__path__))) / "teacher_server.py"
KEY = {"TEACHERS_KEY": "secret"}


@contextmanager
def teacher(mode: str) -> Iterator[str]:
    process = subprocess.Popen([sys.executable, str(SERVER), mode], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "examples.jsonl"
    parts = composed_of(next(each for each in OPERATORS if each.name == "saxpy"), Random("review"))
    write_json_lines(path, list(examples(parts, "review", 4, "", Metrics("correct", "emulator"))))
    return path


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_a_review_enters_with_the_words_that_keep_numbers_and_names(kind: str, corpus: Path) -> None:
    out = corpus.with_name("out.jsonl")
    with teacher(kind) as url:
        options = ("--teacher", kind, "--url", url, "--model", "sage", "--key-variable", "TEACHERS_KEY", "--out", out)
        summary = json.loads(ran("review", corpus, *options, env=KEY).stdout)
    assert summary == {"reviewed": 4, "failed": 0, "in_other_words": 4, "examples": 8}
    found = read_examples(out)
    assert all(each.metrics.scores == {"level": 4.0} for each in found)
    assert all("The names agree." in each.reasoning_steps for each in found)
    assert sum(each.provenance.wording == "teacher sage" for each in found) == 4
    assert not any("12345" in each.problem or "end_of_turn" in each.problem for each in found)


@pytest.mark.parametrize("mode", ["nonsense", "broken", "refusing", "gone"])
def test_a_teacher_that_is_none_costs_its_reviews_alone(mode: str, corpus: Path) -> None:
    out = corpus.with_name("out.jsonl")
    with teacher(mode) as url:
        pass
    options = ["--teacher", "openai", "--model", "sage", "--key-variable", "TEACHERS_KEY", "--out", str(out)]
    if mode == "gone":
        result = run_stage("review", corpus, *options, "--url", url, env=KEY)
    else:
        with teacher(mode) as url:
            result = run_stage("review", corpus, *options, "--url", url, env=KEY)
    assert result.status == 0
    assert result.stderr.count("The teacher is not asked again: ") == 1
    assert read_examples(out) == read_examples(corpus)


def test_a_key_that_is_not_there(corpus: Path) -> None:
    out = corpus.with_name("out.jsonl")
    options = ("--teacher", "openai", "--url", "http://127.0.0.1:9", "--model", "m", "--key-variable", "NO_SUCH_KEY")
    assert "NO_SUCH_KEY holds no key" in run_stage("review", corpus, *options, "--out", out).stderr
    assert "--model" in refused("review", corpus, "--teacher", "openai", "--out", out)


def test_the_search_is_a_teacher_of_its_own(corpus: Path) -> None:
    out = corpus.with_name("out.jsonl")
    assert json.loads(ran("review", corpus, "--teacher", "search", "--out", out).stdout)["reviewed"] == 4


def test_other_words_keep_what_was_asked() -> None:
    one = Example(
        "formula", "scale x by 0.5", example_of().provenance, Metrics("correct", ""), formula="y[i] = 0.5 * x[i]"
    )
    assert refusal_of("multiply x with 0.5", one) == ""
    assert "numbers" in refusal_of("halve x", one)
    assert "name x" in refusal_of("multiply it with 0.5", one)
    assert "control token" in refusal_of("x times 0.5 <eos>", one)


def example_of() -> Example:
    parts = composed_of(next(each for each in OPERATORS if each.name == "saxpy"), Random("review"))
    return next(examples(parts, "review", 1, "", Metrics("correct", "emulator")))
