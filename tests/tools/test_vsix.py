"""What is checked of a package of the VS Code extension, and what the server's process imports."""

from __future__ import annotations

import json
import runpy
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHECK = runpy.run_path(str(ROOT / "tools" / "vsix_check.py"))
LIBS = "extension/bundled/libs"
VERSIONS = ("3.11", "3.12")
STEP = {"id": "a", "media": {"image": {"light": "media/a.png", "dark": "media/b.png"}}}
MANIFEST = {"icon": "icon.png", "extensionKind": ["workspace"], "contributes": {"walkthroughs": [{"steps": [STEP]}]}}
PICTURES = "https://github.com/warpwright/warpwright/raw/HEAD"
WHOLE = {
    **dict.fromkeys(CHECK["_HAVE"], ""),
    "extension/package.json": json.dumps(MANIFEST),
    "extension/readme.md": f"![A hover]({PICTURES}/client-vscode/media/hover.png)",
    **dict.fromkeys(("extension/icon.png", "extension/media/a.png", "extension/media/b.png"), ""),
    f"{LIBS}/tree_sitter/_binding.cpython-311-x86_64-linux-gnu.so": "",
    f"{LIBS}/tree_sitter/_binding.cpython-312-x86_64-linux-gnu.so": "",
    f"{LIBS}/tree_sitter_cuda/_binding.abi3.so": "",
    f"{LIBS}/pygls-2.1.1.dist-info/METADATA": "",
    f"{LIBS}/pygls-2.1.1.dist-info/licenses/LICENSE.txt": "",
}


def faults(folder: Path, files: dict[str, str], target: str = "linux-x64") -> list[str]:
    package = folder / "warpwright.vsix"
    with zipfile.ZipFile(package, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    found: list[str] = CHECK["faults"](package, target, VERSIONS)
    return found


def test_a_whole_package_has_no_fault(tmp_path: Path) -> None:
    assert faults(tmp_path, WHOLE) == []


@pytest.mark.parametrize(
    ("lacking", "said"),
    [
        ("extension/changelog.md", "extension/changelog.md is missing"),
        ("extension/LICENSE.txt", "extension/LICENSE.txt is missing"),
        ("extension/icon.png", "extension/icon.png is missing"),
        ("extension/media/b.png", "extension/media/b.png is missing"),
        (f"{LIBS}/pygls-2.1.1.dist-info/licenses/LICENSE.txt", "pygls-2.1.1.dist-info has no licence"),
        (f"{LIBS}/tree_sitter_cuda/_binding.abi3.so", "the compiled grammar is missing"),
        (f"{LIBS}/tree_sitter/_binding.cpython-312-x86_64-linux-gnu.so", "tree-sitter for Python 3.12 is missing"),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, lacking: str, said: str) -> None:
    files = {name: text for name, text in WHOLE.items() if name != lacking}
    assert faults(tmp_path, files) == [said]


def test_a_picture_of_the_readme_is_in_the_repository(tmp_path: Path) -> None:
    readme = f"![A hover]({PICTURES}/media/hover.png)"
    wrong = faults(tmp_path, {**WHOLE, "extension/readme.md": readme})
    assert wrong == ["media/hover.png of the README is not in the repository"]


@pytest.mark.parametrize(
    "name",
    [
        "extension/src/extension.ts",
        "extension/dist/extension.js.map",
        "extension/bundled/server/warpwright/__pycache__/a.cpython-311.pyc",
        "extension/bundled/server/warpwright/cli/main.py",
        f"{LIBS}/attr/tests/test_make.py",
        "extension/bundled/server/conftest.py",
    ],
)
def test_what_does_not_belong_there_is_named(tmp_path: Path, name: str) -> None:
    assert faults(tmp_path, {**WHOLE, name: ""}) == [f"{name} does not belong there"]


def test_size_kind_and_dependencies(tmp_path: Path) -> None:
    manifest = json.dumps({**MANIFEST, "extensionKind": ["ui"], "extensionDependencies": ["ms-python.python"]})
    wrong = faults(
        tmp_path, {**WHOLE, "extension/package.json": manifest, "extension/bundled/big.py": "x" * 35_000_000}
    )
    assert [each[:12] for each in wrong] == ["it does not ", "it needs ano", "it has 35.00"]


def test_wheels_of_another_platform_do_not_do(tmp_path: Path) -> None:
    assert faults(tmp_path, WHOLE, "win32-x64") == [f"tree-sitter for Python {each} is missing" for each in VERSIONS]


def test_the_server_that_answers_imports_nothing_heavy() -> None:
    modules = CHECK["imported"]([ROOT / "server"], (sys.executable,))
    assert {"warpwright", "pygls", "tree_sitter"} <= modules
    assert not modules & CHECK["CANNOT_LOAD"]


def test_every_library_is_pinned_by_its_hashes() -> None:
    entries = (ROOT / "client-vscode" / "libs.txt").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    assert {entry.split("==")[0] for entry in entries} >= {"pygls", "lsprotocol", "tree-sitter", "tree-sitter-cuda"}
    for entry in entries:
        version, *hashes = entry.split()
        assert "==" in version
        assert hashes and all(each.startswith("--hash=sha256:") for each in hashes)
