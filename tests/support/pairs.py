"""Pairs of an original and a candidate in one CUDA file: attacks that must be caught, honest rewrites that must pass.

    // Nothing is written: the buffer may still hold the right result.     what it does, in one or more lines
    // row: 1                                                              what it is a case of
    // caught: outputs hold bytes before each run that no kernel writes    how it is caught
    // emulator: wrong                                                     the statuses that are true of it
    // cuda: wrong unsafe
    // words: was not written                                              what its reason says (where both are wrong)
    // uncovered: host-code                                                optional: what a verdict of it does not cover
    // goal: speed                                                         optional
    //// both
    ... text of both files ...
    //// original
    ... text of the original alone ...
    //// candidate

Lines of the candidate keep their numbers. `words` may hold two sides of a `|`: the emulator's and the GPU's. Originals
that are the same text are compiled once.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from warpwright.syntax.source import Source

TESTS = Path(__file__).resolve().parent.parent
ATTACKS, HONEST = TESTS / "attacks", TESTS / "honest"
_FIELD = re.compile(r"// (row|caught|emulator|cuda|words|goal|kernel|uncovered): (.*)")
_MARK = "//// "


@dataclass(frozen=True)
class Pair:
    """One file. `expected` are the statuses by backend, `words` stand in the reason where the pair is rejected, and of
    `uncovered` one at least is named where it is not."""

    name: str
    path: Path
    what: str
    row: str
    caught: str
    expected: Mapping[str, tuple[str, ...]]
    words: Mapping[str, str]
    goal: str
    kernel: str | None
    uncovered: tuple[str, ...]
    original: Source
    candidate: Source

    def surprise(self, backend: str, status: str, reason: str, uncovered: Collection[str]) -> str:
        """What is not as the file says; "" where all is."""
        if status not in self.expected[backend]:
            return f"{status}, not {' or '.join(self.expected[backend])}: {reason}"
        if self.words[backend] and self.words[backend] not in reason and status != "correct":
            return f"its reason lacks `{self.words[backend]}`: {reason}"
        if self.uncovered and not set(self.uncovered) & set(uncovered):
            return f"{status}, and it is not said that this does not cover {' or '.join(self.uncovered)}"
        return ""


def read_pair(path: Path) -> Pair:
    """Raises ValueError where a field is missing or a status is none."""
    lines = path.read_text(encoding="utf-8").splitlines()
    fields: dict[str, str] = {}
    what: list[str] = []
    sides: dict[str, list[str]] = {"original": [], "candidate": []}
    section = ""
    for line in lines:
        if line.startswith(_MARK):
            section = line.removeprefix(_MARK).strip()
            if section not in ("both", *sides):
                raise ValueError(f"{path}: `{line}` is no section")
        elif not section:
            if found := _FIELD.fullmatch(line):
                fields[found[1]] = found[2].strip()
            elif line.startswith("// "):
                what.append(line.removeprefix("// "))
            elif line:
                raise ValueError(f"{path}: `{line}` stands before the first section")
        for side, text in sides.items():
            text.append(line if section in ("both", side) and not line.startswith(_MARK) else "")
    if lacking := {"row", "emulator", "cuda"} - fields.keys():
        raise ValueError(f"{path} does not say {', '.join(sorted(lacking))}")
    said = [part.strip() for part in fields.get("words", "").split("|")]
    words = dict(zip(("emulator", "cuda"), (said * 2)[:2], strict=True))
    compact = "\n".join(line for line in sides["original"] if line) + "\n"
    original = Source(str(path.with_name("original.cu")), compact.encode())
    candidate = Source(str(path), ("\n".join(sides["candidate"]) + "\n").encode())
    return Pair(
        path.stem,
        path,
        " ".join(what),
        fields["row"],
        fields.get("caught", ""),
        {backend: tuple(fields[backend].split()) for backend in ("emulator", "cuda")},
        words,
        fields.get("goal", "speed"),
        fields.get("kernel"),
        tuple(fields.get("uncovered", "").split()),
        original,
        candidate,
    )


def pairs_in(folder: Path) -> list[Pair]:
    """Every CUDA file of a folder, in the order of their names."""
    return [read_pair(path) for path in sorted(folder.glob("*.cu"))]
