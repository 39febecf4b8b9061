"""The loop of the harness's process: one request after the other, until a CUDA error ends it."""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TextIO

from warpwright_harness.events import Emit

IDLE_SECONDS = 900.0
"""A process that nobody asks anything holds memory of the GPU for nothing: it ends."""


def serve(requests: TextIO, events: TextIO) -> int:
    """Answer each line of `requests` with events, the last of which is "done", "refused", "fault" or "error".

    Returns the exit status: 0 at the end of the requests, 1 after a CUDA error or an error of its own, with which the
    process is spent.
    """

    def emit(event: dict[str, Any]) -> None:
        events.write(json.dumps(event) + "\n")
        events.flush()

    from warpwright_harness.device import probe

    device = probe()
    emit({"event": "hello", "device": device, "has_bytecode": _has_bytecode()})
    if "missing" in device:
        return 1
    _import_the_rest()
    for line in _lines(requests):
        if not _answer(json.loads(line), emit):
            return 1
    return 0


def _import_the_rest() -> None:
    """What every first request would wait for, done while whoever will ask still compiles; nothing of the GPU's, as
    perhaps nobody will."""
    from warpwright_harness import endings
    from warpwright_harness.checks import correctness, dependence
    from warpwright_harness.timing import speed

    del correctness, dependence, endings, speed


def import_all() -> None:
    """What any request needs, torch.compile too; as nobody waits for it, with the lowest priority."""
    os.nice(19)
    _import_the_rest()
    with suppress(ImportError):
        import torch._inductor.compile_fx  # noqa: F401


def _has_bytecode() -> bool:
    """Whether Python found torch's modules compiled; false also where there is no torch."""
    cached = getattr(sys.modules.get("torch"), "__cached__", None)
    return cached is not None and Path(cached).is_file()


@cache
def _make_context() -> None:
    """The GPU's context, before anything of a request is loaded, and torch's first launch in it."""
    import torch

    from warpwright_harness.timing.operations import operations_counted

    with suppress(RuntimeError):  # whoever asks meets it again, and is told
        operations_counted(lambda: torch.zeros(1, device="cuda").add(1))


def _lines(requests: TextIO) -> Iterator[str]:
    """The lines as they come, until their end, or until none came for IDLE_SECONDS."""
    handle, left = requests.fileno(), b""
    while select.select([handle], [], [], IDLE_SECONDS)[0]:
        chunk = os.read(handle, 1 << 16)
        if not chunk:
            return
        *lines, left = (left + chunk).split(b"\n")
        yield from (line.decode() for line in lines)


def _answer(request: Mapping[str, Any], emit: Emit) -> bool:
    """False where the process cannot go on."""
    from warpwright_harness.endings import ending_of

    try:
        _run(request, emit)
    except Exception as error:  # a user's reference may raise anything
        ending = ending_of(error)
    else:
        ending = {"event": "done", "spent": "extension" in request or request.get("measure") in ("host", "formulas")}
    emit(ending)
    return ending["event"] in ("done", "refused") and not ending.get("spent")


def _run(request: Mapping[str, Any], emit: Emit) -> None:
    from warpwright_harness.checks.correctness import check_case
    from warpwright_harness.checks.dependence import check_dependence, dependence_case
    from warpwright_harness.gpu_lock import gpu_shared
    from warpwright_harness.session import Case, Session, load_reference

    def waiting() -> None:
        emit({"event": "begin", "phase": "wait", "case": -1, "side": ""})

    _make_context()
    if request.get("measure") == "nothing":
        return
    if request.get("measure") == "rates":
        from warpwright_harness.timing.speed import measure_rates_alone

        measure_rates_alone(emit, request, waiting)
        return
    if request.get("measure") == "host":
        from warpwright_harness.host_loop import run_host

        run_host(request, emit, waiting)
        return
    if request.get("measure") == "formulas":
        from warpwright_harness.formula_timing import time_formulas

        time_formulas(request, emit, waiting)
        return
    if request.get("measure") == "formula-checks":
        from warpwright_harness.formula_checks import check_formulas

        check_formulas(request, emit, waiting)
        return
    reference = None
    if request["reference"]:
        try:
            reference = load_reference(request["reference"])
        except Exception as error:  # a user's module may do anything
            emit({"event": "note", "text": f"the reference cannot be loaded: {type(error).__name__}: {error}"})
    if request.get("measure") == "peers":
        if reference is not None:
            from warpwright_harness.timing.speed import measure_peers

            measure_peers(Session(request, emit), reference, request, waiting)
        return
    if "extension" in request:
        from warpwright_harness.extension.run import judge_extension

        judge_extension(request, reference, emit)
        return
    with Session(request, emit) as session:
        sound: list[Case] = []
        for case in session.cases():
            if case.is_more and not sound:
                continue  # it shows nothing by itself, where the original is at fault at all the others
            with gpu_shared(request["lock"], waiting):
                verdict = check_case(session, case, reference, request["judge"]) if case.check else "right"
            if verdict == "wrong":
                return
            if verdict == "right":
                sound.append(case)
        example = dependence_case([case for case in sound if case.check])
        if example is not None:
            with gpu_shared(request["lock"], waiting):
                if not check_dependence(session, example, reference, request["judge"]):
                    return
        timed = [case for case in sound if case.time]
        if timed:
            from warpwright_harness.timing.speed import time_cases

            time_cases(session, timed, reference, request, waiting)
