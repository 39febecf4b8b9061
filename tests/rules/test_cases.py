"""Each rule's cases: programs that carry the findings on them as carets, strict both ways."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.carets import check_marks, stripped
from support.findings import findings, marks
from support.texts import Text, read_texts, texts_in
from warpwright.rules.registry import all_rules

FOLDER = Path(__file__).parent / "cases"
CLEAN = "clean"
"""Kernels that every rule has to be silent about."""


@pytest.mark.parametrize("case", texts_in(FOLDER), ids=lambda case: case.id)
def test_findings_are_those_marked(case: Text) -> None:
    """Programs whose names differ in their endings alone are one extension."""
    rule, name = case.file.stem, Path(case.name)
    beside = {
        each.name: stripped(each.text)
        for each in read_texts(case.file)
        if each.name != case.name and Path(each.name).stem == name.stem
    }
    check_marks(case, lambda text: marks(findings(text, "" if rule == CLEAN else rule, case.name, beside)))


@pytest.mark.parametrize("case", read_texts(FOLDER / f"{CLEAN}.md"), ids=lambda case: case.name)
def test_clean_cases_are_clean(case: Text) -> None:
    assert not findings(case.text)


def test_every_rule_has_cases_and_every_file_of_cases_a_rule() -> None:
    files = {file.stem for file in FOLDER.glob("*.md") if read_texts(file)}
    assert files - {CLEAN} == {rule.name for rule in all_rules()}
