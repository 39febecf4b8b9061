"""The lock of the GPU between real processes: checks share it, timing has it alone, and nobody is kept out for ever."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from warpwright_harness.gpu_lock import gpu_alone, gpu_shared

HOLDER = """
import sys
from warpwright_harness.gpu_lock import gpu_alone, gpu_shared
with {"alone": gpu_alone, "shared": gpu_shared}[sys.argv[1]](sys.argv[2], lambda: print("waits", flush=True)):
    print("holds", flush=True)
    sys.stdin.readline()
"""


@contextmanager
def holder(how: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that wants the lock and, once it has it, holds it until it reads a line or is killed."""
    command = [sys.executable, "-c", HOLDER, how, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def release(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "gpu.lock"


def test_two_check_at_once_and_one_times_alone(path: Path) -> None:
    with holder("shared", path) as first, holder("shared", path) as second:
        assert said(first) == said(second) == "holds"
        with holder("alone", path) as timing:
            assert said(timing) == "waits"
            release(first)
            release(second)
            while (word := said(timing)) == "waits":
                pass
            assert word == "holds"


def test_one_that_times_keeps_the_others_out(path: Path) -> None:
    with holder("alone", path) as timing:
        assert said(timing) == "holds"
        with holder("alone", path) as other, holder("shared", path) as check:
            assert said(other) == said(check) == "waits"


def test_checks_that_keep_coming_do_not_keep_a_timing_out(path: Path) -> None:
    with holder("shared", path) as first:
        assert said(first) == "holds"
        with holder("alone", path) as timing:
            assert said(timing) == "waits"
            with holder("shared", path) as late:
                assert said(late) == "waits", "it came after the timing, so it waits behind it"
                release(first)
                while (word := said(timing)) == "waits":
                    pass
                assert word == "holds"


@pytest.mark.parametrize("how", ["alone", "shared"])
def test_a_holder_that_is_killed_holds_nothing(how: str, path: Path) -> None:
    with holder(how, path) as process:
        assert said(process) == "holds"
        process.kill()
        process.wait()
        with gpu_alone(str(path), lambda: None):
            pass


def test_a_child_of_the_holder_does_not_hold_it(path: Path) -> None:
    with ExitStack() as stack:
        with gpu_shared(str(path), lambda: None):
            child = stack.enter_context(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))
            stack.callback(child.kill)
        started = time.monotonic()
        with gpu_alone(str(path), lambda: pytest.fail(f"waits after {time.monotonic() - started:.1f} s")):
            pass
