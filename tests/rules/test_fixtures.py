"""Each rule's fixtures: CUDA files that carry the findings on them as carets, strict both ways."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.carets import check_marks, stripped
from support.findings import findings, fixtures, marks
from warpwright.rules.registry import all_rules

FIXTURES = Path(__file__).parent / "fixtures"
CLEAN = "clean"
"""A folder for kernels that every rule has to be silent about."""


def _id(path: Path) -> str:
    return path.relative_to(FIXTURES).as_posix()


@pytest.mark.parametrize("path", [*fixtures(FIXTURES), *fixtures(FIXTURES, ".py")], ids=_id)
def test_findings_are_those_marked(path: Path) -> None:
    rule = path.parent.name
    beside = {
        each.name: stripped(each.read_text(encoding="utf-8"))
        for each in path.parent.glob(f"{path.stem}.*")
        if each != path
    }
    check_marks(path, lambda text: marks(findings(text, "" if rule == CLEAN else rule, path.name, beside)))


@pytest.mark.parametrize("path", fixtures(FIXTURES / CLEAN), ids=_id)
def test_clean_fixtures_are_clean(path: Path) -> None:
    assert not findings(path.read_text(encoding="utf-8"))


def test_every_rule_has_fixtures_and_every_fixture_a_rule() -> None:
    folders = {path.name for path in FIXTURES.iterdir() if any(path.iterdir())}
    assert folders - {CLEAN} == {rule.name for rule in all_rules()}
