"""Run a script under torch.profiler, in a process of its own that is confined and has an end."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import warpwright
from warpwright.files import read_file
from warpwright.progress import CancelledError, IsCancelled
from warpwright.sandbox.confine import Confined, Policy
from warpwright.timeline.model import Trace, TraceError
from warpwright.timeline.torch_trace import MOST_BYTES, clock_zero, line_events, torch_trace

_RUNNER = Path(warpwright.__file__).parent.parent / "warpwright_harness" / "traced_script.py"
_START_SECONDS = 180.0
_END_SECONDS = 180.0
_SLOW_START = 5e9


@dataclass(frozen=True, slots=True)
class Recording:
    """What to run and how. Recording begins after `skip` seconds of the script and lasts `seconds`. Where it is
    `confined`, it writes below `writes` and its temporary folder alone, and has no network."""

    script: Path
    arguments: tuple[str, ...] = ()
    python: str = sys.executable
    seconds: float = 60.0
    skip: float = 0.0
    confined: bool = True
    writes: tuple[Path, ...] = ()


def record(wanted: Recording, is_cancelled: IsCancelled, output: int = 2) -> Trace:
    """The trace of one run; what it prints goes to the file descriptor `output`. Raises TraceError and
    CancelledError."""
    if not wanted.script.is_file():
        raise TraceError(f"{wanted.script} is not a file")
    if sys.platform == "win32":
        raise TraceError("a script cannot be traced on Windows yet; record it with torch.profiler, and use --import")
    with tempfile.TemporaryDirectory(prefix="warpwright-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        said = _run(wanted, folder, is_cancelled, output)
        if said.get("recorded") is not True:
            why = said.get("error") or f"it ended before {wanted.skip:g} seconds had passed"
            raise TraceError(f"{wanted.script} was not recorded: {why}{_at(said)}")
        try:
            document = json.loads(read_file(folder / "trace.json", MOST_BYTES))
            lines = json.loads(read_file(folder / "lines.json", MOST_BYTES))
        except (OSError, ValueError, RecursionError) as error:
            raise TraceError(
                f"the trace of {wanted.script} cannot be read ({error}); record fewer seconds with --seconds"
            ) from None
    return _with_lines(wanted, document, lines, said)


def _with_lines(wanted: Recording, document: Any, lines: Any, said: dict[str, Any]) -> Trace:
    try:
        trace = torch_trace(document, wanted.script.name)
    except TraceError:
        why = f"it raised {said['error']}{_at(said)}" if said.get("error") else "it ran no operator of torch's"
        raise TraceError(f"{wanted.script}: nothing to see: {why}") from None
    zero = clock_zero(document)
    costs = [each for each in said.get("costs", []) if isinstance(each, int)]
    begun = said.get("begun", 0) - zero
    first = min((each.start for each in (*trace.ops, *trace.calls)), default=0)
    notes = []
    if said.get("error"):
        notes.append(f"the script failed: {said['error']}{_at(said)}; this is what it did before")
    if said.get("time_up"):
        notes.append(f"stopped after {wanted.seconds:g} s of recording (--seconds)")
    if not wanted.skip and first - begun > _SLOW_START:
        notes.append(
            f"{(first - begun) / 1e9:.1f} s passed before the first operator (imports, set-up); they are not counted"
        )
    if said.get("lines_full"):
        notes.append("there were too many lines to record all of them: those at the end have no place")
    if not said.get("gpu"):
        notes.append(
            "no CUDA GPU here: what is seen is data loading, Python and operators on the CPU; launches, copies, "
            "synchronisation and kernels need a machine with one, or a trace from it (--import)"
        )
    return replace(
        trace,
        lines=line_events(lines, zero),
        processors=_free(said),
        busy=_busy(said),
        costs=(costs[0], costs[1], costs[2]) if len(costs) == 3 else (0, 0, 0),
        notes=tuple(notes),
    )


def _free(said: dict[str, Any]) -> int:
    """The processors that others left free while the script ran: the load without this one's part of it."""
    others = max(0.0, float(said.get("load", 0.0)) - float(said.get("busy", 0.0)))
    return max(1, round(int(said.get("processors") or 1) - others))


def _busy(said: dict[str, Any]) -> float:
    """The part of the processor time that it could have had, which on a crowded machine is less than all."""
    crowd = float(said.get("load", 0.0)) / max(1, int(said.get("processors") or 1))
    return float(said.get("busy", 0.0)) * max(1.0, crowd)


def _run(wanted: Recording, folder: Path, is_cancelled: IsCancelled, output: int) -> dict[str, Any]:
    command = [wanted.python, str(_RUNNER), str(folder), str(wanted.seconds), str(wanted.skip), str(wanted.script)]
    caches = {name: str(folder / name.lower()) for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")}
    seconds = _START_SECONDS + wanted.skip + wanted.seconds + _END_SECONDS
    status = run_recorded(
        [*command, *wanted.arguments], wanted, folder, caches if wanted.confined else {}, seconds, is_cancelled, output
    )
    try:
        said = json.loads(read_file(folder / "said.json", 1 << 20))
    except (OSError, ValueError, RecursionError):
        raise TraceError(f"{wanted.script} was not traced: {_how(status)}") from None
    return said if isinstance(said, dict) else {}


def run_recorded(
    command: Sequence[str],
    wanted: Recording,
    folder: Path,
    variables: Mapping[str, str],
    seconds: float,
    is_cancelled: IsCancelled,
    output: int,
) -> int | None:
    """Run what records, confined as `wanted` says, with `folder` for its files; its exit status, None where it has not
    ended in so many seconds and was killed. Raises TraceError and CancelledError."""
    policy = Policy(
        limits={"CORE": 0, "FSIZE": 4 << 30},
        confined=wanted.confined,
        writes=("/proc", str(folder), *(str(each.absolute()) for each in wanted.writes)),
        devices=True,
        local_sockets=True,
        local_services=True,
    )
    environment = {**os.environ, **variables, "TMPDIR": str(folder)}
    try:
        running = Confined(command, policy, environment=environment, output=output)
    except OSError as error:
        raise TraceError(f"{command[0]} cannot be started ({error.strerror})") from None
    try:
        running.in_force()
        return _wait(running.process.poll, seconds, is_cancelled)
    except OSError as error:
        raise TraceError(f"{command[0]} cannot be started ({error.strerror})") from None
    finally:
        running.kill()


def _wait(poll: Callable[[], int | None], seconds: float, is_cancelled: IsCancelled) -> int | None:
    """The exit status; None where it has not ended in time. Raises CancelledError."""
    deadline = time.monotonic() + seconds
    while (status := poll()) is None and time.monotonic() < deadline:
        if is_cancelled():
            raise CancelledError
        time.sleep(0.05)
    return status


def _how(status: int | None) -> str:
    if status is None:
        return "it did not come back from native code, or swallowed the exception that ends it, and was killed"
    if status == -signal.SIGKILL:
        return "it was killed by the system, which does that where memory runs out"
    return f"it crashed ({signal.Signals(-status).name})" if status < 0 else f"it ended by itself with status {status}"


def _at(said: dict[str, Any]) -> str:
    return f" at {said['where']}" if said.get("where") else ""
