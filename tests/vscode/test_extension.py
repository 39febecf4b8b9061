"""The VS Code extension in a real VS Code: every line that the runs of client-vscode/test print is its own result."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import pytest
from support.vscode import CLIENT, EDITOR, ROOT, environment, node

RESULT = re.compile(
    r"^(?P<run>[\w-]+): (?P<verdict>ok|skipped|FAILED) (?P<name>[^:\n]*)(?:: (?P<why>.*))?$", re.MULTILINE
)
TARGET = "linux-arm64" if platform.machine() == "aarch64" else "linux-x64"
LONGEST_SECONDS = 1800


def _all_cores() -> None:
    """VS Code and its browser are not bound to this process's share of the processors."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked .vsix; the working tree's own folder where the libraries for it cannot be fetched."""
    folder = tmp_path_factory.mktemp("vsix")
    command = [sys.executable, "tools/vsix.py", "--target", TARGET, "--out", str(folder)]
    made = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
    if made.returncode:
        warnings.warn(f"VS Code ran the working tree, for no .vsix could be made: {made.stderr[-500:]}", stacklevel=1)
        return CLIENT
    with zipfile.ZipFile(folder / f"warpwright-{TARGET}.vsix") as archive:
        archive.extractall(folder)
    return folder / "extension"


@pytest.mark.node
@pytest.mark.parametrize(
    "command", [["npm", "run", "--silent", "check"], ["node", "test/unit.mjs"]], ids=["types", "unit"]
)
def test_without_vscode(command: list[str]) -> None:
    done = subprocess.run(command, cwd=CLIENT, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.vscode
@pytest.mark.parametrize(
    ("script", "options"),
    [
        pytest.param("run.mjs", ["--run", "read-only"], id="read-only"),
        pytest.param("run.mjs", [], id="run.mjs", marks=pytest.mark.slow),
        pytest.param("page.mjs", [], id="page.mjs", marks=pytest.mark.slow),
    ],
)
def test_in_vscode(script: str, options: list[str], extension: Path, subtests: pytest.Subtests) -> None:
    command = [node(), f"test/{script}", str(EDITOR), str(extension), *options]
    variables = environment(WARPWRIGHT_TEST_PYTHON=sys.executable)
    done = subprocess.run(
        command,
        cwd=CLIENT,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_SECONDS,
        preexec_fn=_all_cores,
    )
    results = list(RESULT.finditer(done.stdout))
    ends = [*(result.start() for result in results[1:]), len(done.stdout)]
    for result, end in zip(results, ends, strict=True):
        with subtests.test(f"{result['run']}: {result['name']}"):
            if result["verdict"] == "skipped":
                pytest.skip(result["why"])
            assert result["verdict"] == "ok", done.stdout[result.start() : end]
    assert done.returncode == 0 and results, done.stdout + done.stderr
