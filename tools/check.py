"""Everything that must hold before a change goes in: `make check`. Runs all of it, then says what failed."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable

STEPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("format", (PYTHON, "-m", "ruff", "format", "--check", ".")),
    ("lint", (PYTHON, "-m", "ruff", "check", ".")),
    ("types", (PYTHON, "-m", "mypy")),
    ("generated pages", (PYTHON, "tools/generate.py", "--check")),
    ("the commands' page", (PYTHON, "tools/generate_cli.py", "--check")),
    ("the settings' page", (PYTHON, "tools/generate_settings.py", "--check")),
    ("the extension's requirements", (PYTHON, "tools/generate_extras.py", "--check")),
    ("tests", (PYTHON, "-m", "pytest", "-m", "not slow", "--hypothesis-profile=few")),
)


def main(arguments: list[str]) -> int:
    names = [name for name, _ in STEPS]
    unknown = [name for name in arguments if name not in names]
    if unknown:
        print(f"No such step: {', '.join(unknown)}. The steps are: {', '.join(names)}.", file=sys.stderr)
        return 2
    failed = []
    for name, command in STEPS:
        if arguments and name not in arguments:
            continue
        print(f"== {name}", flush=True)
        start = time.monotonic()
        code = subprocess.run(command, cwd=ROOT, check=False, stdin=subprocess.DEVNULL).returncode
        print(f"   {'ok' if code == 0 else f'failed ({code})'} in {time.monotonic() - start:.0f} s", flush=True)
        if code:
            failed.append(name)
    if failed:
        print(f"\nFailed: {', '.join(failed)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
