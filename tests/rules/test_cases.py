"""Each rule's cases: programs that carry the findings on them as carets, strict both ways."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.carets import Mark, check_marks, stripped
from support.findings import findings, marks
from support.texts import Text, read_texts, texts_in
from warpwright.rules.registry import all_rules

FOLDER = Path(__file__).parent / "cases"
CLEAN = "clean"
"""Kernels that every rule has to be silent about."""
LONGEST_HEADLINE = 90
"""Characters, not counting the code that it quotes."""


@pytest.mark.parametrize("case", texts_in(FOLDER), ids=lambda case: case.id)
def test_findings_are_those_marked(case: Text) -> None:
    """Programs whose names differ in their endings alone are one extension."""
    rule, name = case.file.stem, Path(case.name)
    beside = {
        each.name: stripped(each.text)
        for each in read_texts(case.file)
        if each.name != case.name and Path(each.name).stem == name.stem
    }

    def found(text: str) -> list[Mark]:
        every = findings(text, "" if rule == CLEAN else rule, case.name, beside)
        for finding in every:
            words = re.sub(r"`[^`]*`", "`x`", finding.headline)
            assert len(words) < LONGEST_HEADLINE, words
        return marks(every)

    check_marks(case, found)


@pytest.mark.parametrize("case", read_texts(FOLDER / f"{CLEAN}.md"), ids=lambda case: case.name)
def test_clean_cases_are_clean(case: Text) -> None:
    assert not findings(case.text)


def test_every_rule_has_cases_and_every_file_of_cases_a_rule() -> None:
    files = {file.stem for file in FOLDER.glob("*.md") if read_texts(file)}
    assert files - {CLEAN} == {rule.name for rule in all_rules()}
