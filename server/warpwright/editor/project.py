"""A project's settings: `warpwright.toml`, or `[tool.warpwright]` in `pyproject.toml`, in a file's folder or above it.

The nearest counts, and of two in one folder `warpwright.toml`. Its keys are those of the editor's settings
(`editor.settings`), and what it says holds over the editor's. Names of files and folders in it count from its folder.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from warpwright.editor.program import TABLE, read_program
from warpwright.editor.settings import Settings, Wrong, read_settings
from warpwright.files import read_file
from warpwright.syntax.encoding import decoded_utf8
from warpwright.syntax.stamp import Stamp, stamp_of
from warpwright.toolchain.program import ProgramTest
from warpwright.trust import is_trusted

NAME = "warpwright.toml"
PYPROJECT = "pyproject.toml"
_TABLE = ("tool", "warpwright")
_MOST_BYTES = 1 << 20
_MOST_PROBLEMS = 20
"""That are shown of one file: to find the line of each takes a look at the whole."""
_HEADER = re.compile(r"\s*\[([^\[\]]+)\]")
_OF_ALLOWED = ("model",)
"""A file of weights may be made to do harm to what reads it."""
_AT = re.compile(r" \(at line (\d+), column \d+\)$")


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong in a project's file, at a 1-based line."""

    path: str
    line: int
    sentence: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.sentence}"


@dataclass(frozen=True, slots=True)
class Project:
    """What one file says: attributes of Settings, the program's own test, and what is wrong in it. `path` is "" where
    there is no file. `lines` are those of the settings that only an allowed folder may have."""

    path: str = ""
    given: Mapping[str, object] = field(default_factory=lambda: {})
    problems: tuple[Problem, ...] = ()
    program: ProgramTest | None = None
    lines: Mapping[str, int] = field(default_factory=lambda: {})

    def over(self, settings: Settings) -> Settings:
        """The editor's settings with the project's in their place. An editor that has nothing compiled, as in a folder
        that its user does not trust, is not overruled by that folder's file."""
        if not self.given:
            return settings
        made = replace(Settings(), **self.given).rooted(Path(self.path).parent)  # type: ignore[arg-type]
        own = {name: getattr(made, name) for name in self.given}
        if settings.compile == "off":
            own.pop("compile", None)
        return replace(settings, **own)


def project_of(path: str, root: Path | None = None) -> Project:
    """The settings of the project that a file is in, looked for up to `root`, else up to the folder of its repository.

    Changes on disk are seen with the next call. Never raises: what cannot be read is a Project with its problem.
    """
    file = Path(path)
    if not file.is_absolute():
        file = file.absolute()
    for folder in _upward(file, root):
        for name in (NAME, PYPROJECT):
            found = folder / name
            stamp = stamp_of(found)
            if stamp is not None and (project := _read(str(found), stamp)) is not None:
                return _as_allowed(project)
    return Project()


def _as_allowed(project: Project) -> Project:
    """What a project says, without what only an allowed folder may."""
    if not project.lines or is_trusted(project.path):
        return project
    reason = f"only an allowed folder chooses it: `warpwright trust {Path(project.path).parent}`."
    refused = (Problem(project.path, line, f"warpwright.{name}: {reason}") for name, line in project.lines.items())
    given = {name: value for name, value in project.given.items() if name not in project.lines}
    return replace(project, given=given, problems=(*project.problems, *refused))


def _upward(file: Path, root: Path | None) -> Iterator[Path]:
    for folder in file.parents:
        yield folder
        if folder == root or (root is None and (folder / ".git").exists()):
            return


@lru_cache(maxsize=256)
def _read(path: str, stamp: Stamp) -> Project | None:
    """What a file says; None for a pyproject.toml that says nothing of warpwright. `stamp` makes a changed file another
    question."""
    is_shared = Path(path).name == PYPROJECT
    if stamp[1] > _MOST_BYTES:
        return None if is_shared else _failed(path, 1, f"it is larger than {_MOST_BYTES >> 20} MB")
    try:
        text = decoded_utf8(read_file(path, _MOST_BYTES))
    except OSError as error:
        return None if is_shared else _failed(path, 1, f"it cannot be read ({error.strerror})")
    except UnicodeDecodeError:
        return None if is_shared else _failed(path, 1, "it is not UTF-8")
    if is_shared and not re.search(r"\[\s*tool\s*\.\s*warpwright\b", text):
        return None
    try:
        content: Any = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        at = _AT.search(str(error))
        line = int(at[1]) if at else text.count("\n") + 1
        return _failed(path, line, _AT.sub("", str(error)))
    except ValueError:
        return _failed(path, 1, "it has a number with thousands of digits")
    for key in _TABLE if is_shared else ():
        content = content.get(key) if isinstance(content, Mapping) else None
    if content is None:
        return None
    program: ProgramTest | None = None
    not_read: tuple[Wrong, ...] = ()
    if isinstance(content, Mapping) and TABLE in content:
        program, not_read = read_program(content[TABLE], Path(path).parent)
        content = {name: value for name, value in content.items() if name != TABLE}
    given, wrong = read_settings(content)
    wrong = (*wrong, *not_read)
    prefix = _TABLE if is_shared else ()
    problems = tuple(Problem(path, _line_of(text, prefix, each.keys), str(each)) for each in wrong[:_MOST_PROBLEMS])
    lines = {name: _line_of(text, prefix, (name,)) for name in _OF_ALLOWED if name in given}
    return Project(path, given, problems, program, lines)


def _failed(path: str, line: int, reason: str) -> Project:
    return Project(path, problems=(Problem(path, line, f"it is not valid TOML and not used: {reason}."),))


def _line_of(text: str, table: tuple[str, ...], keys: tuple[str, ...]) -> int:
    """The 1-based line where a key stands, as `a = ...`, `a.b = ...` or `[a]`; of what has none the table's, else 1.

    >>> text = "[tool.x]\\nn = 1\\n[tool.warpwright.severities]\\n'nosuch' = 'off'\\n"
    >>> _line_of(text, ("tool", "warpwright"), ("severities", "nosuch"))
    4
    """
    wanted = (*table, *keys)
    present: tuple[str, ...] = ()
    best, found = 0, 1
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.match(line)
        if header:
            here = present = _parts(header[1])
        elif "=" in line:
            here = (*present, *_parts(line.partition("=")[0]))
        else:
            continue
        if here == wanted[: len(here)] and len(here) > best:
            best, found = len(here), number
    return found


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))
