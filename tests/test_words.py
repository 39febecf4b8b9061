"""What people read has the words of docs/glossary.md, and none of those that it names as abandoned."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GLOSSARY = ROOT / "docs" / "glossary.md"
OWN_WORDS = (
    "assist/",
    "writer/",
    "upskill",
)
"""What is worded by others, or taught to a model."""


def abandoned() -> list[str]:
    rows = [line for line in GLOSSARY.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    return [phrase for row in rows for phrase in re.findall(r"`([^`]+)`", row.rsplit("|", 2)[1])]


def read_by_people() -> Iterator[tuple[str, str]]:
    """Each place with its text: strings of the program, pages, the extension's texts."""
    for path in sorted((ROOT / "server" / "warpwright").rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"{name}:{node.lineno}", node.value
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "client-vscode" / "package.json"]
    for path in pages:
        if path != GLOSSARY:
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def test_no_abandoned_phrase_is_left() -> None:
    phrases = [phrase.lower() for phrase in abandoned()]
    assert len(phrases) > 20
    found = [
        f"{place}: {phrase}"
        for place, text in read_by_people()
        if not any(word in place for word in OWN_WORDS)
        for said in [" ".join(text.split()).lower()]
        for phrase in phrases
        if phrase in said
    ]
    assert not found, "\n".join(found)
