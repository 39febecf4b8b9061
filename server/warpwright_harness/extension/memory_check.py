"""Does a call reach outside of what it was given or made? Asked of NVIDIA's compute-sanitizer, at one small size.

What an extension allocates itself has no guards of the judge's around it. Under the tool every tensor is an allocation
of its own, of exactly its size, and each access of a kernel is checked against them.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from warpwright_harness.extension.arena import ArenaError
from warpwright_harness.extension.batch import call_once
from warpwright_harness.extension.judge import CandidateError, Case, Judge
from warpwright_harness.extension.side import Side, SideError

MOST_BYTES = 4 << 20
"""Of a call's inputs: every access of it is checked, at a hundredth of the speed."""
LOAD_SECONDS = 180.0
LEAVE_SECONDS = 30.0
_FAULT = re.compile(r"=+ (Invalid .+?|Misaligned .+?|.*out of bounds.*?)\s*$", re.MULTILINE)
_PLACE = re.compile(r"=+\s+at (.+?)(?:\+0x[0-9a-f]+)?(?: in .+)?\s*$", re.MULTILINE)


def find_sanitizer() -> str | None:
    """compute-sanitizer: on PATH, else in the toolkit's folder."""
    homes = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")] + ["/usr/local/cuda"]
    folders = os.pathsep.join(str(Path(home) / "bin") for home in homes if home)
    return shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=folders)


def check_memory(judge: Judge, cases: list[Case]) -> None:
    """Raises CandidateError where the candidate reaches outside and the original does not. Emits a note where that was
    not looked for."""
    tool = find_sanitizer()
    small = [case for case in cases if 0 < case.parameters.bytes <= MOST_BYTES]
    if tool is None or not small:
        why = "compute-sanitizer was not found" if tool is None else "no size to check is small enough"
        judge.emit({"event": "note", "text": f"accesses outside of results were not looked for: {why}"})
        return
    case = max(small, key=lambda one: one.parameters.bytes)
    fault = _fault(judge, case, "candidate", tool)
    if fault and not _fault(judge, case, "baseline", tool):
        raise CandidateError(f"compute-sanitizer finds: {fault}")


def _fault(judge: Judge, case: Case, name: str, tool: str) -> str:
    """The first fault of one call, in the tool's words; "" where there is none."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "sanitizer.txt"
        command = [tool, "--tool", "memcheck", "--print-limit", "1", "--log-file", str(log)]
        side = Side(judge.loaded(name), under=command, environment={"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"})

        def called() -> None:
            side.load(LOAD_SECONDS)
            values = judge.draw(case, "normal")
            with suppress(SideError, ArenaError):  # what is wrong stands in the log, or was seen without the tool
                call_once(side, case.parameters, values, judge.order, ask="call", place="host", guarded=False)
            side.leave(LEAVE_SECONDS)

        try:
            judge.meanwhile(case, name, called)
        except SideError as error:
            judge.emit({"event": "note", "text": f"accesses outside of results were not looked for: {error}"})
            return ""
        finally:
            side.end()
        return first_fault(log.read_text(encoding="utf-8", errors="replace") if log.is_file() else "")


def first_fault(log: str) -> str:
    """The first fault that compute-sanitizer reports, with the function that it is in; "" for none.

    >>> first_fault("===== Invalid __global__ write of size 4 bytes\\n=====     at smooth(float *)+0x90 in a.cu:4\\n")
    'Invalid __global__ write of size 4 bytes at smooth(float *)'
    """
    fault = _FAULT.search(log)
    if fault is None:
        return ""
    place = _PLACE.search(log, fault.end())
    return f"{fault[1]} at {place[1]}" if place else fault[1]
