"""Both sides of a changed place of host code, run against the recording runtime, and what they asked for compared.

The same launches with the same arguments in the same order on the same streams, and the same values left in the
variables, are the same result, exactly, whatever the kernels do: they are one text on both sides.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from warpwright.progress import IsCancelled
from warpwright.sandbox.confine import Policy, system_folders
from warpwright.syntax.source import Source, read_source
from warpwright.toolchain.compile import compile_host, compile_ptx, compile_runtime
from warpwright.toolchain.process import run_limited
from warpwright.toolchain.rights import Reads
from warpwright.verify.host_change import HostChange
from warpwright.verify.recorded.cases import RecordedCase, recorded_cases
from warpwright.verify.recorded.text import with_place
from warpwright.verify.report import USUAL, CaseResult, Status
from warpwright.verify.run import Observed, at

SECONDS = 60.0
MEMORY_BYTES = 4 << 30
OUTPUT_BYTES = 1 << 20
_HERE = Path(__file__).parent
_RUNTIME = _HERE / "runtime.cpp"
_CHILD = _HERE / "child.py"
_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\(([^)]*)\)")
_PARAMETER = re.compile(r"\.param\s+(?:\.align\s+\d+\s+)?\.[busf](\d+)\b")
_BOUND = "using "
_SIDES = ("original", "candidate")


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was seen of one side in each case, what its process was kept from, and the library that it loaded."""

    cases: list[dict[str, Any]]
    sandbox: tuple[str, ...]
    library: Path


class UnrecordableError(Exception):
    """A side cannot be run by itself; the message is one sentence without a full stop."""


def observe_recorded(
    sides: tuple[Source, Source],
    change: HostChange,
    *,
    arch: str,
    flags: tuple[str, ...],
    reads: Reads,
    is_cancelled: IsCancelled,
) -> tuple[Observed, tuple[Path, Path] | None]:
    """The verdict on the candidate (correct, wrong, unsafe where it keeps what it made, or not run with the reason),
    and both places as libraries, None where they could not be made. Raises CancelledError."""
    cases = recorded_cases(change)
    try:
        runtime = _runtime(is_cancelled)
        ptx = compile_ptx(sides[0], arch=arch, flags=flags, is_cancelled=is_cancelled)
        parameters = parameter_bytes(ptx.text)
        with ThreadPoolExecutor(2) as pool:
            texts, rights = (change.before, change.after), (None, reads)
            asked = [
                pool.submit(
                    _seen,
                    name,
                    with_place(side, change, text),
                    runtime,
                    cases,
                    parameters,
                    arch,
                    flags,
                    may,
                    is_cancelled,
                )
                for name, side, text, may in zip(_SIDES, sides, texts, rights, strict=True)
            ]
            before, after = (each.result() for each in asked)
    except UnrecordableError as error:
        return Observed(reason=f"The host code was not run: {error}."), None
    libraries = before.library, after.library
    if any(each["unknown"] for each in (*before.cases, *after.cases)):
        return Observed(reason="The host code was not run: it launches a kernel with unknown arguments."), libraries
    if other := next((each["otherwise"] for each in (*before.cases, *after.cases) if each["otherwise"]), ""):
        return Observed(
            reason=f"The host code was not run: it calls {other} with other arguments than are modelled."
        ), libraries
    return replace(_compared(change, cases, before.cases, after.cases), sandbox=before.sandbox), libraries


def parameter_bytes(ptx: str) -> dict[str, list[int]]:
    """The bytes of each parameter of each kernel by its mangled name, but for kernels that take a structure: what lies
    between its members is nobody's.

    >>> parameter_bytes(".visible .entry k(\\n .param .u64 .ptr .align 1 k_param_0,\\n .param .f32 k_param_1\\n)\\n{")
    {'k': [8, 4]}
    >>> parameter_bytes(".entry k(.param .align 8 .b8 k_param_0[24])"), parameter_bytes(".entry k()")
    ({}, {'k': []})
    """
    found: dict[str, list[int]] = {}
    for name, listed in _ENTRY.findall(ptx):
        parameters = [each for each in listed.split(",") if each.strip()]
        sizes = [_PARAMETER.search(each) for each in parameters]
        if all(size is not None and "[" not in each for size, each in zip(sizes, parameters, strict=True)):
            found[name] = [int(size[1]) // 8 for size in sizes if size is not None]
    return found


def _runtime(is_cancelled: IsCancelled) -> Path:
    made = compile_runtime(read_source(_RUNTIME), is_cancelled=is_cancelled)
    if made.library is None:
        raise UnrecordableError(f"what stands for the CUDA runtime could not be compiled ({made.reason.rstrip('.')})")
    return made.library


def _seen(
    name: str,
    source: Source,
    runtime: Path,
    cases: list[RecordedCase],
    parameters: Mapping[str, list[int]],
    arch: str,
    flags: tuple[str, ...],
    reads: Reads,
    is_cancelled: IsCancelled,
) -> _Seen:
    """Raises UnrecordableError and CancelledError."""
    made = compile_host(source, arch=arch, flags=flags, is_cancelled=is_cancelled, reads=reads)
    if made.library is None:
        raise UnrecordableError(f"the {name}'s place cannot be compiled by itself ({made.reason.rstrip('.')})")
    with tempfile.TemporaryDirectory(prefix="warpwright-") as folder:
        asked = [{"values": [value.hex() for value in case.values], "fails": case.fails} for case in cases]
        (Path(folder) / "cases.json").write_text(json.dumps(asked))
        (Path(folder) / "parameters.json").write_text(json.dumps(parameters))
        read = (*system_folders(), str(_HERE), str(runtime.parent), str(made.library.parent))
        finished = run_limited(
            [sys.executable, "-I", "-S", str(_CHILD), str(runtime), str(made.library)],
            directory=Path(folder),
            environment={"LC_ALL": "C.UTF-8"},
            timeout=SECONDS,
            output_bytes=OUTPUT_BYTES,
            memory_bytes=MEMORY_BYTES,
            is_cancelled=is_cancelled,
            policy=Policy(reads=read),
        )
        result = Path(folder) / "seen.json"
        if finished.returncode != 0 or not result.is_file():
            said = finished.stopped or (finished.output.strip().splitlines() or ["it did not finish"])[-1]
            raise UnrecordableError(f"the {name} {said if finished.stopped else f'failed: {said}'}")
        return _Seen(json.loads(result.read_text()), finished.in_force, made.library)


def _compared(
    change: HostChange, cases: list[RecordedCase], before: list[dict[str, Any]], after: list[dict[str, Any]]
) -> Observed:
    bound = [each for each in change.constants if each.startswith(_BOUND)]
    notes = [f"the host function is a template, which was run with `{' '.join(bound)}`"] if bound else []
    observed = Observed(Status.CORRECT, notes=notes)
    for case, mine, theirs in zip(cases, before, after, strict=True):
        reason = _difference(change, mine, theirs)
        function, call = case.fails
        when = f"{function} fails" if call == 1 else f"{function} fails the second time" if call else USUAL
        details = {"launches": mine["launches"]}
        zero = None if reason else 0.0
        observed.cases.append(CaseResult(case.shown, when, not reason, zero, zero, reason, details))
        if reason and observed.status is Status.CORRECT:
            observed.status = Status.UNSAFE if reason.startswith("it keeps") else Status.WRONG
            observed.reason = f"The candidate is wrong at {at(case.shown)} ({when}): {reason}."
    if observed.status is Status.CORRECT and not any(mine["launches"] for mine in before):
        return Observed(reason="The host code launches nothing at the values that were tried.")
    if observed.status is Status.CORRECT and not any(theirs["graphs"] for theirs in after):
        return Observed(reason="The candidate launches no graph at the values that were tried.")
    return observed


def _difference(change: HostChange, mine: dict[str, Any], theirs: dict[str, Any]) -> str:
    """How the candidate differs in one case; "" where it does not."""
    if mine["launches"] != theirs["launches"]:
        return f"it launches {theirs['launches']:,} kernels, and the original {mine['launches']:,}"
    if mine["digest"] != theirs["digest"]:
        return "it launches kernels with other arguments, of another shape, or in another order than the original"
    for variable, one, other in zip(change.variables, mine["values"], theirs["values"], strict=True):
        if one != other:
            return f"it leaves another value in `{variable.name}` than the original"
    if theirs["left"] > mine["left"]:
        return f"it keeps {theirs['left']} of the streams and graphs that it makes"
    if theirs["error"] != mine["error"]:
        return "it leaves an error behind for the next cudaGetLastError, which the original does not"
    return ""
