"""Bytecode that no installer left is written once, where no harness may write, and used by the processes to come."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from warpwright.verify import bytecode
from warpwright.verify.bytecode import WHOLE, bytecode_variables, write_bytecode
from warpwright.verify.harness import harness_kind


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WARPWRIGHT_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("WARPWRIGHT_GPU_PYTHON", raising=False)
    monkeypatch.setattr(bytecode, "version", lambda package: f"{package} 2.11")
    bytecode_variables.cache_clear()
    return tmp_path


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """The environments of the processes that write, each of which ends at once, done."""
    found: list[dict[str, str]] = []

    def run(command: list[str], *, env: dict[str, str], **_: Any) -> None:
        assert command == [sys.executable, "-m", "warpwright_harness", "--imports"]
        found.append(env)
        folder = Path(env["PYTHONPYCACHEPREFIX"])
        folder.mkdir(parents=True)
        (folder / WHOLE).touch()

    monkeypatch.setattr(subprocess, "run", run)
    return found


def written() -> None:
    write_bytecode(sys.executable, {"PATH": "/bin", "PYTHONDONTWRITEBYTECODE": "1"})
    for thread in threading.enumerate():
        if thread.name == "bytecode":
            thread.join(10)


def test_it_is_written_once_and_found_by_processes_to_come(started: list[dict[str, str]], cache: Path) -> None:
    assert bytecode_variables(sys.executable) == {}
    written()
    written()
    (environment,) = started
    assert "PYTHONDONTWRITEBYTECODE" not in environment and environment["PATH"] == "/bin"
    assert bytecode_variables(sys.executable) == {}, "the processes that there are stay of one kind"
    bytecode_variables.cache_clear()
    kind = harness_kind()
    assert kind.environment["PYTHONPYCACHEPREFIX"] == environment["PYTHONPYCACHEPREFIX"]
    assert kind.environment["PYTHONDONTWRITEBYTECODE"] == "1"
    folder = Path(environment["PYTHONPYCACHEPREFIX"])
    assert folder.is_relative_to(cache)
    assert not any(folder.is_relative_to(place) for place in kind.policy.writes), "what runs there may be a candidate's"


def test_another_torch_has_its_own_and_another_python_none(
    started: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    written()
    monkeypatch.setattr(bytecode, "version", lambda package: f"{package} 2.12")
    bytecode_variables.cache_clear()
    assert bytecode_variables(sys.executable) == {}
    written()
    assert len({each["PYTHONPYCACHEPREFIX"] for each in started}) == 2
    write_bytecode("/another/python", {})
    assert bytecode_variables("/another/python") == {}
    assert len(started) == 2


def test_what_was_not_written_whole_is_not_used(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    def run(_: list[str], *, env: dict[str, str], **__: Any) -> None:
        Path(env["PYTHONPYCACHEPREFIX"]).mkdir(parents=True)
        raise subprocess.TimeoutExpired("python", 1)

    monkeypatch.setattr(subprocess, "run", run)
    written()
    assert list((cache / "bytecode").iterdir())
    assert bytecode_variables(sys.executable) == {}
