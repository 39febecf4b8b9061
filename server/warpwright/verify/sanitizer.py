"""What only compute-sanitizer sees: accesses past an array's end that change nothing, and races, reads of unwritten
memory and barriers that came out right.

Each tool watches one launch at the smallest shape of several blocks, all at once, in processes without torch that start
in a fraction of a second (`warpwright_harness.bare`). Candidates that come to this at once share these processes; where
a tool then finds something, each of them has one of its own. What it finds in the original too is not the candidate's
fault.
These processes have limits and are not confined further: the two halves of compute-sanitizer talk over sockets. Only
device code of the candidate runs in them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from warpwright.progress import IsCancelled
from warpwright.toolchain.find import Toolchain, find_toolchain
from warpwright.toolchain.process import run_limited
from warpwright.verify.harness import harness_environment, harness_python
from warpwright.verify.report import Status
from warpwright.verify.run import Observed, at
from warpwright.verify.together import Together

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
SECONDS = 20.0
MOST_ELEMENTS = 1 << 18
_FOUND = 86
"""The exit status that a tool is asked for where it found something."""

_FINDING = re.compile(
    r"^=+ (?:Error: |Warning: )?((?:Invalid|Uninitialized|Race|Potential|Misaligned|Barrier|Divergent).*)$", re.M
)
_PASSED = (Status.CORRECT, Status.FASTER, Status.SLOWER, Status.INCONCLUSIVE)


def look_for_hidden_faults(observed: Observed, request: Mapping[str, Any], is_cancelled: IsCancelled) -> None:
    """Where `observed` lets the candidate pass: unsafe it is where a tool finds what it does not find in the original.

    Notes say what was not looked for. Raises CancelledError.
    """
    case = _case(observed, request) if observed.status in _PASSED else None
    if case is None:
        return
    sanitizer = find_sanitizer()
    if sanitizer is None:
        observed.notes.append("compute-sanitizer is not here: faults that change no result were not looked for")
        return
    found = _watching.answer(_Watch(sanitizer, _launch(request, case, "candidate")), is_cancelled)
    faults = {tool: said for tool, said in found.items() if said}
    if faults:
        theirs = _watched(sanitizer, [_launch(request, case, "baseline")], tuple(faults), is_cancelled)
        for tool, said in faults.items():
            if not theirs.get(tool):
                observed.status = Status.UNSAFE
                observed.reason = f"The candidate is not safe at {at(case['shape'])}: {tool} says: {said}."
                return
            observed.notes.append(f"compute-sanitizer's {tool} finds in the original, too: {said}")
    if lacking := [tool for tool in TOOLS if tool not in found]:
        observed.notes.append(f"compute-sanitizer's {' and '.join(lacking)} did not come to an end")


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


@dataclass(frozen=True, slots=True)
class _Watch:
    """A launch that is to be watched, and by what."""

    sanitizer: Path
    launch: Mapping[str, Any]


def _launch(request: Mapping[str, Any], case: Mapping[str, Any], side: str) -> dict[str, Any]:
    """One side at one case, as `warpwright_harness.bare` reads it."""
    launch = {name: request[name] for name in ("arguments", "variables", "lock", "seed")}
    launch |= {name: case[name] for name in ("counts", "scalars", "limits")}
    return {**launch, **request[side], **case[side]}


def _found_in_each(watches: Sequence[_Watch], is_cancelled: IsCancelled) -> list[dict[str, str]]:
    """What each tool that came to its end found in each launch, "" for nothing."""
    sanitizer, launches = watches[0].sanitizer, [watch.launch for watch in watches]
    found = _watched(sanitizer, launches, TOOLS, is_cancelled)
    clean = {tool: words for tool, words in found.items() if not words}
    if len(clean) == len(TOOLS) or len(launches) == 1:
        return [found] * len(launches)
    others = tuple(tool for tool in TOOLS if tool not in clean)
    return [{**clean, **_watched(sanitizer, [launch], others, is_cancelled)} for launch in launches]


_watching: Together[_Watch, dict[str, str]] = Together(_found_in_each)


def _watched(
    sanitizer: Path, launches: Sequence[Mapping[str, Any]], tools: Sequence[str], is_cancelled: IsCancelled
) -> dict[str, str]:
    """What each tool that came to its end found in these launches, made one after the other in one process; "" for
    nothing."""
    with tempfile.TemporaryDirectory(prefix="warpwright-sanitizer-") as folder:
        described = Path(folder) / "launches.json"
        described.write_text(json.dumps(launches), encoding="utf-8")
        watch = partial(_said, sanitizer, described, is_cancelled)
        with ThreadPoolExecutor(len(tools)) as watchers:
            said = dict(zip(tools, watchers.map(watch, tools), strict=True))
    return {tool: words for tool, words in said.items() if words is not None}


def _said(sanitizer: Path, described: Path, is_cancelled: IsCancelled, tool: str) -> str | None:
    """What one tool found, "" for nothing; None where it did not come to an end."""
    folder = described.parent / tool
    folder.mkdir()
    command = [
        str(sanitizer), "--tool", tool, "--print-limit", "5", "--error-exitcode", str(_FOUND),
        harness_python(), "-m", "warpwright_harness", "--bare", str(described),
    ]  # fmt: skip
    try:
        finished = run_limited(
            command,
            directory=folder,
            environment=harness_environment(),
            timeout=SECONDS,
            output_bytes=1 << 20,
            memory_bytes=None,
            is_cancelled=is_cancelled,
        )
    except OSError:
        return None
    if finished.returncode == 0 and not finished.stopped:
        return ""
    if finished.returncode != _FOUND:
        return None
    first = _FINDING.search(finished.output)
    words = " ".join(first[1].split()).removesuffix(".")[:160] if first else "an error"
    return words[:1].lower() + words[1:]
