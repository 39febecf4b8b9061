"""`[program]` of a project's file: how the program is built and tested (`verify.program_run`).

It is read from the project's file alone, and not from an editor's settings: its commands count from that file's folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from warpwright.editor import setting_values as values
from warpwright.editor.settings import Wrong
from warpwright.toolchain.program import ProgramTest

TABLE = "program"


@dataclass(frozen=True, slots=True)
class Key:
    """One key of the table; `read` makes its value or raises ValueError or TypeError."""

    name: str
    read: Callable[[object], object]
    form: str
    default: object
    meaning: str


def _command(value: object) -> str:
    text = values.text(value)
    if not text.strip() or "\0" in text:
        raise ValueError
    return text


def _compare(value: object) -> str:
    if value not in ("output", "status"):
        raise ValueError
    return str(value)


def _tolerance(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 1:
        raise ValueError
    return float(value)


KEYS: tuple[Key, ...] = (
    Key("build", values.text, "a command line", "", "Builds the program, such as `make`; empty where `run` does."),
    Key("run", _command, "a command line", "", "Runs the program's test, such as `./app --verify`. It must be given."),
    Key(
        "compare",
        _compare,
        '"output" or "status"',
        "output",
        'What must be the same: what it prints and its exit status, or with `"status"` that alone.',
    ),
    Key(
        "tolerance",
        _tolerance,
        "a share such as 1e-5",
        0.0,
        "By what share of itself a printed number with a fraction may differ.",
    ),
    Key("seconds", values.seconds, "a number of seconds", 300.0, "The longest that one build or one run may take."),
    Key(
        "reads",
        values.names,
        "a list of folders",
        (),
        "Folders outside of the project, beside the system's, that it reads, such as data sets.",
    ),
)


def read_program(value: object, folder: Path) -> tuple[ProgramTest | None, tuple[Wrong, ...]]:
    """The test that a project's file in `folder` names, and what is wrong in it.

    >>> read_program({"build": "make", "run": "./app"}, Path("/p"))[0].build
    'make'
    >>> [str(each) for each in read_program({"build": "make", "speed": 1}, Path("/p"))[1]]
    ['warpwright.program.speed: there is no such key.', 'warpwright.program.run: must be given; no program is run.']
    """
    if not isinstance(value, Mapping):
        return None, (Wrong((TABLE,), "must be a table with `run`; no program is run."),)
    known = {key.name for key in KEYS}
    wrong = [Wrong((TABLE, str(name)), "there is no such key.") for name in value if name not in known]
    read: dict[str, object] = {}
    for key in KEYS:
        if key.name in value:
            try:
                read[key.name] = key.read(value[key.name])
            except (ValueError, TypeError):
                wrong.append(Wrong((TABLE, key.name), f"must be {key.form}; no program is run."))
                return None, tuple(wrong)
    if "run" not in read:
        return None, (*wrong, Wrong((TABLE, "run"), "must be given; no program is run."))
    return ProgramTest(folder, **read), tuple(wrong)  # type: ignore[arg-type]
