"""The process that does the slow work: it answers, stops when told to, and does not outlive its server."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import IO, Any

import pytest
from support.kernels import CONFLICT
from warpwright.assist.weights import ModelFile, assemble_default

REQUEST = {"path": "/src/a.cu", "text": CONFLICT, "open": {}, "settings": {}}


class Conversation:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def say(self, message: dict[str, object]) -> None:
        self._pipe(self.process.stdin).write(json.dumps(message) + "\n")
        self._pipe(self.process.stdin).flush()

    def outcome(self) -> dict[str, Any]:
        while True:
            answer: dict[str, Any] = json.loads(self._pipe(self.process.stdout).readline())
            if "progress" not in answer:
                return answer

    def _pipe(self, pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None
        return pipe


@pytest.fixture(scope="module")
def worker() -> Iterator[Conversation]:
    command = [sys.executable, "-m", "warpwright.editor.worker"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Conversation(process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(30) == 0


def test_a_job_that_cannot_be_done_is_one_sentence(worker: Conversation) -> None:
    worker.say({"id": 1, "job": "optimize", "request": {**REQUEST, "kernel": "nonsense", "goal": "speed"}})
    assert worker.outcome() == {"id": 1, "error": "The kernel nonsense is not defined here."}
    target = {"rule": "bank-conflict", "rewrite": "pad-shared-array", "kernel": "transpose", "start": 0, "end": 1}
    worker.say({"id": 2, "job": "fix", "request": {**REQUEST, "target": target}})
    assert worker.outcome() == {"id": 2, "error": "The finding is no longer there."}


def test_a_fault_is_an_answer_too(worker: Conversation) -> None:
    worker.say({"id": 3, "job": "nonsense", "request": {}})
    assert "KeyError" in worker.outcome()["error"]


def test_a_job_that_was_cancelled_before_it_began_does_not_begin(worker: Conversation) -> None:
    worker.say({"cancel": 5})
    worker.say({"id": 5, "job": "optimize", "request": {**REQUEST, "kernel": "transpose", "goal": "speed"}})
    assert worker.outcome() == {"id": 5, "cancelled": True}


@pytest.mark.llm
@pytest.mark.nvcc
def test_a_model_that_is_named_is_asked_for_what_a_search_does_not_know_as_long_as_there_is_time(
    worker: Conversation,
) -> None:
    model = assemble_default()
    assert isinstance(model, ModelFile), model
    settings = {"model": str(model.path), "optimizeSeconds": 3}
    asked = {"kernel": "transpose", "goal": "speed", "wish": ["paint it blue"], "settings": settings}
    worker.say({"id": 6, "job": "optimize", "request": {**REQUEST, **asked}})
    result = worker.outcome()["result"]
    assert result["choices"] == []
    assert model.path.name in result["outcome"]["reason"]
    assert result["outcome"]["reason"].endswith("It was stopped before it had ended.")


@pytest.mark.nvcc
def test_it_ends_with_its_server_though_a_job_is_running() -> None:
    command = [sys.executable, "-m", "warpwright.editor.worker"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        slow = f"#include <regex>\n// {time.time_ns()}\n" + CONFLICT
        request = {**REQUEST, "text": slow, "kernel": "transpose", "goal": "speed"}
        Conversation(process).say({"id": 1, "job": "optimize", "request": request})
        assert process.stdout is not None
        assert "progress" in json.loads(process.stdout.readline())
        assert process.stdin is not None
        process.stdin.close()
        process.wait(30)
