"""Why a call took another path than the one in which the kernel ran: the Python lines of both, side by side."""

from __future__ import annotations

import gc
import linecache
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch

MOST_LINES = 20_000
_STANDARD = str(Path(linecache.__file__).parent)
_NOT_USERS = (str(Path(torch.__file__).parent), str(Path(__file__).parent.parent), "<")


@dataclass
class PythonPath:
    """The lines of the user's files that ran, in order, and the exceptions that came up in them."""

    lines: list[tuple[str, int]] = field(default_factory=lambda: [])
    raised: list[tuple[str, int, str]] = field(default_factory=lambda: [])


def path_of(call: Callable[[], Any]) -> PythonPath:
    """The path of one call, whatever becomes of it. Collections of garbage wait, as what they call is no part of it."""
    path = PythonPath()
    before, collects = sys.gettrace(), gc.isenabled()
    gc.disable()
    sys.settrace(_tracer(path))
    try:
        call()
    except Exception as error:
        path.raised.append(("", 0, type(error).__name__))
    finally:
        sys.settrace(before)
        if collects:
            gc.enable()
    return path


def cause(usual: PythonPath, other: PythonPath) -> str:
    """The exception that was caught, else the line after which the two go different ways; empty where they do not."""
    if other.raised and not any(file == "" for file, _, _ in other.raised):
        known = {(file, line) for file, line, _ in usual.raised}
        for file, line, said in other.raised:
            if (file, line) not in known:
                return f"{_place(file, line)} raises {said}, which is caught"
    last: tuple[str, int] | None = None
    for mine, theirs in zip(usual.lines, other.lines, strict=False):
        if mine != theirs:
            break
        last = mine
    if usual.lines == other.lines:
        return ""
    return f"after {_place(*last)} it goes another way" if last else ""


def _place(file: str, line: int) -> str:
    text = " ".join(linecache.getline(file, line).split())
    return f"{Path(file).name}:{line} (`{text[:90]}`)"


def _tracer(path: PythonPath) -> Callable[..., Any]:
    def local(frame: FrameType, event: str, about: Any) -> Any:
        if len(path.lines) < MOST_LINES and event == "line":
            path.lines.append((frame.f_code.co_filename, frame.f_lineno))
        elif event == "exception":
            said = f"{about[0].__name__}: {' '.join(str(about[1]).split())[:120]}"
            path.raised.append((frame.f_code.co_filename, frame.f_lineno, said))
        return local

    def outer(frame: FrameType, _event: str, _about: Any) -> Any:
        return local if is_users(frame.f_code.co_filename) else None

    return outer


def is_users(file: str) -> bool:
    """Whether a file is neither torch's, nor Python's, nor ours."""
    is_installed = "site-packages" in file or "dist-packages" in file
    return not file.startswith(_NOT_USERS) and (is_installed or not file.startswith(_STANDARD))
