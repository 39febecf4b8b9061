"""Where programs are looked for: in no folder that depends on where a process was started, which may be a project's."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from pathlib import Path

_LISTS = ("PATH", "LD_LIBRARY_PATH", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH")

_FOLDERS = ("CUDA_HOME", "CUDA_PATH", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME")
_NOWHERE = str(Path(os.sep).resolve() / "nonexistent")
"""For a PATH of which nothing is left: an empty one is the working directory."""


def use_absolute_folders(environment: MutableMapping[str, str] = os.environ) -> None:
    """Take `.`, empty and other relative folders out of this process's search paths, and so out of its children's; and
    of what names one folder what is relative.

    >>> given = {"PATH": os.pathsep.join([".", "", "/usr/bin", "node_modules/.bin"]), "CPATH": "include"}
    >>> use_absolute_folders(given)
    >>> given
    {'PATH': '/usr/bin'}
    """
    for name in _LISTS:
        if name in environment:
            kept = [part for part in environment[name].split(os.pathsep) if Path(part).is_absolute()]
            environment[name] = os.pathsep.join(kept)
            if not kept and name == "PATH":
                environment[name] = _NOWHERE
            elif not kept:
                del environment[name]
    for name in _FOLDERS:
        if name in environment and not Path(environment[name]).is_absolute():
            del environment[name]
    if os.name == "nt":
        environment["NoDefaultCurrentDirectoryInExePath"] = "1"  # Windows looks there first
