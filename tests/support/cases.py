"""The cases of a rewrite, in one Markdown file: a text, and what it becomes or why the rewrite declines it.

## two_arrays

```cuda
__global__ void k(float *x) { ... }
```

becomes

```cuda
__global__ void k(float *__restrict__ x) { ... }
```

## shared_pointer

```cuda
...
```

declined: x is written through another pointer.

In a file for several rewrites the name of a case has its rewrite before it: `## add-restrict/two_arrays`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from support.carets import UPDATE, assert_same

_CASE = re.compile(
    r"## (?P<name>\S+)\n\n```cuda\n(?P<text>.*?)```\n"
    r"(?:\nbecomes\n\n```cuda\n(?P<expected>.*?)```\n|\ndeclined: (?P<declined>[^\n]*)\n)?",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Case:
    """One text of a rewrite. Of `expected` and `declined` one is set; neither is in a case that was just begun."""

    file: Path
    name: str
    text: str
    expected: str | None = None
    declined: str | None = None

    @property
    def rewrite(self) -> str:
        return self.id.partition("/")[0]

    @property
    def id(self) -> str:
        return self.name if "/" in self.name else f"{self.file.stem}/{self.name}"


@cache
def read_cases(file: Path) -> tuple[Case, ...]:
    """The cases of a file. Raises ValueError where something in it is none."""
    text = file.read_text(encoding="utf-8")
    found = tuple(Case(file, **each.groupdict()) for each in _CASE.finditer(text))
    if written(file.stem, found) != text:
        begun = re.findall(r"^## (\S+)$", text, re.MULTILINE)
        names = {case.name for case in found}
        raise ValueError(
            f"{file}: no case, or not laid out as one: {[n for n in begun if n not in names] or 'a blank line'}"
        )
    return found


def written(rewrite: str, cases: Iterable[Case]) -> str:
    """The file of a rewrite's cases."""
    return "\n".join([f"# {rewrite}\n", *map(_section, cases)])


def _section(case: Case) -> str:
    said = f"## {case.name}\n\n```cuda\n{case.text}```\n"
    if case.expected is not None:
        said += f"\nbecomes\n\n```cuda\n{case.expected}```\n"
    if case.declined is not None:
        said += f"\ndeclined: {case.declined}\n"
    return said


def cases_of(folder: Path) -> list[Case]:
    """Every case in the files of a folder."""
    return [case for file in sorted(folder.glob("*.md")) for case in read_cases(file)]


def check_case(case: Case, *, expected: str | None = None, declined: str | None = None) -> None:
    """Assert that a rewrite made of a case what its file says; with UPDATE_EXPECT=1, write it there instead."""
    found = replace(case, expected=expected, declined=declined)
    if UPDATE and found != case:
        read_cases.cache_clear()
        others = [found if each.name == case.name else each for each in read_cases(case.file)]
        case.file.write_text(written(case.file.stem, others), encoding="utf-8")
        return
    assert_same(_section(case), _section(found), case.id)
