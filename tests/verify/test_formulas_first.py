"""What is compared before a kernel is shown: each path; the report says the rest."""

from __future__ import annotations

import pytest
from warpwright.emulator.formula_check import shapes_for
from warpwright.formulas.resolve import formula_of
from warpwright.progress import never_cancelled, silent
from warpwright.verify.formulas import Asked, checked_first
from warpwright.verify.report import Status, What
from warpwright.writer.coverage import first, instances, only, paths_at
from warpwright.writer.write import file_text, written

FORMULAS = (
    "y[i] = relu(x[i])",
    "y[r, c] = exp(x[r, c] - m[r]) / sum[c] exp(x[r, c] - m[r]) where m[r] = max[c] x[r, c]",
    "C[i, j] = sum[k] A[i, k] * B[k, j]",
    "y[n, o, h, w] = sum[i, r < 3, s < 3] k[o, i, r, s] * x[n, i, h + r - 1, w + s - 1; zero]",
)


@pytest.mark.parametrize("text", FORMULAS)
def test_no_set_of_paths_is_left_out(text: str) -> None:
    formula = formula_of(text)
    code = written(formula, "f")
    shapes = shapes_for(formula, {})
    some = first(code, formula, shapes)
    assert 0 < len(some) < len(shapes)
    assert any(each.name == "odd" for each in some)
    taken = [{frozenset(paths_at(code, formula, each.sizes)) for each in among} for among in (some, shapes)]
    assert taken[0] == taken[1]


@pytest.mark.nvcc
def test_the_report_says_at_which_sizes_it_was_compared() -> None:
    formula = formula_of(FORMULAS[1])
    code = written(formula, "f")
    report = checked_first(formula, code, file_text(code), Asked("f"), silent, never_cancelled)
    assert report.status is Status.CORRECT
    (left,) = report.uncovered
    assert left.what is What.SIZE and "odd" in left.text and "which cover every code path" in left.text


@pytest.mark.nvcc
def test_a_wrong_kernel_is_refused() -> None:
    formula, other = formula_of("y[i] = x[i] + 1"), formula_of("y[i] = x[i] + 2")
    code = written(other, "f")
    report = checked_first(formula, code, file_text(code), Asked("f"), silent, never_cancelled)
    assert report.status is Status.WRONG


def test_what_no_size_launches_is_left_out_of_what_is_run_and_not_of_what_is_compiled() -> None:
    formula = formula_of(FORMULAS[2])
    code = written(formula, "f")
    some = first(code, formula, shapes_for(formula, {}))
    taken = only(code, formula, some)
    assert instances(taken) < instances(code)
    assert len(file_text(taken)) < len(file_text(code))
    for each in some:
        assert [*paths_at(code, formula, each.sizes).values()] == [*paths_at(taken, formula, each.sizes).values()]


@pytest.mark.nvcc
def test_a_text_is_refused_for_a_path_that_no_size_takes() -> None:
    formula = formula_of(FORMULAS[2])
    code = written(formula, "f")
    text = file_text(code).replace("f_general<long long>", "f_general<nothing>")
    assert text != file_text(code)
    report = checked_first(formula, code, text, Asked("f"), silent, never_cancelled)
    assert report.status is Status.DOES_NOT_COMPILE and "nothing" in report.reason
