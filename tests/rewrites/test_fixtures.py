"""Each rewrite's fixtures: `case.cu` becomes `case.expected.cu`, or `case.declined.txt` has the reason why not."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.carets import check_file
from support.findings import fixtures, lost_comments, proposed
from warpwright.rewrites.base import Declined
from warpwright.rewrites.registry import all_rewrites

FIXTURES = Path(__file__).parent / "fixtures"


def _id(path: Path) -> str:
    return path.relative_to(FIXTURES).as_posix()


@pytest.mark.parametrize("path", fixtures(FIXTURES), ids=_id)
def test_result_is_the_expected(path: Path) -> None:
    result = proposed(path.read_text(encoding="utf-8"), path.parent.name, path.name)
    expected, declined = path.with_suffix(".expected.cu"), path.with_suffix(".declined.txt")
    if isinstance(result, Declined):
        assert not expected.exists(), result.reason
        check_file(declined, result.reason + "\n")
    else:
        assert not declined.exists(), "the rewrite was not refused"
        made = result.apply()
        check_file(expected, made.text())
        assert not lost_comments(result.source, made)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("path", fixtures(FIXTURES, ".expected.cu"), ids=_id)
def test_what_was_cured_is_not_cured_again(path: Path) -> None:
    assert isinstance(proposed(path.read_text(encoding="utf-8"), path.parent.name), Declined)


def test_every_rewrite_has_fixtures_and_every_fixture_a_rewrite() -> None:
    folders = {path.name for path in FIXTURES.iterdir() if any(path.iterdir())}
    assert folders == {rewrite.name for rewrite in all_rewrites()}
