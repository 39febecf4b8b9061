"""The VS Code that `tools/install_vscode.py` installs, and why it cannot be used where it is not there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CLIENT = ROOT / "client-vscode"
EDITOR = ROOT / ".build" / "vscode"
TOOLS = EDITOR / "node_modules" / ".bin"


def lacks_node() -> str:
    """Why the extension cannot be built here; "" where it can."""
    for needed in (EDITOR / "installed.json", CLIENT / "node_modules" / ".package-lock.json"):
        if not needed.is_file():
            return (
                "Node and VS Code are not installed: `make test` does it where npm is on PATH and reaches its registry"
            )
    return ""


def lacks_vscode() -> str:
    """Why VS Code cannot be run and looked at here; "" where it can."""
    chromium = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
    return lacks_node() or ("" if chromium.is_file() else f"no Chromium: {chromium} is not there")


def environment(**more: str) -> dict[str, str]:
    """That of this process with the installed Node first on PATH, and Chromium's place."""
    return {**os.environ, "PATH": f"{TOOLS}{os.pathsep}{os.environ['PATH']}", **more}


def node() -> str:
    """The installed Node. Raises AssertionError where there is none."""
    found = shutil.which("node", path=str(TOOLS))
    assert found is not None
    return found
