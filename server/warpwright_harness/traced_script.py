"""Run a Python script under torch.profiler and write down which of its lines was at work when.

    python traced_script.py FOLDER SECONDS SKIP SCRIPT [ARGS...]

FOLDER gets `trace.json` (the profiler's), `lines.json` (times of the main thread's lines in the user's files, in Unix
nanoseconds, which is the profiler's clock) and, last, `said.json`: how it went. After SKIP seconds of the script
recording begins, and SECONDS later an exception that the script does not know ends it, so that one without an end has a
trace too. A process that the script forks writes nothing.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
import sysconfig
import threading
import time
import traceback
from array import array
from pathlib import Path
from types import FrameType
from typing import Any

MOST_LINES = 4_000_000
_CALIBRATED = 400
_ONE_LINE = {"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"}


class _TimeUpError(BaseException):
    """The time for recording is over."""


class Lines:
    """The main thread's lines in the user's files, as columns. A file of -1 is no line of the user's."""

    def __init__(self) -> None:
        self.times, self.files, self.lines = array("q"), array("i"), array("i")
        self.known: dict[str, int] = {}
        self.last = (-1, 0)
        folders = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
        own = str(Path(__file__).parent)
        self._others = tuple(f"{folder}{os.sep}" for folder in (*folders, own) if folder)

    def index(self, file: str) -> int:
        found = self.known.get(file)
        if found is None:
            other = file.startswith(("<", *self._others)) or "site-packages" in file or "dist-packages" in file
            found = -1 if other else sum(each >= 0 for each in self.known.values())
            self.known[file] = found
        return found

    def trace(self, frame: FrameType, event: str, _value: object) -> Any:
        """What sys.settrace calls for each function that begins."""
        code = frame.f_code
        if code.co_name in _ONE_LINE or self.index(code.co_filename) < 0 or len(self.times) > MOST_LINES:
            return None
        return self._inside

    def _inside(self, frame: FrameType, event: str, _value: object) -> Any:
        at: FrameType | None = frame
        if event == "return":
            at = frame.f_back
            while at is not None and self.index(at.f_code.co_filename) < 0:
                at = at.f_back
        elif event != "line":
            return self._inside
        file, line = (-1, 0) if at is None else (self.index(at.f_code.co_filename), at.f_lineno or 0)
        if (file, line) != self.last:
            self.last = file, line
            self.times.append(time.time_ns())
            self.files.append(file)
            self.lines.append(line)
        return self._inside

    def document(self) -> dict[str, Any]:
        files = sorted((index, file) for file, index in self.known.items() if index >= 0)
        thread = f"{os.getpid()}/{threading.get_native_id()}"
        columns = {"times": self.times.tolist(), "files": self.files.tolist(), "lines": self.lines.tolist()}
        return {"files": [file for _, file in files], "threads": [{"thread": thread, **columns}]}


def _from_script(error: BaseException, script: str) -> BaseException:
    """The error with the frames from the script on, without those that run it."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename != script:
        frames = frames.tb_next
    return error.with_traceback(frames) if frames is not None else error


def main() -> int:
    folder, seconds, skip, script = Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
    said: dict[str, Any] = {"error": "", "where": "", "time_up": False, "processors": os.cpu_count() or 0}
    sys.argv, sys.path[0] = sys.argv[4:], str(Path(script).absolute().parent)
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")  # so that asking for GPUs leaves fork possible
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # the profiler's own lines are not the script's
    try:
        import torch
        from torch.profiler import ProfilerActivity, profile
    except ImportError as error:
        said["error"] = f"this Python ({sys.executable}) cannot import torch: {error}"
        (folder / "said.json").write_text(json.dumps(said), encoding="utf-8")
        return 1
    gpu = bool(torch.cuda.is_available())
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if gpu else [])]
    profiler, lines, process = profile(activities=activities), Lines(), os.getpid()
    begun, recording = time.time_ns(), False

    def alarm(_signal: int, _frame: FrameType | None) -> None:
        nonlocal recording
        if os.getpid() != process:
            return
        if recording:
            raise _TimeUpError
        recording = True
        profiler.start()
        signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)

    signal.signal(signal.SIGALRM, alarm)
    if skip:
        signal.setitimer(signal.ITIMER_REAL, skip)
    else:
        alarm(0, None)
    status, computed, started = 0, time.process_time(), time.monotonic()
    try:
        sys.settrace(lines.trace)
        runpy.run_path(script, run_name="__main__")
    except _TimeUpError:
        said["time_up"] = True
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        said["error"] = f"it ended with status {status}" if status else ""
    except BaseException as error:
        status = 1
        said["error"] = f"{type(error).__name__}: {error}"[:500]
        said["where"] = _place(error, lines)
        traceback.print_exception(_from_script(error, script))
    finally:
        sys.settrace(None)
        signal.setitimer(signal.ITIMER_REAL, 0)
        if os.getpid() != process:
            os._exit(status)
    said["recorded"], said["load"] = recording, os.getloadavg()[0]
    said["busy"] = (time.process_time() - computed) / max(1e-3, time.monotonic() - started)
    if recording:
        if gpu and torch.cuda.is_initialized():
            torch.cuda.synchronize()
        profiler.stop()
        profiler.export_chrome_trace(str(folder / "trace.json"))
        (folder / "lines.json").write_text(json.dumps(lines.document()), encoding="utf-8")
        said["costs"] = _costs(torch, profile, activities, gpu and torch.cuda.is_initialized(), script)
    said |= {"begun": begun, "gpu": gpu, "torch": torch.__version__, "lines_full": len(lines.times) > MOST_LINES}
    (folder / "said.json").write_text(json.dumps(said), encoding="utf-8")
    sys.stdout.flush()
    os._exit(0)  # what the script left running, threads and handlers at exit, is not waited for


def _place(error: BaseException, lines: Lines) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if lines.index(frame.filename) >= 0]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""


def _costs(torch: Any, profile: Any, activities: list[Any], on_gpu: bool, script: str) -> list[int]:
    """What recording adds, in nanoseconds: to an operator, to one that launches a kernel, to a line of the script."""

    def seconds(device: str) -> float:
        value = torch.zeros(1, device=device)
        start = time.perf_counter()
        for _ in range(_CALIBRATED):
            value.add_(1)
        return time.perf_counter() - start

    def added(device: str) -> int:
        seconds(device)
        plain = min(seconds(device) for _ in range(5))
        with profile(activities=activities):
            recorded = min(seconds(device) for _ in range(5))
        return max(0, round((recorded - plain) / _CALIBRATED * 1e9))

    names: dict[str, Any] = {}
    exec(compile("def walk():\n for i in range(999):\n  a = i\n  b = i\n", script, "exec"), names)

    def walked(tracer: Any) -> float:
        sys.settrace(tracer)
        start = time.perf_counter()
        names["walk"]()
        taken = time.perf_counter() - start
        sys.settrace(None)
        return taken

    plain, traced = (min(walked(tracer) for _ in range(9)) for tracer in (None, Lines().trace))
    line = (traced - plain) / 3e3
    return [added("cpu"), added("cuda") if on_gpu else 0, max(0, round(line * 1e9))]


if __name__ == "__main__":
    sys.exit(main())
