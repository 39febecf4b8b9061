"""Profiles by the emulator, made in a process of their own: NumPy and the run's memory stay out of the caller's.

The process is `python -m warpwright.emulator`; it is killed with all that it started where it is cancelled or takes
too long.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import warpwright
from warpwright.facts.model import Assumptions, Program
from warpwright.facts.profile import Profile
from warpwright.facts.profile_document import ProfileError, profile_from_json
from warpwright.missing import Missing
from warpwright.progress import CancelledError, IsCancelled, Progress
from warpwright.sandbox.ending import end_group
from warpwright.syntax.encoding import decoded, encoded, shown_bytes

MOST_SECONDS = 600.0
_POLL_SECONDS = 0.1
_STANDARDS = {"201103L": "11", "201402L": "14", "201703L": "17", "202002L": "20", "202302L": "23"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to profile. `shape` gives some of the problem's symbols a size; the others keep the one that is chosen.
    `folders` are where analysis looks for includes; `flags` are nvcc's, beside the macros of `assume`."""

    kernel: str
    shape: Mapping[str, int]
    assume: Assumptions
    folders: tuple[str, ...] = ()
    seconds: float = MOST_SECONDS
    flags: tuple[str, ...] = ()


def compiler_flags(assume: Assumptions) -> tuple[str, ...]:
    """What an analysis takes for granted, as options of the compiler. The architecture is not among them.

    >>> compiler_flags(Assumptions(defines={"N": "4", "M": None, "__cplusplus": "201703L"}))
    ('-DN=4', '-UM', '-std=c++17')
    """
    flags = []
    for name, body in assume.defines.items():
        if name == "__cplusplus":
            flags.append(f"-std=c++{_STANDARDS.get(body or '', '17')}")
        else:
            flags.append(f"-U{name}" if body is None else f"-D{name}={body}")
    return tuple(flags)


def emulated_profile(
    program: Program, wanted: Wanted, progress: Progress, is_cancelled: IsCancelled
) -> Profile | Missing:
    """Run one kernel of `program` at one shape and count; its text may be an unsaved one, its includes are read from
    disk. Blocks for seconds. Raises CancelledError."""
    request = {
        "path": str(Path(program.source.path).absolute()),
        "text": decoded(program.source.data),
        "kernel": wanted.kernel,
        "shape": dict(wanted.shape),
        "arch": wanted.assume.arch,
        "defines": dict(wanted.assume.defines),
        "included": list(wanted.assume.included),
        "folders": list(wanted.folders),
        "flags": list(wanted.flags),
    }
    with _child(request) as (child, log):
        answer = _answer(child, log, wanted.seconds, progress, is_cancelled)
    if "missing" in answer:
        return Missing(**answer["missing"])
    try:
        return profile_from_json(answer["profile"])
    except (KeyError, ProfileError) as error:
        return Missing("emulator", f"The emulator's answer cannot be read ({error}).", "Report it with the file.")


@contextmanager
def _child(request: Mapping[str, Any]) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    with tempfile.TemporaryFile() as log:
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "warpwright.emulator"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=_environment(),
            start_new_session=True,
        )
        try:
            assert child.stdin is not None
            with suppress(BrokenPipeError):
                child.stdin.write(encoded(json.dumps(request)) + b"\n")
                child.stdin.flush()
            yield child, log
        finally:
            _kill(child)


def _environment() -> dict[str, str]:
    """The child imports this warpwright; one thread is what its arrays use."""
    path = [str(Path(warpwright.__file__).parent.parent), *(p for p in sys.path if p and Path(p).is_absolute())]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(path)), "OPENBLAS_NUM_THREADS": "1"}


def _answer(
    child: subprocess.Popen[bytes], log: IO[bytes], seconds: float, progress: Progress, is_cancelled: IsCancelled
) -> dict[str, Any]:
    """The last message of the child, or one that says why there is none."""
    assert child.stdout is not None
    deadline = time.monotonic() + seconds
    buffer = b""
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while True:
            if is_cancelled():
                raise CancelledError
            if time.monotonic() > deadline:
                return _missing(f"The run was not done in {seconds:g} seconds and was stopped.", "Try a smaller shape.")
            if not selector.select(_POLL_SECONDS):
                continue
            chunk = os.read(child.stdout.fileno(), 1 << 16)
            if not chunk:
                return _ended(child.wait(), log)
            *lines, buffer = (buffer + chunk).split(b"\n")
            for line in lines:
                message: dict[str, Any] = json.loads(line)
                if "progress" not in message:
                    return message
                progress(message["progress"], message["share"])


def _ended(status: int, log: IO[bytes]) -> dict[str, Any]:
    """Why a child has not answered."""
    if sys.platform != "win32" and status == -signal.SIGKILL:
        return _missing("The emulator was killed, as the system does where memory runs out.", "Try a smaller shape.")
    return _missing(f"The emulator ended unexpectedly{_last_words(log)}.", "Report it with the file.")


def _missing(reason: str, advice: str) -> dict[str, Any]:
    return {"missing": {"what": "emulator", "reason": reason, "advice": advice}}


def _last_words(log: IO[bytes]) -> str:
    log.seek(0)
    lines = [line.strip() for line in shown_bytes(log.read()).splitlines() if line.strip()]
    return f" ({lines[-1][:200]})" if lines else ""


def _kill(child: subprocess.Popen[bytes]) -> None:
    """End the child and what it started; close the pipes to it."""
    end_group(child.pid)
    child.wait()
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
