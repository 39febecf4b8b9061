"""Where kernels to learn from come from: the sample tree, and the examples that rules and rewrites carry."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from warpwright.rewrites.registry import all_rewrites
from warpwright.rules.registry import all_rules
from warpwright.syntax.source import Source, read_source

from warpwright_upskill.console import StageError
from warpwright_upskill.examples import Provenance

SECTION = re.compile(r"^## (.+)$", re.M)
FINDINGS = re.compile(r"Pitfall:|Nothing to find here")
FENCE = re.compile(r"^```cuda\n(.*?)^```", re.M | re.S)


@dataclass(frozen=True, slots=True)
class Origin:
    """A text to learn from; `problem` says what it computes, "" where nothing says so."""

    provenance: Provenance
    source: Source
    problem: str = ""


def sample_origins(folder: Path) -> list[Origin]:
    """One per `<family>/<sample>/kernel.cu` under `folder`, sorted. Raises StageError where there is none."""
    paths = sorted(folder.glob("*/*/kernel.cu"))
    if not paths:
        raise StageError(f"{folder}: holds no <family>/<sample>/kernel.cu; give the folder of the samples.")
    return [_sample(path, folder) for path in paths]


def _sample(path: Path, folder: Path) -> Origin:
    source = read_source(path)
    name = path.parent.relative_to(folder).as_posix()
    # Provenance and messages name the file as it lies in the tree, on whatever machine the tree is.
    placed = Source(f"{folder.name}/{name}/{path.name}", source.data)
    return Origin(Provenance("sample", name), placed, described(source.text()))


def described(text: str) -> str:
    """What a file's opening comment says that it computes: its sentences before what there is to find in it.

    >>> described("// Sums each row\\n// of a matrix.\\n// Pitfall: it is slow.\\n#include <cmath>\\n")
    'Sums each row of a matrix.'
    """
    words: list[str] = []
    for line in text.splitlines():
        comment = line.strip()
        if not comment.startswith("//"):
            break
        words += comment[2:].split()
    return FINDINGS.split(" ".join(words))[0].strip()


def page_origins() -> Iterator[Origin]:
    """The examples on the pages of all rules (Example) and rewrites (Before / After)."""
    for rule in all_rules():
        for text in code_by_section(rule.doc).get("Example", []):
            yield Origin(Provenance("rule", rule.name), Source(f"rules/{rule.name}.cu", text.encode()))
    for rewrite in all_rewrites():
        for before in code_by_section(rewrite.doc).get("Before", []):
            yield Origin(Provenance("rewrite", rewrite.name), Source(f"rewrites/{rewrite.name}.cu", before.encode()))


def code_by_section(doc: str) -> dict[str, list[str]]:
    """The CUDA blocks of a page, by the heading above them.

    >>> code_by_section("Title.\\n\\n## Before\\n\\n```cuda\\nint a;\\n```\\n\\n## After\\n\\nNone.\\n")
    {'Before': ['int a;\\n']}
    """
    headings = list(SECTION.finditer(doc))
    ends = [heading.start() for heading in headings[1:]] + [len(doc)]
    sections = ((heading[1].strip(), doc[heading.end() : end]) for heading, end in zip(headings, ends, strict=True))
    return {title: blocks for title, text in sections if (blocks := FENCE.findall(text))}
