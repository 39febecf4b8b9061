"""Where programs and modules are looked for: in no folder that depends on where a process was started, which may be a
project's.

It imports nothing that is not loaded when Python starts, as that would be looked for there.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import MutableMapping

_LISTS = ("PATH", "LD_LIBRARY_PATH", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH")
_FOLDERS = ("CUDA_HOME", "CUDA_PATH", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME")
_NOWHERE = os.path.join(os.path.abspath(os.sep), "nonexistent")  # noqa: PTH100, PTH118
"""For a PATH of which nothing is left: an empty one is the working directory."""


def import_nothing_from_here() -> None:
    """Take the working directory, which `python -m` puts first, from where modules are looked for; unless it is where
    this package lies."""
    try:
        here = os.getcwd()  # noqa: PTH109
    except OSError:  # it is gone
        return
    if sys.path and sys.path[0] in ("", here) and not __file__.startswith(os.path.join(here, "warpwright")):  # noqa: PTH118
        del sys.path[0]


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
            kept = [part for part in environment[name].split(os.pathsep) if os.path.isabs(part)]  # noqa: PTH117
            environment[name] = os.pathsep.join(kept)
            if not kept and name == "PATH":
                environment[name] = _NOWHERE
            elif not kept:
                del environment[name]
    for name in _FOLDERS:
        if name in environment and not os.path.isabs(environment[name]):  # noqa: PTH117
            del environment[name]
    if os.name == "nt":
        environment["NoDefaultCurrentDirectoryInExePath"] = "1"  # Windows looks there first
