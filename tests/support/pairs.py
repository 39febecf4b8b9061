"""Pairs of an original and a candidate in Markdown: attacks that must be caught, honest rewrites that must pass.

    ## never_written

    Nothing is written: the buffer may still hold the right result.     what it does

    - caught: outputs hold bytes before each run that no kernel writes  how it is caught
    - emulator: wrong                                                   the statuses that are true of it
    - cuda: wrong unsafe
    - words: was not written                                            what its reason says (where both are wrong)
    - uncovered: host-code                                              optional: what a verdict of it does not cover
    - goal: speed                                                       optional

    ```cuda
    //// both
    ... text of both files ...
    //// original
    ... text of the original alone ...
    //// candidate
    ```

A file holds the attacks of one kind. Lines of the candidate keep their numbers. `words` may hold two sides of a `|`:
the emulator's and the GPU's. Originals that are the same text are compiled once.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from support.texts import Text, texts_in
from warpwright.syntax.source import Source

TESTS = Path(__file__).resolve().parent.parent
ATTACKS, HONEST = TESTS / "attacks", TESTS / "honest"
_FIELD = re.compile(r"- (caught|emulator|cuda|words|goal|kernel|uncovered): (.*)")
_MARK = "//// "


@dataclass(frozen=True)
class Pair:
    """One of them. `expected` are the statuses by backend, `words` stand in the reason where the pair is rejected, and
    of `uncovered` one at least is named where it is not."""

    name: str
    kind: str
    what: str
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


def read_pair(written: Text) -> Pair:
    """Raises ValueError where a field is missing or a status is none."""
    what, fields = what_and_fields(written)
    if lacking := {"emulator", "cuda"} - fields.keys():
        raise ValueError(f"{written.id} does not say {', '.join(sorted(lacking))}")
    said = [part.strip() for part in fields.get("words", "").split("|")]
    words = dict(zip(("emulator", "cuda"), (said * 2)[:2], strict=True))
    original, candidate = _sides(written)
    folder = written.file.parent
    compact = "\n".join(line for line in original if line) + "\n"
    return Pair(
        written.name,
        written.file.stem,
        what,
        fields.get("caught", ""),
        {backend: tuple(fields[backend].split()) for backend in ("emulator", "cuda")},
        words,
        fields.get("goal", "speed"),
        fields.get("kernel"),
        tuple(fields.get("uncovered", "").split()),
        Source(str(folder / "original.cu"), compact.encode()),
        Source(str(folder / f"{written.name}.cu"), ("\n".join(candidate) + "\n").encode()),
    )


def what_and_fields(written: Text) -> tuple[str, dict[str, str]]:
    """What is said of a candidate, and its fields. Raises ValueError for a line that is none."""
    what, _, listed = written.said.partition("\n\n")
    fields: dict[str, str] = {}
    for line in listed.splitlines():
        found = _FIELD.fullmatch(line)
        if not found:
            raise ValueError(f"{written.id}: `{line}` is no field")
        fields[found[1]] = found[2].strip()
    return " ".join(what.splitlines()), fields


def _sides(written: Text) -> tuple[list[str], list[str]]:
    """The lines of the original and of the candidate, each empty where the line is the other's."""
    original: list[str] = []
    candidate: list[str] = []
    section = ""
    for line in written.text.splitlines():
        if marked := line.startswith(_MARK):
            section = line.removeprefix(_MARK).strip()
        if section not in ("both", "original", "candidate"):
            raise ValueError(f"{written.id}: `{line}` begins no section and stands in none")
        for side, text in (("original", original), ("candidate", candidate)):
            text.append(line if section in ("both", side) and not marked else "")
    return original, candidate


def pairs_in(folder: Path) -> list[Pair]:
    """Every pair in the files of a folder, in the order of their names."""
    return sorted(map(read_pair, texts_in(folder)), key=lambda pair: pair.name)
