"""Each case is a program as `warpwright facts --format source` prints it: a caret line under every fact."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.carets import check_text
from support.texts import Text, read_texts
from warpwright.facts.analyze import analyze
from warpwright.facts.document import facts_text
from warpwright.syntax.source import Source

_NOTE = re.compile(r"^//\s*\^+ .*\n", re.MULTILINE)


@pytest.mark.parametrize("case", read_texts(Path(__file__).parent / "cases.md"), ids=lambda case: case.name)
def test_facts_are_exactly_those_in_the_case(case: Text) -> None:
    text = _NOTE.sub("", case.text)
    check_text(case, facts_text(analyze(Source(case.name, text.encode()))).rstrip("\n") + "\n")
