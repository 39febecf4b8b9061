"""Requests that a teacher wrote: they compute, fit their signatures, and mean the same under other names."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from pathlib import Path
from random import Random

import pytest
from warpwright.formulas.resolve import formula_of
from warpwright_upskill.console import StageError
from warpwright_upskill.data.written import Request, part, read_requests, renamed, wrong
from warpwright_upskill.examples import Example

FOLDER = Path(__file__).parents[2] / "model" / "requests"
FILES = sorted(FOLDER.glob("*.toml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_requests_have_no_fault(path: Path) -> None:
    """Of each batch some."""
    requests = read_requests(path)
    assert requests
    for _, batch in groupby(requests, attrgetter("batch")):
        some = list(batch)
        for request in some[:: 1 + len(some) // 5]:
            assert wrong(request) == ""


def test_other_names_compute_the_same() -> None:
    request = Request("y[r] = sum[c] xs[r, c] * w2[c]", "const float* xs, const float* w2, float* y", ("xs by w2",), "")
    other = renamed(request, Random(3))
    old, new = formula_of(request.formula), formula_of(other.formula)
    assert set(new.tensors) != set(old.tensors)
    assert [len(each.extents) for each in new.tensors.values()] == [len(each.extents) for each in old.tensors.values()]
    assert all(name in other.given for name in new.tensors)


@pytest.mark.parametrize(
    ("formula", "given", "reason"),
    [
        ("y[i] = 2 *", "", "cannot be read"),
        ("y[i] = x[i] / (x[i] - x[i])", "", "not finite"),
        ("y[i] = x[i]", "const half* x, float* y", "x is f32 in the formula and f16 in the signature."),
        ("y[i] = a * x[i]", "const float* x, float* y", "a is not in the signature."),
        ("y[i] = a * x[i]", "const float* x, const float* a, float* y", "a is a number in the formula alone."),
    ],
)
def test_faults_are_said(formula: str, given: str, reason: str) -> None:
    assert reason in wrong(Request(formula, given, ("words",), ""))


def test_a_request_with_a_fault_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "few.toml"
    path.write_text(
        '[[request]]\nformula = "y[i] = 2 *"\nwords = ["twice"]\n'
        '[[request]]\nformula = "y[i] = 2 * x[i]"\nwords = ["x twice"]\n'
    )
    found = part(read_requests(path), copies=1, steps=0, seed="1")
    assert [isinstance(each, Example) for each in found] == [False, True, True]


@pytest.mark.parametrize(
    "text", ['[[request]]\nformula = "y[i] = x[i]"\n', "request = 3 =", "request = 3", "[[request]]\nwords = [1]\n"]
)
def test_a_file_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "none.toml"
    path.write_text(text)
    with pytest.raises(StageError):
        read_requests(path)


def test_a_request_with_a_step_more_says_it_and_fits_its_signature(tmp_path: Path) -> None:
    path = tmp_path / "norms.toml"
    path.write_text(
        '[[request]]\nformula = "y[r, c] = x[r, c] / sqrt((sum[k] x[r, k] ** 2) + eps)"\n'
        'given = "const float* x, float* y, int rows, int cols, float eps"\n'
        'words = ["L2-normalise each row of x, eps inside the root"]\n'
        '[[request]]\nformula = "y[r] = sum[c] x[r, c]"\nwords = ["sum of each row"]\n',
        encoding="utf-8",
    )
    found = [each for each in part(read_requests(path), copies=0, steps=60, seed="1") if isinstance(each, Example)]
    assert len({each.formula for each in found}) > 40
    for each in (each for each in found if "/extended/" in each.provenance.seed):
        assert not wrong(Request(each.formula, each.given, (each.problem,), ""))
        assert len(each.problem) > len("sum of each row")
    bound = [each for each in found if "clamp" in each.formula]
    assert bound and all(
        "limit" in e.problem or "cl" in e.problem or "satur" in e.problem or "below" in e.problem for e in bound
    )
