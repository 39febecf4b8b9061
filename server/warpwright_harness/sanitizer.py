"""What only compute-sanitizer sees: accesses past an array's end that change nothing, races and reads of unwritten
memory that came out right.

Each tool runs one launch at the smallest shape of several blocks, in processes of their own, at once. What it finds in
the original too is not the candidate's fault.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from warpwright_harness.buffers import Inputs, bits
from warpwright_harness.correctness import emit_case, input_values, unsafe
from warpwright_harness.session import Case, Session

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
SECONDS = 15.0
_FOUND = 86
"""The exit status that a tool is asked for where it found something."""

_FINDING = re.compile(
    r"^=+ (?:Error: |Warning: )?((?:Invalid|Uninitialized|Race|Potential|Misaligned|Barrier|Divergent).*)$", re.M
)
_PLACES = ("compute-sanitizer", "/usr/local/cuda/bin/compute-sanitizer")


def find_sanitizer() -> str | None:
    """Its path, from PATH, CUDA_HOME, CUDA_PATH or the usual folder."""
    homes = [f"{os.environ[name]}/bin/compute-sanitizer" for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
    return next((found for place in (*_PLACES[:1], *homes, *_PLACES[1:]) if (found := shutil.which(place))), None)


def sanitizer_case(cases: Sequence[Case]) -> Case | None:
    """The smallest of several blocks; where none has several, the largest."""

    def size(case: Case) -> int:
        return sum(s.scalars for s in case.arrays)

    def blocks(case: Case) -> int:
        x, y, z = case.launches["candidate"][0]
        return x * y * z

    several = [case for case in cases if blocks(case) > 1 and all(s.count for s in case.arrays)]
    return min(several, key=size, default=None) or max(
        (case for case in cases if all(s.count for s in case.arrays)), key=size, default=None
    )


def check_with_sanitizer(session: Session, case: Case) -> bool:
    """An event "case" where a tool finds what it does not find in the original; False then. Notes say what lacks."""
    sanitizer = find_sanitizer()
    if sanitizer is None:
        session.emit({"event": "note", "text": "compute-sanitizer is not here: hidden faults were not looked for"})
        return True
    session.begin("sanitize", case, "candidate")
    values = input_values(session, case, "normal", 0)
    found = _run(sanitizer, session, case, "candidate", values, TOOLS)
    if faults := {tool: said for tool, said in found.items() if said}:
        session.begin("sanitize", case, "baseline")
        theirs = _run(sanitizer, session, case, "baseline", values, tuple(faults))
        faults = {tool: said for tool, said in faults.items() if not theirs.get(tool)}
    if faults:
        tool, said = next(iter(faults.items()))
        emit_case(session, case, f"under {tool}", unsafe(f"compute-sanitizer's {tool} says: {said}"))
        return False
    if lacking := [tool for tool in TOOLS if tool not in found]:
        session.emit({"event": "note", "text": f"compute-sanitizer's {' and '.join(lacking)} did not come to an end"})
    return True


def _run(
    sanitizer: str, session: Session, case: Case, side: str, values: Inputs, tools: Sequence[str]
) -> dict[str, str]:
    """What each tool that came to its end found, "" for nothing."""
    with tempfile.TemporaryDirectory(prefix="warpwright-sanitizer-") as folder:
        request = Path(folder) / "request.json"
        request.write_text(json.dumps(_request(session, case, side, values, Path(folder))), encoding="utf-8")
        running = {tool: _start(sanitizer, tool, request) for tool in tools}
        deadline = time.monotonic() + SECONDS
        found: dict[str, str] = {}
        for tool, process in running.items():
            try:
                output, _ = process.communicate(timeout=max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                continue
            text = output.decode(errors="replace")
            if process.returncode == _FOUND:
                first = _FINDING.search(text)
                found[tool] = _sentence(first[1]) if first else "an error"
            elif process.returncode == 0:
                found[tool] = ""
        return found


def _start(sanitizer: str, tool: str, request: Path) -> subprocess.Popen[bytes]:
    command = [
        sanitizer, "--tool", tool, "--print-limit", "5", "--error-exitcode", str(_FOUND),
        sys.executable, "-m", "warpwright_harness", "--bare", str(request),
    ]  # fmt: skip
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )


def _request(session: Session, case: Case, side: str, values: Inputs, folder: Path) -> Mapping[str, Any]:
    def kept(name: str) -> str:
        path = folder / f"{len(list(folder.iterdir()))}.bin"
        path.write_bytes(bits(values[name]).cpu().numpy().tobytes())
        return str(path)

    grid, block, shared = case.launches[side]
    return {
        "cubin": session.request[side]["cubin"],
        "function": session.request[side]["function"],
        "grid": grid,
        "block": block,
        "shared": shared,
        "arguments": session.request["arguments"],
        "scalars": dict(case.scalars),
        "arrays": [
            {
                "name": s.name,
                "bytes": s.scalars * int(s.dtype.itemsize),
                "file": kept(s.name) if s.is_input else None,
            }
            for s in case.arrays
        ],
        "variables": [{"name": s.name, "file": kept(s.name)} for s in case.variables],
    }


def _sentence(said: str) -> str:
    words = " ".join(said.split()).removesuffix(".")
    return words[:1].lower() + words[1:160]
