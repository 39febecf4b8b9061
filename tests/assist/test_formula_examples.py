"""The nearest example of a request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from warpwright.assist.formula_examples import Examples

PAIRS = [
    ("softmax over each row of x", "softmax"),
    ("sum of each row of x", "sum"),
    ("layer norm over the last dimension, with weight and bias", "norm"),
    ("sum of each column of x", "columns"),
]


@pytest.mark.parametrize(
    ("comment", "formula"),
    [
        ("numerically stable SOFTMAX over columns of logits", "softmax"),
        ("column sums", "columns"),
        ("layernorm? a layer norm of y", "norm"),
        ("frobnicate", None),
        ("", None),
    ],
)
def test_rare_words_decide(comment: str, formula: str | None) -> None:
    assert [each for _, each in Examples(PAIRS).nearest(comment)] == ([formula] if formula else [])


def test_no_examples() -> None:
    assert Examples([]).nearest("sum") == []


def test_a_file_of_examples_of_all_tasks_is_read(tmp_path: Path) -> None:
    path = tmp_path / "examples.jsonl"
    lines = [{"task": "formula", "problem": comment, "formula": formula} for comment, formula in PAIRS]
    path.write_text("".join(json.dumps(each) + "\n" for each in [{"task": "plan", "problem": "sum"}, *lines]))
    assert Examples.read(path).nearest("row sums", 1) == [PAIRS[1]]
