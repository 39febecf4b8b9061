"""Held-out prompts are read, and what is wrong with one is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.upskill import ran, refused, run_stage

pytestmark = pytest.mark.upskill

GOOD = '''
[[prompt]]
id = "{id}"
family = "reduction"
comment = "{comment}"
given = ""
inputs = {{ {inputs} }}
reference = """
def reference({parameters}):
    {body}
"""
'''


def written(folder: Path, *prompts: dict[str, str]) -> Path:
    folder.mkdir(exist_ok=True)
    default = {
        "id": "sums",
        "comment": "add up each row of the matrix",
        "inputs": 'x = "f32[R, C]"',
        "parameters": "x",
        "body": "return x.sum(1)",
    }
    (folder / "some.toml").write_text("".join(GOOD.format(**default | each) for each in prompts), encoding="utf-8")
    return folder


def test_says_that_all_are_right(tmp_path: Path) -> None:
    said = ran("prompts", "check", written(tmp_path / "p", {})).stdout
    assert "1 prompts, all of them right." in said and "reduction" in said


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("prompt", "sentence"),
    [
        ({"body": "return x @ x"}, "raises at R = 15, C = 11: RuntimeError"),
        ({"body": "return torch.log(x).sum(1)"}, "is NaN in"),
        ({"inputs": 'x = "f32[R, C]", b = "f32[R]"', "parameters": "x, b"}, "does not depend on b"),
        ({"parameters": "y"}, "the reference takes y, inputs are x"),
        ({"inputs": 'x = "f33[R]"'}, "inputs: x: 'f33[R]' is not type[extents] with bounds"),
        ({"inputs": 'x = "f32[R.C]"'}, "'R.C' is no sum or product"),
        ({"body": "return x.sum(1"}, "the reference is no Python"),
        ({"body": "return x.sum() * 0"}, "gives the same number everywhere"),
        ({"body": "x.mul_(2)"}, "the reference returns nothing; what it writes in place it returns, too"),
        pytest.param({"body": "return [0 for _ in iter(int, 1)]"}, "took more than 10 seconds", marks=pytest.mark.slow),
        ({"body": "import os; return os._exit(3)"}, "the process that ran it died"),
    ],
)
def test_says_what_is_wrong(tmp_path: Path, prompt: dict[str, str], sentence: str) -> None:
    done = run_stage("prompts", "check", written(tmp_path / "p", prompt))
    assert done.status == 2
    assert sentence in done.stdout, done.stdout
    assert "some.toml: sums: " in done.stdout


def test_no_two_prompts_are_nearly_the_same(tmp_path: Path) -> None:
    other = {"id": "totals", "comment": "Add up each row of the matrix!"}
    done = run_stage("prompts", "check", written(tmp_path / "p", {}, other, {"comment": "total of every row, please"}))
    assert "totals: says nearly the same as sums" in done.stdout
    assert "sums: some.toml has this id already" in done.stdout


def test_where_no_prompts_are(tmp_path: Path) -> None:
    assert "no prompts there" in refused("prompts", "check", tmp_path)
    (tmp_path / "bad.toml").write_text("[[prompt", encoding="utf-8")
    assert "bad.toml: the file: is no TOML" in run_stage("prompts", "check", tmp_path).stdout
