"""Write docs/settings.md and the settings of the VS Code extension's package.json from the server's table of settings.

python tools/generate_settings.py            write them
python tools/generate_settings.py --check    exit 1 where one of them is stale
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from warpwright.editor.program import KEYS
from warpwright.editor.settings import SETTINGS

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "settings.md"
MANIFEST = ROOT / "client-vscode" / "package.json"
HEAD = """\
# Settings

Under the key `warpwright` of an editor's settings, for all folders or for each of a workspace. A value of the wrong
type is named in a message, and its default is used.

A project has them in `warpwright.toml`, or under `[tool.warpwright]` in `pyproject.toml`: the nearest such file in a
file's folder or above it counts, up to the folder that is open in the editor, else up to the one with `.git`. What it
says holds over the editor's settings. The commands take it too; their options hold over it. Files and folders in it
count from its own folder.

```toml
arch = "sm_90"
flags = ["-std=c++20"]
ignore = ["narrow-access"]

[severities]
bank-conflict = "error"
occupancy = "off"

[blocks]
transpose = [32, 8]
```

A change of the file holds at once. What is wrong in it is a diagnostic in the file and one message that names the line;
the rest of it is used. `"compile": "off"` of an editor stays, whatever a project says: that is how an editor opens a
folder that its user does not trust.

| setting | default | meaning |
|---|---|---|
"""


PROGRAM = """\

## The program's own test

A project's file may say how its program is built and tested. `warpwright verify` and `warpwright optimize` then
[run it](verification.md#the-programs-own-test) with the original and with the candidate that is chosen, in a folder
that you allowed. An editor's settings have no such table.

```toml
[program]
build = "make"
run = "./app --verify"
```

| key of `[program]` | default | meaning |
|---|---|---|
"""


def page() -> str:
    rows = [f"| `{each.name}` | `{json.dumps(each.default)}` | {each.meaning} |" for each in SETTINGS]
    keys = [f"| `{each.name}` | `{json.dumps(each.default)}` | {each.meaning} |" for each in KEYS]
    return HEAD + "\n".join(rows) + "\n" + PROGRAM + "\n".join(keys) + "\n"


def manifest(present: str) -> str:
    """The extension's manifest with the server's settings, behind those of the extension alone."""
    content: dict[str, Any] = json.loads(present)
    known = {f"warpwright.{each.name}" for each in SETTINGS}
    properties: dict[str, Any] = content["contributes"]["configuration"]["properties"]
    own = {name: value for name, value in properties.items() if value.get("scope") == "machine-overridable"}
    assert not own.keys() & known
    servers = {
        f"warpwright.{each.name}": {
            **each.schema,
            "default": each.default,
            "scope": "resource",
            "markdownDescription": each.meaning,
        }
        for each in SETTINGS
    }
    content["contributes"]["configuration"]["properties"] = own | servers
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    wanted = {PAGE: page(), MANIFEST: manifest(MANIFEST.read_text(encoding="utf-8"))}
    stale = [p for p, text in wanted.items() if not p.is_file() or p.read_text(encoding="utf-8") != text]
    if "--check" not in arguments:
        for path in stale:
            path.write_text(wanted[path], encoding="utf-8")
        return 0
    for path in stale:
        print(f"{path.relative_to(ROOT)} is stale: run `python tools/generate_settings.py`", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
