"""A kernel with what other files of its project say of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from warpwright.cuda.project import files_that_launch
from warpwright.facts.model import Kernel


def in_project(kernel: Kernel) -> Kernel:
    """The kernel, which is known to be launched elsewhere where a file of its project does that. Reads the project's
    files from disk: never call it in a server's process."""
    if kernel.launched_elsewhere or kernel.node is None:
        return kernel
    own = {str(Path(path).absolute()) for path in kernel.sources}
    others = (Path(each.path) for each in files_that_launch(kernel.source.path, kernel.name) if each.path not in own)
    found = next(others, None)
    return kernel if found is None else replace(kernel, launched_elsewhere=f"{found.name} launches {kernel.name}, too")
