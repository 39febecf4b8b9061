"""Each rewrite's cases, in cases/NAME.md: what a text becomes, or why it is declined."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cases import Case, cases_of, check_case, read_cases, written
from support.findings import lost_comments, proposed
from warpwright.rewrites.base import Declined
from warpwright.rewrites.registry import all_rewrites

CASES = cases_of(Path(__file__).parent / "cases")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_result_is_the_expected(case: Case) -> None:
    result = proposed(case.text, case.rewrite, f"{case.name}.cu")
    if isinstance(result, Declined):
        check_case(case, declined=result.reason)
    else:
        made = result.apply()
        check_case(case, expected=made.text())
        assert not lost_comments(result.source, made)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("case", [case for case in CASES if case.expected is not None], ids=lambda case: case.id)
def test_what_was_cured_is_not_cured_again(case: Case) -> None:
    assert isinstance(proposed(case.expected or "", case.rewrite), Declined)


def test_every_rewrite_has_cases_and_every_case_a_rewrite() -> None:
    assert {case.rewrite for case in CASES} == {rewrite.name for rewrite in all_rewrites()}


def test_a_file_that_is_laid_out_otherwise_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "add-restrict.md"
    begun = Case(file, "begun", "int a;\n")
    file.write_text(written("add-restrict", [begun]), encoding="utf-8")
    assert read_cases(file) == (begun,)
    file = tmp_path / "open.md"
    file.write_text("# open\n\n## open\n\n```cuda\nint a;\n\n## next\n", encoding="utf-8")
    with pytest.raises(ValueError, match="open"):
        read_cases(file)
