"""Bytecode of what the harness imports, where whoever installed it left none, as uv does: to compile torch's modules
anew takes more than a second of every start.

A process that runs nothing of a user's writes it, to a folder that no harness may write to.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from warpwright.directories import cache_dir
from warpwright.syntax.encoding import encoded

WHOLE = "whole"
"""The file that says that all was written; `warpwright_harness.__main__` makes it."""
_SECONDS = 300.0


@cache
def bytecode_variables(python: str) -> dict[str, str]:
    """What has a harness find its bytecode, nothing where there is none of ours. The same for as long as this process
    lives: its harnesses are of one kind."""
    folder = _folder(python)
    return {"PYTHONPYCACHEPREFIX": str(folder)} if folder is not None and (folder / WHOLE).is_file() else {}


def write_bytecode(python: str, environment: Mapping[str, str]) -> None:
    """Have it written for the processes to come; returns at once. `environment` is a harness's."""
    folder = _folder(python)
    if folder is None or (folder / WHOLE).is_file():
        return
    own = {name: value for name, value in environment.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [python, "-m", "warpwright_harness", "--imports"]

    def write() -> None:
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run(
                command, env={**own, "PYTHONPYCACHEPREFIX": str(folder)}, timeout=_SECONDS, check=False,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip

    threading.Thread(target=write, daemon=True, name="bytecode").start()


def _folder(python: str) -> Path | None:
    """One for each torch; None for another Python than this one, whose torch nobody knows the version of."""
    if python != sys.executable:
        return None
    try:
        which = (python, sys.version, version("torch"))
    except PackageNotFoundError:
        return None
    return cache_dir() / "bytecode" / sha256(encoded(repr(which))).hexdigest()[:16]
