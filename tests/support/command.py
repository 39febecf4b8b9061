"""The command line as a user runs it: a process, its exit status and what it printed."""

from __future__ import annotations

import atexit
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from support.forked import Commands

COMMAND = (sys.executable, "-m", "warpwright.cli")
SHOWN_OTHERWISE = ("FORCE_COLOR", "NO_COLOR", "WARPWRIGHT_DEBUG", "COLUMNS", "LINES")
"""Variables by which a command prints otherwise."""
STARTS_OTHERWISE = ("PYTHON", "LC_", "LANG")
"""What variables begin with that Python reads before the program."""


@dataclass(frozen=True, slots=True)
class Ran:
    status: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)


def run_command(*arguments: str | Path, cwd: Path, env: Mapping[str, str] | None = None, seconds: float = 120) -> Ran:
    """Run `warpwright ARGUMENTS...` in `cwd`. Whatever it is for, it must not print a traceback.

    It is a process of its own, forked off one that has loaded the program; one that Python starts anew where `env` has
    variables that Python reads first.
    """
    if any(name.startswith(STARTS_OTHERWISE) for name in env or ()):
        done = subprocess.run(
            [*COMMAND, *map(str, arguments)],
            cwd=cwd,
            env=environment(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
        return _ran(done.returncode, done.stdout, done.stderr)
    return run_forked("warpwright", *arguments, cwd=cwd, env=environment(env), seconds=seconds)


def run_forked(program: str, *arguments: str | Path, cwd: Path, env: Mapping[str, str], seconds: float) -> Ran:
    """The same for any program that `support.forked` knows, with `env` alone."""
    with TemporaryFile() as stdout, TemporaryFile() as stderr:
        status = _commands(program).run([*map(str, arguments)], cwd, env, stdout, stderr, seconds)
        stdout.seek(0)
        stderr.seek(0)
        return _ran(status, stdout.read(), stderr.read())


def _ran(status: int, stdout: bytes, stderr: bytes) -> Ran:
    said, errors = (each.decode("utf-8", "replace").replace("\r\n", "\n") for each in (stdout, stderr))
    assert "Traceback" not in errors, errors
    return Ran(status, said, errors)


@cache
def _commands(program: str) -> Commands:
    """One for this process, as long as it lives."""
    commands = Commands(program)
    atexit.register(commands.close)
    return commands


def command_on_path(folder: Path) -> str:
    """A PATH on which `warpwright` is what is under test; the program for it is put into `folder`."""
    script = folder / "warpwright"
    script.write_text(f'#!/bin/sh\nexec {shlex.join(COMMAND)} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def python_program(path: Path, text: str) -> None:
    """Write a program that this Python runs, wherever that lies: the first line of a file names no interpreter with a
    blank in its path, nor one with a long one. The line below it is the shell's and a string to Python."""
    path.write_text(f"#!/bin/sh\n'''exec' \"{sys.executable}\" \"$0\" \"$@\"\n' '''\n{text}", encoding="utf-8")
    path.chmod(0o755)


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without what changes the command's output."""
    own = {name: value for name, value in os.environ.items() if name not in SHOWN_OTHERWISE}
    return own | dict(extra or {})
