"""Programs in a Markdown file, each under a heading with its name: what is said of it, and its text.

    # bank-conflict

    ## near_misses.cu

    Lanes that share a word do not conflict.

    ```cuda
    __global__ void near_misses(float* out) { ... }
    ```

The name of one that is no CUDA file ends as that does: `## caller.py`, and may have a folder: `## gather/sample.toml`.
Lines are counted in the text of the program.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

_TEXT = re.compile(
    r"## (?P<name>\S+)\n\n(?:(?P<said>[^`#].*?)\n\n)?```(?:cuda|python|toml)\n(?P<text>.*?)```\n", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Text:
    """One program; `said` are the lines between its name and its text."""

    file: Path
    name: str
    text: str
    said: str = ""

    @property
    def id(self) -> str:
        return f"{self.file.stem}/{self.name}"


@cache
def read_texts(file: Path) -> tuple[Text, ...]:
    """The programs of a file. Raises ValueError where something in it is none."""
    whole = file.read_text(encoding="utf-8")
    found = tuple(Text(file, each["name"], each["text"], each["said"] or "") for each in _TEXT.finditer(whole))
    if _written(file.stem, found) != whole:
        names = {each.name for each in found}
        begun = [name for name in re.findall(r"^## (\S+)$", whole, re.MULTILINE) if name not in names]
        raise ValueError(f"{file}: no program, or not laid out as one: {begun or 'a blank line'}")
    return found


def texts_in(folder: Path) -> list[Text]:
    """Every program in the files of a folder."""
    return [text for file in sorted(folder.glob("*.md")) for text in read_texts(file)]


def write_texts(file: Path, folder: Path) -> list[Path]:
    """Write each program of a file by its name into a folder, and answer with the folders that have some."""
    for each in read_texts(file):
        (folder / each.name).parent.mkdir(parents=True, exist_ok=True)
        (folder / each.name).write_text(each.text, encoding="utf-8")
    return sorted({(folder / each.name).parent for each in read_texts(file)})


def rewrite_text(one: Text, text: str) -> None:
    """Give a program of a file another text."""
    read_texts.cache_clear()
    others = [replace(one, text=text) if each.name == one.name else each for each in read_texts(one.file)]
    one.file.write_text(_written(one.file.stem, others), encoding="utf-8")


def _written(title: str, texts: Iterable[Text]) -> str:
    return "\n".join([f"# {title}\n", *map(_section, texts)])


def _section(one: Text) -> str:
    language = {".py": "python", ".toml": "toml"}.get(Path(one.name).suffix, "cuda")
    said = f"{one.said}\n\n" if one.said else ""
    return f"## {one.name}\n\n{said}```{language}\n{one.text}```\n"
