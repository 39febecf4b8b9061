"""Scripts that are run: real traces of torch on the CPU, and scripts that misbehave."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from warpwright.timeline.host import Cause
from warpwright.timeline.model import TraceError
from warpwright.timeline.record import Recording, record
from warpwright.timeline.report import Report, report_of

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")

LOOP = """
import time
import torch
x = torch.ones(64)
for _ in range(50):
    x = x + 1
    time.sleep(0.005)
"""


def traced(folder: Path, text: str, seconds: float = 20.0, arguments: tuple[str, ...] = ()) -> Report:
    script = folder / "script.py"
    script.write_text(text, encoding="utf-8")
    return report_of(record(Recording(script, arguments, seconds=seconds), lambda: False), folder)


def test_what_cannot_be_started_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="is not a file"):
        record(Recording(tmp_path / "none.py"), lambda: False)
    script = tmp_path / "a.py"
    script.touch()
    with pytest.raises(TraceError, match="cannot be started"):
        record(Recording(script, python=str(tmp_path / "python")), lambda: False)


def test_a_python_without_torch_is_said(tmp_path: Path) -> None:
    """A folder with a module torch that cannot be imported stands for it."""
    (tmp_path / "torch.py").write_text("raise ImportError('none here')", encoding="utf-8")
    with pytest.raises(TraceError, match="cannot import torch"):
        traced(tmp_path, "")


@needs_torch
def test_the_line_that_takes_the_time_is_named(tmp_path: Path) -> None:
    found = traced(tmp_path, LOOP)
    assert found.shared.bound is Cause.PYTHON
    assert found.lines[0].place.line == 7
    assert {each.place.line for each in found.lines} >= {5, 6, 7}
    assert any("no CUDA GPU" in note for note in found.trace.notes) or found.trace.devices


@pytest.mark.slow
@needs_torch
def test_a_data_loader_is_found(tmp_path: Path) -> None:
    found = traced(
        tmp_path,
        """
import time, torch
from torch.utils.data import DataLoader, Dataset
class Slow(Dataset):
    def __len__(self):
        return 200
    def __getitem__(self, index):
        time.sleep(0.002)
        return torch.ones(8)
for batch in DataLoader(Slow(), batch_size=10):
    batch.sum()
""",
    )
    assert found.shared.bound is Cause.LOADING


@pytest.mark.slow
@needs_torch
@pytest.mark.parametrize(
    ("text", "note"),
    [
        (LOOP + "raise ValueError('no more')", "ValueError: no more at"),
        (LOOP + "while True:\n    x.add_(1)\n", "stopped after 1 s"),
        (LOOP + "import os\nif os.fork():\n    os.wait()\n", ""),
        (LOOP + "import sys\nsys.exit(3)\n", "status 3"),
        (LOOP + "while True:\n    try:\n        time.sleep(9)\n    except BaseException:\n        break\n", ""),
    ],
)
def test_scripts_that_fail_fork_or_never_end_have_a_trace(text: str, note: str, tmp_path: Path) -> None:
    found = traced(tmp_path, text, 1.0 if "while" in text else 20.0)
    assert found.lines
    assert note in " ".join(found.trace.notes)


@pytest.mark.slow
@needs_torch
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nothing_of_this_name", "ModuleNotFoundError"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("print('no tensor')", "no operator of torch's"),
        ("import os\nos._exit(4)", "ended by itself with status 4"),
    ],
)
def test_scripts_without_a_trace_say_why(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=said):
        traced(tmp_path, text)


@pytest.mark.slow
@needs_torch
def test_the_script_writes_nowhere_else(tmp_path: Path) -> None:
    found = traced(tmp_path, LOOP + "open(__file__ + '.out', 'w')\n")
    if not (tmp_path / "script.py.out").exists():  # the system can confine
        assert "PermissionError" in " ".join(found.trace.notes)


@pytest.mark.slow
@needs_torch
def test_the_command_prints_json(tmp_path: Path) -> None:
    script = tmp_path / "a.py"
    script.write_text(LOOP, encoding="utf-8")
    command = [sys.executable, "-m", "warpwright.cli", "trace", "--format", "json", str(script)]
    done = subprocess.run(command, capture_output=True, check=True)
    said = json.loads(done.stdout)
    assert said["bound_by"] == "Python"
    assert sum(said["shares"].values()) == pytest.approx(1)
