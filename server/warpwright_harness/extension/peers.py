"""What the reference of an extension takes in eager torch and through torch.compile, at the sizes that were timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from statistics import median
from typing import Any

import torch

from warpwright_harness.extension.judge import Case, Judge
from warpwright_harness.extension.reference import Reference, reference_arguments
from warpwright_harness.timing.stopwatch import SPIN_CYCLES, SPIN_US, Stopwatch

SAMPLES = 12
MOST_SPIN_US = 20_000.0


def operations_of(judge: Judge, case: Case, reference: Reference) -> float:
    """What torch counts on the reference: a multiplication and an addition are two. 0 where it counts nothing."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        why = _tried(partial(reference, **_arguments(judge, case)))
    return 0.0 if why else float(counter.get_total_flops())


def ready_peers(judge: Judge, cases: Sequence[Case], reference: Reference) -> dict[str, dict[int, str]]:
    """Run the reference at each size, eager and compiled, so that timing finds it ready: by peer and size, why it
    fails, "" where it does not."""
    compiled = torch.compile(reference, dynamic=False)
    failed: dict[str, dict[int, str]] = {"eager": {}, "compile": {}}
    for case in cases:
        judge.emit({"event": "begin", "phase": "peers", "case": case.index, "side": ""})
        arguments = _arguments(judge, case)
        failed["eager"][case.index] = _tried(partial(reference, **arguments))
        lacks = "" if find_spec("triton") else "triton is not installed, which torch.compile needs"
        failed["compile"][case.index] = lacks or _tried(partial(compiled, **arguments))
    return failed


def time_peers(
    judge: Judge, case: Case, reference: Reference, failed: dict[str, dict[int, str]], stopwatch: Stopwatch
) -> None:
    """Emit a "peers" event: medians in microseconds with cold caches, None where a peer does not run, and why."""
    arguments = _arguments(judge, case)
    known: dict[str, Any] = {"eager_us": None, "compile_us": None}
    for name, function in (("eager", reference), ("compile", torch.compile(reference, dynamic=False))):
        if why := failed[name][case.index]:
            known[f"{name}_failed"] = why
        else:
            known[f"{name}_us"] = _timed(stopwatch, partial(function, **arguments))
    judge.emit({"event": "peers", "case": case.index, "shape": dict(case.shape), "peers": known})


def _arguments(judge: Judge, case: Case) -> dict[str, Any]:
    return reference_arguments(case.parameters, judge.draw(case, "normal"), wide=False)


def _timed(stopwatch: Stopwatch, work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    enqueueing = (time.perf_counter() - started) * 1e6
    spin = int(min(2 * enqueueing + SPIN_US, MOST_SPIN_US) / SPIN_US * SPIN_CYCLES)
    return median([stopwatch.start_cold(work, spin)() for _ in range(SAMPLES)][2:])


def _tried(work: Callable[[], object]) -> str:
    """Why it fails, in a line; "" where it does not. A user's module may raise anything."""
    try:
        work()
        torch.cuda.synchronize()
    except Exception as error:
        if "CUDA error" in str(error):
            raise
        line = next(iter(str(error).strip().splitlines()), "")
        return f"{type(error).__name__}: {line[:200]}"
    return ""
