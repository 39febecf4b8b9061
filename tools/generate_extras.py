"""Write what the VS Code extension installs into an environment, from pyproject.toml, requirements/ and the Makefile.

python tools/generate_extras.py            write client-vscode/src/environment/requirements.json
python tools/generate_extras.py --check    exit 1 where it is stale
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WRITTEN = ROOT / "client-vscode" / "src" / "environment" / "requirements.json"
EXTRAS = ("emulator", "cuda", "model", "gpu")
LIBRARY_ONLY = "llama_library_only.cmake"


def requirements() -> str:
    """The extras' requirements, the torch that goes with each compiler, and how the model's runtime is compiled."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    content = {
        "extras": {name: project["optional-dependencies"][name] for name in EXTRAS},
        "torch": {beside: _pins(f"torch-beside-{beside}.txt") for beside in ("wheels", "toolkit")},
        "cmakeArguments": _exported(makefile, "CMAKE_ARGS").replace(f"$(CURDIR)/requirements/{LIBRARY_ONLY}", "{file}"),
        "cmakeFile": (ROOT / "requirements" / LIBRARY_ONLY).read_text(encoding="utf-8"),
        "wheelExclude": _exported(makefile, "SKBUILD_WHEEL_EXCLUDE"),
    }
    assert "{file}" in content["cmakeArguments"]
    return json.dumps(content, indent=2) + "\n"


def _pins(name: str) -> list[str]:
    lines = (ROOT / "requirements" / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _exported(makefile: str, name: str) -> str:
    found = re.search(rf"^export {name} \?= (.*)$", makefile, re.MULTILINE)
    assert found is not None, name
    return " ".join(found.group(1).split())


def main(arguments: list[str]) -> int:
    wanted = requirements()
    if WRITTEN.is_file() and WRITTEN.read_text(encoding="utf-8") == wanted:
        return 0
    if "--check" in arguments:
        print(f"{WRITTEN.relative_to(ROOT)} is stale: run `python tools/generate_extras.py`", file=sys.stderr)
        return 1
    WRITTEN.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
