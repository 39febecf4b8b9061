"""Real editors, set up as docs/editors.md says, and a project for them to open."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from support.command import command_on_path, environment
from support.kernels import CONFLICT
from support.pages import sections

ROOT = Path(__file__).resolve().parents[2]
PAGE = sections((ROOT / "docs" / "editors.md").read_text(encoding="utf-8"))
UNPACKED = ROOT / ".build" / "editors"  # by tools/editors.py

# It has a finding only with the setting that the page gives.
KERNEL = "#define COLUMNS (__CUDA_ARCH__ == 800 ? 32 : 33)\n" + CONFLICT.replace("tile[32][32]", "tile[32][COLUMNS]")
LINE = 6
SILENCED = KERNEL.replace("    /* é", "    // warpwright: ignore[bank-conflict]\n    /* é")


@dataclass(frozen=True)
class Project:
    """A folder under version control with KERNEL in it, and a home beside it."""

    folder: Path
    home: Path

    @property
    def kernel(self) -> Path:
        return self.folder / "a b.cu"

    def environment(self, **variables: str) -> dict[str, str]:
        """The user's: their own home, `warpwright` on PATH, nothing that an editor would wait for."""
        own = {name: value for name, value in environment().items() if not name.startswith(("XDG_", "TMUX", "NVIM"))}
        return (
            own
            | {
                "HOME": str(self.home),
                "LANG": "C.UTF-8",
                "PATH": command_on_path(self.home),
                "WARPWRIGHT_MODEL": "/no/such/model.gguf",
                "WARPWRIGHT_NVCC": "/no/such/nvcc",
            }
            | variables
        )


def new_project(folder: Path) -> Project:
    project = Project(folder / "my project", folder / "home")
    for made in (project.folder, project.home):
        made.mkdir()
    subprocess.run(["git", "init", "-q", project.folder], check=True)
    project.kernel.write_text(KERNEL, encoding="utf-8")
    return project


def seen_by(project: Project, command: Sequence[str | Path], **variables: str) -> dict[str, Any]:
    """What a script in an editor has seen: the JSON that it wrote to $WW_RESULT, without `problems`."""
    result = project.home / "seen.json"
    done = subprocess.run(
        command,
        cwd=project.folder,
        env=project.environment(WW_RESULT=str(result), **variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert result.exists(), done.stderr
    seen: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    assert not seen.get("problems"), (seen, done.stderr)
    return seen


def programs(name: str) -> Iterator[str]:
    """The program on PATH, then those that were unpacked."""
    if found := shutil.which(name):
        yield found
    yield from (str(path) for path in sorted(UNPACKED.glob(f"*/{name}")) if os.access(path, os.X_OK))


@cache
def version(program: str) -> tuple[int, int]:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"(\d+)\.(\d+)", said)
    assert found is not None, said
    return int(found[1]), int(found[2])
