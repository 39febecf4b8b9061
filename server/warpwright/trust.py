"""The folders that the user allowed: what lies in them may be compiled where nothing confines a compiler, and may have
its own folders of includes elsewhere.

They are kept in a file in the user's configuration, where no project can write. An editor that asks its user itself,
as VS Code does, says which in the environment of the server that it starts: WARPWRIGHT_TRUSTED_FOLDERS.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from warpwright.directories import config_dir, write_whole
from warpwright.files import read_file

VARIABLE = "WARPWRIGHT_TRUSTED_FOLDERS"
"""Folders between the system's path separators."""
_MOST_BYTES = 1 << 20


class TrustError(Exception):
    """A folder cannot be allowed; the message is one sentence."""


def trust_file() -> Path:
    """Where the allowed folders are kept: a list of absolute paths, as JSON."""
    return config_dir() / "trusted_folders.json"


def trusted_folders() -> tuple[Path, ...]:
    """The folders that the file lists, by name; none where it is not there or is no such list."""
    try:
        listed = json.loads(read_file(trust_file(), _MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return ()
    return tuple(sorted(_folders(listed if isinstance(listed, list) else [])))


def is_trusted(path: str | Path) -> bool:
    """Whether a file or a folder lies in one that the user allowed; links are followed first."""
    if not Path(path).is_absolute():
        return False
    allowed = {*trusted_folders(), *_folders(os.environ.get(VARIABLE, "").split(os.pathsep))}
    real = Path(os.path.realpath(path))
    return bool(allowed & {real, *real.parents})


def trust(folder: Path) -> Path:
    """Allow a folder, with all that is in it; the folder as it is kept. Raises TrustError and OSError."""
    real = Path(os.path.realpath(folder))
    if not real.is_dir():
        raise TrustError(f"{folder} is not a folder.")
    home = Path.home().resolve()
    if real in (home, *home.parents):
        raise TrustError(f"{folder} holds all that is yours; allow the folder of a project in it.")
    _keep({*trusted_folders(), real})
    return real


def revoke(folder: Path) -> None:
    """Take a folder back. Raises TrustError where it is not among those that are kept, and OSError."""
    real, kept = Path(os.path.realpath(folder)), trusted_folders()
    if real not in kept:
        above = next((each for each in kept if each in real.parents), None)
        why = f"; {above}, which holds it, is" if above is not None else ""
        raise TrustError(f"{folder} is not among the allowed folders{why}.")
    _keep({*kept} - {real})


def _folders(names: list[str]) -> set[Path]:
    """The names that are absolute, with links followed: a relative one would be another in each folder."""
    return {Path(os.path.realpath(name)) for name in names if isinstance(name, str) and Path(name).is_absolute()}


def _keep(folders: set[Path]) -> None:
    write_whole(trust_file(), json.dumps(sorted(map(str, folders)), indent=1) + "\n")
