"""Whether a tag can be released: `python tools/release.py v0.1.0` prints the version's part of CHANGELOG.md.

It fails where pyproject.toml, the package or the extension has another version, or where the changelog has no dated
part of it.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class ReleaseError(Exception):
    """Why the tag is not released, in one sentence."""


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python tools/release.py vX.Y.Z", file=sys.stderr)
        return 2
    try:
        print(notes(arguments[0]))
    except ReleaseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def versions() -> dict[str, str]:
    """The version in each file that has one."""
    package = re.search(r'__version__ = "([^"]+)"', (ROOT / "server/warpwright/__init__.py").read_text("utf-8"))
    return {
        "pyproject.toml": tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"],
        "server/warpwright/__init__.py": package[1] if package else "",
        "client-vscode/package.json": json.loads((ROOT / "client-vscode/package.json").read_text("utf-8"))["version"],
    }


def notes(tag: str) -> str:
    """What the changelog says of the version of a tag. Raises ReleaseError."""
    version = tag.removeprefix("v")
    for file, found in versions().items():
        if found != version:
            raise ReleaseError(f"{file} has version {found or 'none'}, and the tag is {tag}")
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    head = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$"
    part = re.search(head + r"(?P<notes>.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if part is None:
        raise ReleaseError(f"CHANGELOG.md has no part with a date for {version}")
    return part["notes"].strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
