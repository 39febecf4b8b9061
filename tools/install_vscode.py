"""Install what the tests of the VS Code extension need: Node, a real VS Code and the extension's libraries.

    python tools/install_vscode.py

VS Code goes into .build/vscode (750 MB), the libraries into client-vscode/node_modules; both stay there. It needs npm
and its registry. Where one is missing it says so and succeeds: the tests that need them are then left out. Chromium is
the system's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CLIENT = ROOT / "client-vscode"
EDITOR = ROOT / ".build" / "vscode"
LEFT_OUT = "the tests of the VS Code extension are left out"


def main() -> int:
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        print(f"== VS Code: npm was not found (Debian, Ubuntu: apt install npm); {LEFT_OUT}")
        return 0
    libraries = CLIENT / "node_modules"
    # What is installed, the file that names its versions, and how.
    steps = (
        (EDITOR / "installed.json", CLIENT / "test" / "install.mjs", [node, "test/install.mjs", str(EDITOR)]),
        (libraries / ".package-lock.json", CLIENT / "package-lock.json", [npm, "ci", "--no-audit", "--no-fund"]),
    )
    # The libraries want a newer Node than the system's may be: the one that the first step installs.
    path = f"{EDITOR / 'node_modules' / '.bin'}{os.pathsep}{os.environ['PATH']}"
    for done, versions, command in steps:
        if done.is_file() and done.stat().st_mtime >= versions.stat().st_mtime:
            continue
        print(f"== VS Code: installing {done.parent.relative_to(ROOT)}", flush=True)
        start = time.monotonic()
        ran = subprocess.run(
            command, cwd=CLIENT, env={**os.environ, "PATH": path}, check=False, capture_output=True, text=True
        )
        if ran.returncode:
            print(f"{ran.stderr[-2000:]}\n== VS Code: it could not be installed; {LEFT_OUT}")
            return 0
        print(f"   done in {time.monotonic() - start:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
