"""The version of a file that was committed last, from git."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from warpwright.missing import Missing
from warpwright.syntax.encoding import shown_bytes

_SECONDS = 10
_PLAIN = {
    "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C",
    "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none",
}  # fmt: skip
"""No object is fetched: how a repository fetches is a command that it may name."""


def committed_text(path: str) -> bytes | Missing:
    """What HEAD has of a file, as it lies in the repository: no filter, hook or driver of the repository is run.

    Blocks for some ten milliseconds.
    """
    file = Path(path)
    if not file.is_absolute() or not file.parent.is_dir():
        return Missing("git", f"{path} is in no folder.", "Save it in a git repository.")
    try:
        shown = subprocess.run(
            ["git", "-C", str(file.parent), "cat-file", "blob", f"HEAD:./{file.name}"],
            capture_output=True,
            env={**os.environ, **_PLAIN},
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        return Missing("git", "git was not found on this machine.", "Install it.")
    except (OSError, subprocess.TimeoutExpired):
        return Missing("git", f"git did not answer about {path}.", "See whether `git status` works there.")
    if shown.returncode == 0:
        return shown.stdout
    said = shown_bytes(shown.stderr).strip().splitlines()
    why = said[-1].removeprefix("fatal: ") if said else "git said nothing"
    return Missing("git", f"There is no committed version of {file.name} ({why}).", "Commit a version that works.")
