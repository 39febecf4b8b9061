"""A compiler that is killed, or a pass of it, is run once more; what is killed again is no error in the text."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from signal import SIGKILL

import pytest
from kill_children import descendants, kind_of
from warpwright.progress import never_cancelled
from warpwright.syntax.source import Source
from warpwright.toolchain.compilation import Ending
from warpwright.toolchain.compile import compile_cubin
from warpwright.toolchain.process import Finished, run_limited

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")

FIRST_TIME = "if [ -e been ]; then echo fine; exit 0; fi; touch been; "


def run(script: str, folder: Path) -> Finished:
    return run_limited(
        ["sh", "-c", script],
        directory=folder,
        environment={"PATH": os.environ["PATH"]},
        timeout=60,
        output_bytes=1000,
        memory_bytes=None,
        is_cancelled=never_cancelled,
    )


@pytest.mark.parametrize(
    "end",
    [
        "kill -9 $$",
        "echo Killed; exit 137",
        """echo "nvcc error   : '\\"\\$CICC_PATH/cicc\\"' died due to signal 9 (Kill signal)"; exit 9""",
        "echo 'gcc: fatal error: Killed signal terminated program cc1plus'; exit 1",
    ],
)
def test_it_is_run_once_more(end: str, tmp_path: Path) -> None:
    finished = run(FIRST_TIME + end, tmp_path)
    assert (finished.returncode, finished.output, finished.was_killed) == (0, "fine\n", False)
    assert run(end, tmp_path).was_killed


@pytest.mark.parametrize(
    "end", ["exit 1", "echo 'a.cu(3): error: #error Killed'; exit 2", "kill -11 $$", "echo Killed"]
)
def test_what_ends_by_itself_is_not(end: str, tmp_path: Path) -> None:
    finished = run(f"echo x >> runs; {end}", tmp_path)
    assert (tmp_path / "runs").read_text() == "x\n"
    assert not finished.was_killed


@contextmanager
def killing(is_chosen: Callable[[str], bool], most: int) -> Iterator[list[str]]:
    """Kill up to so many processes that this one starts."""
    killed: list[str] = []
    is_over = threading.Event()

    def watch() -> None:
        while len(killed) < most and not is_over.is_set():
            for pid, line in descendants(os.getpid()).items():
                if is_chosen(kind_of(pid, line)):
                    with suppress(ProcessLookupError):
                        os.kill(pid, SIGKILL)
                        killed.append(line)
                    break
            time.sleep(0.002)

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield killed
    finally:
        is_over.set()
        watching.join()


@pytest.mark.nvcc
@pytest.mark.parametrize("kind", ["nvcc", "compiler pass"])
def test_nvcc(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    text = b"__global__ void k(float* a) { a[threadIdx.x] = 0; }\n"
    with killing(lambda each: each == kind, 1) as killed:
        once = compile_cubin(Source(str(tmp_path / "a.cu"), text))
    assert killed
    assert once.ok, once.reason
    with killing(lambda each: each == kind, 1000):
        again = compile_cubin(Source(str(tmp_path / "b.cu"), text))
    assert again.ending is Ending.BROKEN
    assert again.messages == ()
    assert "was killed twice, probably for lack of memory" in again.reason
