"""For compute-sanitizer stands a script here that starts the side and finds nothing."""

from __future__ import annotations

import importlib.util
import socket
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("not installed: torch", allow_module_level=True)

from warpwright_harness.extension import memory_check
from warpwright_harness.extension.batch import Parameters
from warpwright_harness.extension.judge import Case, Judge
from warpwright_harness.extension.memory_check import MemoryCheck


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    (tmp_path / "extension.py").write_text("def forward(x): return x + 1\n", encoding="utf-8")
    side = {"library": str(tmp_path / "extension.py"), "kernels": []}
    request = {
        "extension": {"module": "tested", "namespace": "", "name": "forward"}, "baseline": side, "candidate": side,
    }  # fmt: skip
    events: list[dict[str, Any]] = []
    return Judge({**request, "events": events}, events.append, "cpu")


def case(n: int) -> Case:
    x = {"kind": "tensor", "name": "x", "scalar": "float32", "sizes": [n], "limit": None, "keyword": False}
    return Case(0, {"n": n}, Parameters([x]), ("normal",), True, False)


def tool(folder: Path) -> str:
    script = folder / "compute-sanitizer"
    script.write_text('#!/bin/sh\nshift 6\nexec "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return str(script)


def test_one_that_is_ended_while_it_loads_keeps_nobody(
    judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_check, "find_sanitizer", lambda: tool(tmp_path))
    MemoryCheck(judge, [case(33)]).end()
    assert not judge.request["events"]


def test_without_sockets_the_tool_is_not_waited_for(
    judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(memory_check, "find_sanitizer", lambda: tool(tmp_path))
    monkeypatch.setattr(socket, "socket", refused)
    check = MemoryCheck(judge, [case(33)])
    check.look([case(33)])
    check.end()
    assert "sandbox" in judge.request["events"][0]["text"]
