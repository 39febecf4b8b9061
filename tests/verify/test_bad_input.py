"""Bad input and bad machines, whole: each ends in a status with a sentence, and the next verification is unharmed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from support.processes import gone, running
from warpwright.progress import CancelledError
from warpwright.syntax.source import Source
from warpwright.verify import emulation
from warpwright.verify.report import Report, Status
from warpwright.verify.verify import verify

pytestmark = pytest.mark.nvcc

HONEST = """__global__ void k(float* a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] = 2 * a[i];
}
void f(float* a, int n) { k<<<(n + 255) / 256, 256>>>(a, n); }
"""
WAITING = HONEST.replace("a[i] = 2 * a[i];", "{ a[i] = 2 * a[i]; while (((volatile float*)a)[i] != 1.25e-30f); }")
ENDLESS = HONEST.replace(
    "a[i] = 2 * a[i];", "{ volatile unsigned* turns = (unsigned*)a; while (turns[i] != 3) turns[i] += 2; }"
)
"""Each turn counts in memory, so that nobody can say that it waits for ever."""
CHILD = "warpwright.verify.emulated"


@pytest.fixture(autouse=True)
def own_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    emulation.close_idle()


def verified(folder: Path, candidate: str) -> Report:
    path = str(folder / "a.cu")
    return verify(Source(path, HONEST.encode()), Source(path, candidate.encode()), backend="emulator", again=True)


def is_unharmed(folder: Path) -> bool:
    return verified(folder, HONEST.replace("2 * a[i]", "a[i] + a[i]")).status is Status.CORRECT


def test_a_kernel_that_never_ends_is_a_time_out(tmp_path: Path) -> None:
    report = verified(tmp_path, ENDLESS)
    assert report.status is Status.TIMEOUT
    assert report.reason.startswith("The candidate does not finish at ")
    assert is_unharmed(tmp_path)


def test_a_kernel_that_waits_for_what_nobody_stores_is_a_deadlock(tmp_path: Path) -> None:
    report = verified(tmp_path, WAITING)
    assert report.status is Status.UNSAFE
    assert re.search(
        r"goes round a loop until byte [\d,]+ of a changes, and no thread changes it any more", report.reason
    )
    assert is_unharmed(tmp_path)


def test_a_cancel_ends_the_emulator_in_the_middle_of_a_run(tmp_path: Path) -> None:
    cancelled = threading.Event()

    def progress(text: str, share: float | None) -> None:
        if text.startswith("Emulating"):
            cancelled.set()

    path = str(tmp_path / "a.cu")
    with pytest.raises(CancelledError):
        verify(
            Source(path, HONEST.encode()), Source(path, ENDLESS.encode()), backend="emulator",
            progress=progress, is_cancelled=cancelled.is_set,
        )  # fmt: skip
    assert is_unharmed(tmp_path)
    emulation.close_idle()
    assert gone(CHILD, parent=os.getpid())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("megabytes", [120, 400])
def test_memory_that_runs_out_is_said(megabytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    big = HONEST.replace("float* a", "double4* a").replace("2 * a[i]", "make_double4(a[i].y, 1, 2, 3)")
    path = str(tmp_path / "b.cu")
    source = Source(path, b"// warpwright: check n=1000000\n" + big.encode())
    monkeypatch.setattr(emulation, "MOST_MEMORY_BYTES", megabytes << 20)
    report = verify(source, Source(path, source.data + b"\n"), backend="emulator")
    monkeypatch.undo()
    monkeypatch.setenv("WARPWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    assert report.status in (Status.NOT_RUN, Status.CORRECT)
    assert report.status is Status.CORRECT or "It was not run: " in report.reason
    assert report.status is Status.NOT_RUN or megabytes > 120
    assert "Traceback" not in report.reason
    assert is_unharmed(tmp_path)


def test_a_process_that_is_shot_is_said(tmp_path: Path) -> None:
    shot = threading.Event()

    def progress(text: str, share: float | None) -> None:
        if text.startswith("Emulating") and not shot.is_set():
            shot.set()
            emulators = running(CHILD, os.getpid())
            subprocess.run(["kill", "-9", *map(str, emulators)], check=False)

    path = str(tmp_path / "a.cu")
    report = verify(
        Source(path, HONEST.encode()), Source(path, ENDLESS.encode()), backend="emulator", progress=progress
    )
    assert report.status is Status.NOT_RUN
    assert "was killed by the system, which does that where memory runs out" in report.reason
    assert is_unharmed(tmp_path)


def test_a_full_disk_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(HONEST)
    (tmp_path / "b.cu").write_text(HONEST.replace("2 * a[i]", "a[i] + a[i]"))
    code = f"""
import json, resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
from warpwright.syntax.source import read_source
from warpwright.verify.verify import verify
report = verify(read_source({str(tmp_path / "a.cu")!r}), read_source({str(tmp_path / "b.cu")!r}), backend="emulator")
print(json.dumps(report.to_json()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert '"status": "not-run"' in done.stdout
    assert "Traceback" not in done.stderr
    assert is_unharmed(tmp_path)


def test_what_does_not_compile_is_said(tmp_path: Path) -> None:
    report = verified(tmp_path, HONEST.replace("2 * a[i]", "undeclared"))
    assert report.status is Status.DOES_NOT_COMPILE
    assert 'identifier "undeclared" is undefined' in report.reason
    assert is_unharmed(tmp_path)
