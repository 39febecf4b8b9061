"""Each fixture is a CUDA file as `warpwright facts --format source` prints it: a caret line under every fact."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.carets import check_file
from warpwright.facts.analyze import analyze
from warpwright.facts.document import facts_text
from warpwright.syntax.source import Source

FIXTURES = sorted((Path(__file__).parent / "fixtures").glob("*.cu"))
_NOTE = re.compile(r"^//\s*\^+ .*\n", re.MULTILINE)


@pytest.mark.parametrize("path", FIXTURES, ids=lambda p: p.stem)
def test_facts_are_exactly_those_in_the_fixture(path: Path) -> None:
    text = _NOTE.sub("", path.read_text(encoding="utf-8"))
    check_file(path, facts_text(analyze(Source(path.name, text.encode()))).rstrip("\n") + "\n")


def test_there_are_fixtures() -> None:
    assert len(FIXTURES) >= 10
