"""What must be true of a package of the VS Code extension: its files, its size, and what its server imports."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parent.parent
LARGEST_BYTES = 35_000_000
CANNOT_LOAD = frozenset({"numpy", "pydantic", "torch", "llama_cpp", "huggingface_hub", "triton", "click", "rich"})
"""Heavy libraries that the server's process never imports, and those of the terminal, which are not bundled."""

_HAVE = (
    "extension/package.json",
    "extension/dist/extension.js",
    "extension/LICENSE.txt",
    "extension/NOTICE",
    "extension/ThirdPartyNotices.txt",
    "extension/readme.md",
    "extension/changelog.md",
    "extension/bundled/server/warpwright/lsp/__main__.py",
    "extension/bundled/server/warpwright/verify/recorded/runtime.cpp",
    "extension/bundled/server/warpwright_harness/cupti_trace.cpp",
    "extension/bundled/server/warpwright_harness/__main__.py",
    "extension/bundled/server/warpwright/assist/taught/data/card.json",
    "extension/bundled/server/warpwright/assist/taught/data/changes-1.npz",
    "extension/bundled/server/warpwright/assist/taught/data/changes-2.npz",
    "extension/bundled/libs/pygls/__init__.py",
    "extension/bundled/libs/lsprotocol/types.py",
)
_NOT = re.compile(
    r"/(tests?|__pycache__|node_modules|src|\.git|\.vscode)/|\.(ts|map|pyc|c|h|cc|cpp|rs|log|vsix|whl|orig)$|/conftest\.py$"
    r"|/warpwright/cli/"
)
_REPOSITORY = re.escape("https://github.com/warpwright/warpwright")
_MODULES = {
    "linux-x64": "cpython-{}-x86_64-linux-gnu.so",
    "linux-arm64": "cpython-{}-aarch64-linux-gnu.so",
    "darwin-x64": "cpython-{}-darwin.so",
    "darwin-arm64": "cpython-{}-darwin.so",
    "win32-x64": "cp{}-win_amd64.pyd",
    "win32-arm64": "cp{}-win_arm64.pyd",
    "alpine-x64": "cpython-{}-x86_64-linux-musl.so",
}


def faults(package: Path, target: str, versions: Iterable[str]) -> list[str]:
    """What is wrong with a .vsix for a target of VS Code that must serve these versions of Python."""
    with zipfile.ZipFile(package) as archive:
        names = archive.namelist()
        manifest = json.loads(archive.read("extension/package.json")) if "extension/package.json" in names else {}
        readme = archive.read("extension/readme.md").decode() if "extension/readme.md" in names else ""
    wrong = [f"{name} is missing" for name in (*_HAVE, *_pictures(manifest)) if name not in names]
    for path in re.findall(rf"\]\({_REPOSITORY}/(?:raw|blob)/(?:HEAD|main)/([^)]+)\)", readme):
        if not (ROOT / path).exists():
            wrong.append(f"{path} of the README is not in the repository")
    wrong += [f"{name} does not belong there" for name in names if _NOT.search(name) and name not in _HAVE]
    for version in versions:
        module = _MODULES[target].format(version.replace(".", ""))
        if f"extension/bundled/libs/tree_sitter/_binding.{module}" not in names:
            wrong.append(f"tree-sitter for Python {version} is missing")
    if not any(name.startswith("extension/bundled/libs/tree_sitter_cuda/_binding.") for name in names):
        wrong.append("the compiled grammar is missing")
    wrong += [f"{wheel} has no licence" for wheel in _wheels(names) if not _licences(names, wheel)]
    if manifest.get("extensionKind") != ["workspace"]:
        wrong.append("it does not run where the workspace is")
    if manifest.get("extensionDependencies"):
        wrong.append("it needs another extension")
    size = package.stat().st_size
    if size >= LARGEST_BYTES:
        wrong.append(f"it has {size / 1e6:.2f} MB, and {LARGEST_BYTES / 1e6:.0f} MB is the limit")
    return wrong


def _pictures(manifest: dict[str, Any]) -> list[str]:
    """The icon and the walkthrough's pictures."""
    steps = [step for each in manifest.get("contributes", {}).get("walkthroughs", ()) for step in each["steps"]]
    images = [path for step in steps for path in step["media"]["image"].values()]
    return [f"extension/{path}" for path in dict.fromkeys([manifest.get("icon", "icon.png"), *images])]


def _wheels(names: Iterable[str]) -> list[str]:
    found = {match[1] for name in names if (match := re.match(r"extension/bundled/libs/([^/]+\.dist-info)/", name))}
    return sorted(found)


def _licences(names: Iterable[str], wheel: str) -> list[str]:
    of_wheel = re.compile(rf"extension/bundled/libs/{re.escape(wheel)}/(licenses/.*)?(LICEN[CS]E|COPYING)[^/]*$")
    return [name for name in names if of_wheel.match(name)]


def machine_target() -> str:
    """VS Code's name for this machine, but for musl's Linux."""
    systems = {"linux": "linux", "darwin": "darwin", "win32": "win32"}
    processor = "arm64" if platform.machine().lower() in ("arm64", "aarch64") else "x64"
    return f"{systems.get(sys.platform, sys.platform)}-{processor}"


def normal(name: str) -> str:
    """A distribution's name as the package index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


_KERNEL = "__global__ void scale(float* x) { x[threadIdx.x * 2] *= 2.0f; }\n"
_URI = "file:///scale.cu"


def imported(paths: Sequence[Path], python: Sequence[str] = (sys.executable, "-S")) -> set[str]:
    """The top-level modules that a server imports until it has answered a hover, with `paths` before Python's own.

    `-S` leaves the Python's own site-packages out. Raises RuntimeError where there is no answer to the hover.
    """
    document = {"uri": _URI, "languageId": "cuda-cpp", "version": 1, "text": _KERNEL}
    at = {"textDocument": {"uri": _URI}, "position": {"line": 0, "character": _KERNEL.index("x[") + 1}}
    start = {"processId": None, "rootUri": None, "capabilities": {}, "initializationOptions": {"compile": "off"}}
    sent: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": start},
        {"method": "initialized", "params": {}},
        {"method": "textDocument/didOpen", "params": {"textDocument": document}},
        {"id": 2, "method": "textDocument/hover", "params": at},
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "PYTHONPROFILEIMPORTTIME": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "said").open("w+b") as said:
        command = [*python, "-P", "-m", "warpwright.lsp"]
        server = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said
        )
        assert server.stdin is not None and server.stdout is not None
        for message in sent:
            _write(server.stdin, message)
        answer: dict[str, Any] = {}
        while answer.get("id") != 2 and (answer := _read(server.stdout)):
            pass
        for message in ({"id": 3, "method": "shutdown"}, {"method": "exit"}):
            _write(server.stdin, message)
        server.stdout.close()
        server.wait(20)
        said.seek(0)
        lines = said.read().decode(errors="replace")
    if "sector" not in json.dumps(answer):
        last = [line for line in lines.splitlines() if not line.startswith("import time:")][-3:]
        raise RuntimeError(f"the server did not answer: {answer} {last}")
    return {match[1] for match in re.finditer(r"^import time:.*\|\s+(\w+)", lines, re.MULTILINE)}


def _write(stream: IO[bytes], message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    with suppress(BrokenPipeError):
        stream.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        stream.flush()


def _read(stream: IO[bytes]) -> dict[str, Any]:
    """The next message; nothing at the end."""
    length = 0
    while (line := stream.readline()).strip():
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    found: dict[str, Any] = json.loads(stream.read(length)) if length else {}
    return found
