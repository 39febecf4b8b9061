"""Does a call reach outside of what it was given or made? Asked of NVIDIA's compute-sanitizer, at one small size.

What an extension allocates itself has no guards of the judge's around it. Under the tool every tensor is an allocation
of its own, of exactly its size, and each access of a kernel is checked against them.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path

from warpwright_harness.extension.arena import ArenaError
from warpwright_harness.extension.batch import call_once
from warpwright_harness.extension.judge import CandidateError, Case, Judge
from warpwright_harness.extension.side import Side, SideError

MOST_BYTES = 4 << 20
"""Of a call's inputs: every access of it is checked, at a hundredth of the speed."""
LOAD_SECONDS = 60.0
LEAVE_SECONDS = 30.0
_FAULT = re.compile(r"=+ (Invalid .+?|Misaligned .+?|.*out of bounds.*?)\s*$", re.MULTILINE)
_PLACE = re.compile(r"=+\s+at (.+?)(?:\+0x[0-9a-f]+)?(?: in .+)?\s*$", re.MULTILINE)


def find_sanitizer() -> str | None:
    """compute-sanitizer: on PATH, else in the toolkit's folder."""
    homes = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")] + ["/usr/local/cuda"]
    folders = os.pathsep.join(str(Path(home) / "bin") for home in homes if home)
    return shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=folders)


def _has_sockets() -> bool:
    """Whether a program here may talk to another one, as one that is confined may not."""
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM).close()
    except OSError:
        return False
    return True


class MemoryCheck:
    """The candidate's process under the tool, which takes long to get ready and does so beside other work."""

    def __init__(self, judge: Judge, cases: Sequence[Case]) -> None:
        """Start it; a note says it where accesses cannot be looked for. Call `end` at the end."""
        self._judge = judge
        self._tool = find_sanitizer()
        self._watched: _Watched | None = None
        if self._tool is None:
            self._not_looked_for("compute-sanitizer was not found")
        elif not _has_sockets():
            self._tool = None
            self._not_looked_for(
                "the two halves of compute-sanitizer talk over sockets, which the sandbox keeps from them"
            )
        elif any(0 < case.parameters.bytes <= MOST_BYTES for case in cases):
            self._watched = _Watched(judge, "candidate", self._tool)

    def get_ready(self, case: Case) -> None:
        """Wait until the candidate is loaded, or cannot be: `look` says it. Nobody is kept from the GPU meanwhile."""
        if self._watched is not None:
            self._judge.meanwhile(case, "candidate", self._watched.get_ready)

    def look(self, cases: Sequence[Case]) -> None:
        """Raises CandidateError where the candidate reaches outside and the original does not. Emits a note where that
        was not looked for."""
        small = [case for case in cases if 0 < case.parameters.bytes <= MOST_BYTES]
        if self._tool is None or not cases:
            return
        if self._watched is None or not small:
            self._not_looked_for("no size to check is small enough")
            return
        case = max(small, key=lambda one: one.parameters.bytes)
        try:
            fault = self._watched.fault(case)
            if fault:
                original = _Watched(self._judge, "baseline", self._tool)
                try:
                    fault = "" if original.fault(case) else fault
                finally:
                    original.end()
        except SideError as error:
            self._not_looked_for(str(error))
            return
        if fault:
            raise CandidateError(f"compute-sanitizer finds: {fault}")

    def end(self) -> None:
        if self._watched is not None:
            self._watched.end()

    def _not_looked_for(self, why: str) -> None:
        self._judge.emit({"event": "note", "text": f"accesses outside of results were not looked for: {why}"})


class _Watched:
    """A side's process under the tool, which loads its extension in a thread of its own."""

    def __init__(self, judge: Judge, name: str, tool: str) -> None:
        self._judge, self._name = judge, name
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._log = Path(self._folder.name) / "sanitizer.txt"
        command = [tool, "--tool", "memcheck", "--print-limit", "1", "--log-file", str(self._log)]
        loaded = {**judge.loaded(name), "flush_bytes": 4}
        self._side = Side(loaded, under=command, environment={"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"})
        self._loader = ThreadPoolExecutor(1)
        self._loaded = self._loader.submit(self._side.load, LOAD_SECONDS)

    def get_ready(self) -> None:
        wait([self._loaded])

    def fault(self, case: Case) -> str:
        """The first fault of one call, in the tool's words; "" where there is none. Raises SideError where the
        extension is not loaded."""

        def called() -> None:
            self._loaded.result()
            values = self._judge.draw(case, "normal")
            with suppress(SideError, ArenaError):  # what is wrong stands in the log, or was seen without the tool
                call_once(
                    self._side, case.parameters, values, self._judge.order, ask="call", place="host", guarded=False
                )
            self._side.leave(LEAVE_SECONDS)

        self._judge.meanwhile(case, self._name, called)
        return first_fault(self._log.read_text(encoding="utf-8", errors="replace") if self._log.is_file() else "")

    def end(self) -> None:
        self._side.end()
        self._loader.shutdown()
        self._folder.cleanup()


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
