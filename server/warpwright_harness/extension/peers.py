"""What the reference of an extension takes in eager torch and through torch.compile, at the sizes that were timed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from threading import Thread
from typing import Any

import torch

from warpwright_harness.extension.judge import Case, Judge
from warpwright_harness.extension.reference import Reference, reference_arguments
from warpwright_harness.timing.operations import operations_counted
from warpwright_harness.timing.peers import microseconds_of, why_not
from warpwright_harness.timing.stopwatch import Stopwatch


def import_compiler() -> Thread:
    """Begin to import what torch.compile needs, beside other work: it takes seconds."""

    def work() -> None:
        with suppress(Exception):  # whoever compiles is told
            import_module("torch._inductor.compile_fx")

    thread = Thread(target=work, daemon=True)
    thread.start()
    return thread


def operations_of(judge: Judge, case: Case, reference: Reference) -> float:
    """What torch counts on the reference at a size (`timing.operations.operations_counted`)."""
    return operations_counted(partial(reference, **_arguments(judge, case)))


def ready_peers(
    judge: Judge, cases: Sequence[Case], reference: Reference, begin: Callable[[Case], object]
) -> dict[str, dict[int, str]]:
    """Run the reference at each size, eager and compiled, so that timing finds it ready: by peer and size, why it
    fails, "" where it does not. `begin` is called with each before."""
    from torch._inductor import config

    config.compile_threads = 1  # no further processes, which would live as long as this one
    compiled = torch.compile(reference, dynamic=False)
    failed: dict[str, dict[int, str]] = {"eager": {}, "compile": {}}
    for case in cases:
        begin(case)
        arguments = _arguments(judge, case)
        failed["eager"][case.index] = why_not(partial(reference, **arguments))
        lacks = "" if find_spec("triton") else "triton is not installed, which torch.compile needs"
        failed["compile"][case.index] = lacks or why_not(partial(compiled, **arguments))
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
            known[f"{name}_us"] = microseconds_of(stopwatch, partial(function, **arguments))
    judge.emit({"event": "peers", "case": case.index, "shape": dict(case.shape), "peers": known})


def _arguments(judge: Judge, case: Case) -> dict[str, Any]:
    return reference_arguments(case.parameters, judge.draw(case, "normal"), wide=False)
