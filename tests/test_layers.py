"""The architecture, enforced: imports go one way, and the server's process stays small."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SERVER = ROOT / "server"

# A package may import itself and the packages of lower levels; packages of one level know nothing of each other.
LEVELS = {
    "algebra": 1,
    "sandbox": 1,
    "timeline": 2,
    "syntax": 1,
    "formulas": 1,
    "schedules": 2,
    "writer": 3,
    "cuda": 2,
    "facts": 3,
    "problems": 4,
    "rules": 4,
    "rewrites": 4,
    "toolchain": 4,
    "emulator": 5,
    "verify": 6,
    "assist": 7,
    "optimize": 8,
    "editor": 9,
    "lsp": 10,
    "cli": 10,
}
SHARED = 0  # modules beside the packages, such as progress.py: plain data that everyone may import

# Where alone a library may be imported, at a file's top or inside a function; "nowhere" is outside `warpwright` only.
OWNERS: dict[str, str | tuple[str, ...]] = {
    "pygls": "lsp/",
    "lsprotocol": "lsp/",
    "llama_cpp": "assist/child.py",
    "numpy": ("assist/child.py", "assist/taught/", "emulator/", "formulas/numpy_"),
    "gguf": "assist/taught/",
    "huggingface_hub": "assist/weights.py",
    "click": "cli/",
    "rich": "cli/",
    "torch": "nowhere",
    "cuda": "nowhere",
    "pydantic": "nowhere",
    "transformers": "nowhere",
    "warpwright_harness": "nowhere",
    "warpwright_upskill": "nowhere",
}

# The language server's process holds none of these: it starts at once and is bundled whole into an editor's extension.
NOT_IN_SERVER = (
    "numpy", "torch", "pydantic", "llama_cpp", "huggingface_hub", "rich", "click", "transformers", "warpwright.cli",
)  # fmt: skip


def modules() -> Iterator[tuple[Path, str]]:
    """Each module of warpwright with its layer, "" for one that lies beside the packages."""
    for path in sorted((SERVER / "warpwright").rglob("*.py")):
        parts = path.relative_to(SERVER / "warpwright").parts
        yield path, parts[0] if len(parts) > 1 else ""


@cache
def imports(path: Path) -> list[tuple[int, str]]:
    """Line and absolute name of everything a file imports, at its top or inside a function."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            assert node.module
            found += ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
    return found


def layer_of(name: str) -> str | None:
    """The layer that an imported name lies in; None outside warpwright."""
    parts = name.split(".")
    if parts[0] != "warpwright":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in LEVELS else ""


def test_every_package_has_a_level() -> None:
    packages = {path.parent.name for path in (SERVER / "warpwright").glob("*/__init__.py")}
    assert packages <= LEVELS.keys()


def test_imports_go_one_way() -> None:
    wrong = []
    for path, layer in modules():
        for line, name in imports(path):
            target = layer_of(name)
            if target in (None, layer):
                continue
            if LEVELS.get(target or "", SHARED) >= LEVELS.get(layer, SHARED):
                wrong.append(f"{path.relative_to(ROOT)}:{line}: {layer or 'a shared module'} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_libraries_stay_in_their_layer() -> None:
    wrong = []
    for path, _ in modules():
        place = path.relative_to(SERVER / "warpwright").as_posix()
        for line, name in imports(path):
            library = name.split(".")[0]
            if library in OWNERS and not place.startswith(OWNERS[library]):
                wrong.append(f"{path.relative_to(ROOT)}:{line}: imports {library}")
    assert not wrong, "\n".join(wrong)


def test_the_server_process_stays_small() -> None:
    """In a process of its own: what `warpwright serve` has loaded when it can answer."""
    code = "import sys, warpwright.lsp.__main__; print('\\n'.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = sorted(name for name in loaded if any(name == bad or name.startswith(f"{bad}.") for bad in NOT_IN_SERVER))
    assert not heavy


@pytest.mark.parametrize("command", ["check", "facts"])
def test_analysis_commands_stay_small(command: str, tmp_path: Path) -> None:
    """`warpwright check one.cu` answers at once, so it loads neither the server nor the model's side."""
    sample = tmp_path / "a.cu"
    sample.write_text("__global__ void k(float *x) { x[threadIdx.x] = 0; }\n", encoding="utf-8")
    code = (
        "import sys; from warpwright.cli.main import run\n"
        f"run([{command!r}, {str(sample)!r}])\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(result.stderr.split())
    heavy = {"numpy", "torch", "rich", "pygls", "lsprotocol", "llama_cpp", "warpwright.verify", "warpwright.assist"}
    assert not heavy & loaded
