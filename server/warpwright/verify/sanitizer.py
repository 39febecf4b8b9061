"""What only compute-sanitizer sees: accesses past an array's end that change nothing, and races, reads of unwritten
memory and barriers that came out right.

Each tool watches one launch at the smallest shape of several blocks, all at once, in processes without torch
(`warpwright_harness.bare`). To attach and to make a context takes them a second: they start when a verification does,
and candidates that come to this at about the same time share them; where a tool then finds something, each candidate
has a process of its own. What is found in the original too is not the candidate's fault.
These processes have limits and are not confined further: the two halves of compute-sanitizer talk over sockets. Only
device code of the candidate runs in them.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from warpwright.progress import IsCancelled
from warpwright.sandbox.confine import Policy
from warpwright.toolchain.find import Toolchain, find_toolchain
from warpwright.verify.child import Child, ChildEndedError, Kind
from warpwright.verify.harness import harness_environment, harness_python
from warpwright.verify.plan import gpu_lock
from warpwright.verify.report import PASSED, Status
from warpwright.verify.run import Observed, at
from warpwright.verify.together import Together

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
SECONDS = 20.0
MOST_ELEMENTS = 1 << 18
_FOUND = 86
"""The exit status that a tool is asked for where it found something."""
_ONLY_LIMITS = Policy(confined=False, limits={"CPU": 120, "FSIZE": 1 << 30})

_FINDING = re.compile(
    r"^=+ (?:Error: |Warning: )?((?:Invalid|Uninitialized|Race|Potential|Misaligned|Barrier|Divergent).*)$", re.M
)


@contextmanager
def hidden_faults_expected() -> Iterator[None]:
    """Have the tools get ready while a verification is under way that may come to `look_for_hidden_faults`."""
    with _watching.expecting() if find_sanitizer() is not None else nullcontext():
        yield


def look_for_hidden_faults(observed: Observed, request: Mapping[str, Any], is_cancelled: IsCancelled) -> None:
    """Where `observed` lets the candidate pass: unsafe it is where a tool finds what it does not find in the original.

    Notes say what was not looked for. Raises CancelledError.
    """
    case = _case(observed, request) if observed.status in PASSED else None
    if case is None:
        return
    if find_sanitizer() is None:
        observed.notes.append("compute-sanitizer is not here: faults that change no result were not looked for")
        return
    found = _watching.answer(_launch(request, case, "candidate"), is_cancelled)
    faults = {tool: said for tool, said in found.items() if said}
    if faults:
        theirs = _found(_started(tuple(faults)), [_launch(request, case, "baseline")], is_cancelled)
        for tool, said in faults.items():
            if not theirs.get(tool):
                observed.status = Status.UNSAFE
                observed.reason = f"The candidate is not safe at {at(case['shape'])}: {tool} says: {said}."
                return
            observed.notes.append(f"compute-sanitizer's {tool} finds in the original, too: {said}")
    if lacking := [tool for tool in TOOLS if tool not in found]:
        observed.notes.append(f"compute-sanitizer's {' and '.join(lacking)} did not finish")


def find_sanitizer() -> Path | None:
    """Beside nvcc, on PATH, or where the CUDA toolkit is."""
    toolchain = find_toolchain()
    places = [str(toolchain.nvcc.parent / "compute-sanitizer")] if isinstance(toolchain, Toolchain) else []
    homes = (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda")
    places += ["compute-sanitizer", *(f"{home}/bin/compute-sanitizer" for home in homes if home)]
    return next((Path(path) for place in places if (path := shutil.which(place))), None)


def _case(observed: Observed, request: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The smallest right one of several blocks; where none has several, the largest; None where all are too large."""
    right = [dict(each.shape) for each in observed.cases if each.ok]

    def size(case: Mapping[str, Any]) -> int:
        return sum(case["counts"].values())

    def blocks(case: Mapping[str, Any]) -> int:
        x, y, z = case["candidate"]["grid"]
        return int(x * y * z)

    fitting = [case for case in request["cases"] if case["shape"] in right and all(case["counts"].values())]
    fitting = sorted((case for case in fitting if size(case) <= MOST_ELEMENTS), key=size)
    return next((case for case in fitting if blocks(case) > 1), fitting[-1] if fitting else None)


def _launch(request: Mapping[str, Any], case: Mapping[str, Any], side: str) -> dict[str, Any]:
    """One side at one case, as `warpwright_harness.bare` reads it."""
    launch = {name: request[name] for name in ("arguments", "variables", "lock", "seed")}
    launch |= {name: case[name] for name in ("counts", "scalars", "limits", "offsets")}
    return {**launch, **request[side], **case[side]}


def _started(tools: Sequence[str] = TOOLS) -> dict[str, Child]:
    """A process under each tool, which gets ready to launch; a tool that cannot be started has none."""
    sanitizer = find_sanitizer()
    children: dict[str, Child] = {}
    for tool in tools if sanitizer is not None else ():
        command = (
            str(sanitizer), "--tool", tool, "--print-limit", "5", "--error-exitcode", str(_FOUND),
            harness_python(), "-m", "warpwright_harness", "--bare", gpu_lock(),
        )  # fmt: skip
        kind = Kind("compute-sanitizer", command, harness_environment(), _ONLY_LIMITS, step_seconds=SECONDS)
        with suppress(OSError):
            children[tool] = Child(kind)
    return children


def _found(
    children: Mapping[str, Child], launches: Sequence[Mapping[str, Any]], is_cancelled: IsCancelled
) -> dict[str, str]:
    """What each tool that came to its end found in these launches, made one after the other in its process; "" for
    nothing. The processes end with it."""
    try:
        with ThreadPoolExecutor(max(1, len(children))) as threads:
            said = list(threads.map(lambda child: _said(child, launches, is_cancelled), children.values()))
    finally:
        _end(children)
    return {tool: words for tool, words in zip(children, said, strict=True) if words is not None}


def _end(children: Mapping[str, Child]) -> None:
    for child in children.values():
        child.kill()


def _found_in_each(
    children: Mapping[str, Child], launches: Sequence[Mapping[str, Any]], is_cancelled: IsCancelled
) -> list[dict[str, str]]:
    """The same for each launch by itself: where a tool found something, each launch has a process of its own."""
    found = _found(children, launches, is_cancelled)
    clean = {tool: words for tool, words in found.items() if not words}
    if len(clean) == len(TOOLS) or len(launches) == 1:
        return [found] * len(launches)
    others = [tool for tool in TOOLS if tool not in clean]
    return [{**clean, **_found(_started(others), [launch], is_cancelled)} for launch in launches]


_watching: Together[Mapping[str, Child], Mapping[str, Any], dict[str, str]] = Together(_started, _found_in_each, _end)


def _said(child: Child, launches: Sequence[Mapping[str, Any]], is_cancelled: IsCancelled) -> str | None:
    """What one tool found, "" for nothing; None where it did not finish."""
    try:
        child.send({"launches": launches}, is_cancelled)
        while True:
            child.next_event(SECONDS, is_cancelled)
    except ChildEndedError as error:
        status = error.exit_status
    if status == 0:
        return ""
    if status != _FOUND:
        return None
    first = _FINDING.search(child.printed())
    words = " ".join(first[1].split()).removesuffix(".")[:160] if first else "an error"
    return words[:1].lower() + words[1:]
