"""What is made of compute-sanitizer's findings: real processes, in which a script stands for the tool and the GPU."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.command import python_program
from warpwright.progress import CancelledError, never_cancelled
from warpwright.verify import sanitizer
from warpwright.verify.report import CaseResult, Status
from warpwright.verify.run import Observed
from warpwright.verify.sanitizer import TOOLS, hidden_faults_expected, look_for_hidden_faults

TOOL = """
import json, os, sys, time
tool = sys.argv[sys.argv.index("--tool") + 1]
launches = json.loads(sys.stdin.readline() or '{{"launches": []}}')["launches"]
names = [launch["function"] for launch in launches]
with open("{log}", "a") as log:
    log.write(json.dumps([tool, names]) + "\\n")
if "hangs" in names:
    time.sleep(600)
if tool == "racecheck" and "ends" in names:
    sys.exit(3)
if tool == "memcheck" and "reads" in names:
    print("========= Invalid __global__ read of size 4 bytes", flush=True)
    os._exit(int(sys.argv[sys.argv.index("--error-exitcode") + 1]))
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the tool was asked, a line for each process."""
    log, tool = tmp_path / "log", tmp_path / "compute-sanitizer"
    python_program(tool, TOOL.format(log=log))
    monkeypatch.setattr(sanitizer, "find_sanitizer", lambda: tool)
    return log


def seen(candidate: str, original: str = "sound", others: threading.Barrier | None = None) -> Observed:
    """What is seen of a candidate that passed so far; it asks when the others do."""
    launch = {"grid": [4, 1, 1], "block": [32, 1, 1], "shared": 0, "repeats": []}
    case = {"shape": {"n": 100}, "counts": {"a": 100}, "scalars": {}, "limits": {}, "offsets": {}}
    request: dict[str, Any] = {
        "arguments": [], "variables": [], "lock": "", "seed": 1,
        "candidate": {"function": candidate}, "baseline": {"function": original},
        "cases": [{**case, "candidate": launch, "baseline": launch}],
    }  # fmt: skip
    observed = Observed(Status.CORRECT, cases=[CaseResult({"n": 100}, "normal", True, 0.0, 0.0)])
    with hidden_faults_expected():
        if others is not None:
            others.wait(10)
        look_for_hidden_faults(observed, request, never_cancelled)
    return observed


def test_a_sound_candidate_passes_every_tool_in_one_process_each(log: Path) -> None:
    observed = seen("sound")
    assert (observed.status, observed.notes) == (Status.CORRECT, [])
    assert sorted(log.read_text().splitlines()) == sorted(f'["{tool}", ["sound"]]' for tool in TOOLS)


def test_what_a_tool_finds_makes_it_unsafe_unless_it_finds_it_in_the_original_too(log: Path) -> None:
    observed = seen("reads")
    assert observed.status is Status.UNSAFE
    assert observed.reason.endswith("n = 100: memcheck says: invalid __global__ read of size 4 bytes.")
    observed = seen("reads", original="reads")
    assert observed.status is Status.CORRECT
    assert observed.notes == ["compute-sanitizer's memcheck finds in the original, too: " + (
        "invalid __global__ read of size 4 bytes")]  # fmt: skip


def test_a_tool_that_does_not_come_to_its_end_is_said(log: Path) -> None:
    observed = seen("ends")
    assert observed.status is Status.CORRECT
    assert observed.notes == ["compute-sanitizer's racecheck did not finish"]


def test_of_several_that_are_watched_together_only_the_guilty_is_unsafe(log: Path) -> None:
    barrier = threading.Barrier(4)
    with ThreadPoolExecutor(4) as threads:
        names = ("one", "reads", "two", "three")
        observed = list(threads.map(lambda name: seen(name, others=barrier), names))
    assert [each.status is Status.UNSAFE for each in observed] == [False, True, False, False]
    assert all(not each.notes for each in observed)
    assert len([line for line in log.read_text().splitlines() if '"synccheck"' in line and "[]" not in line]) < 4


def test_a_cancel_ends_the_tools(log: Path) -> None:
    launch = {"grid": [1, 1, 1], "block": [32, 1, 1], "shared": 0, "repeats": []}
    case = {
        "shape": {},
        "counts": {"a": 1},
        "scalars": {},
        "limits": {},
        "offsets": {},
        "candidate": launch,
        "baseline": launch,
    }
    request: dict[str, Any] = {
        "arguments": [], "variables": [], "lock": "", "seed": 1, "cases": [case], "candidate": {"function": "hangs"},
    }  # fmt: skip
    observed = Observed(Status.CORRECT, cases=[CaseResult({}, "normal", True, 0.0, 0.0)])
    with pytest.raises(CancelledError):
        look_for_hidden_faults(observed, request, log.exists)
    assert observed.status is Status.CORRECT
