"""All of one verification of a torch extension: every size compared, the sizes to time timed, the kernels seen."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch

from warpwright_harness.events import Emit
from warpwright_harness.extension.batch import Parameters
from warpwright_harness.extension.judge import CandidateError, Case, Judge, check_case, failure
from warpwright_harness.extension.memory_check import check_memory
from warpwright_harness.extension.peers import operations_of, ready_peers, time_peers
from warpwright_harness.extension.proof import prove
from warpwright_harness.extension.reference import Reference
from warpwright_harness.extension.side import SideError
from warpwright_harness.extension.timing import Machine, time_case
from warpwright_harness.gpu_lock import gpu_alone, gpu_shared
from warpwright_harness.timing.speed import machine_rates
from warpwright_harness.timing.stopwatch import Stopwatch, l2_bytes


def judge_extension(request: Mapping[str, Any], reference: Reference | None, emit: Emit, device: str = "cuda") -> None:
    """Answer a request for an extension with a harness's events."""
    cases = [
        Case(i, c["shape"], Parameters(c["arguments"]), tuple(c["distributions"]), bool(c["check"]), bool(c["time"]))
        for i, c in enumerate(request["cases"])
    ]

    def waiting() -> None:
        emit({"event": "begin", "phase": "wait", "case": -1, "side": ""})

    with Judge(request, emit, device) as judge:
        if not _load(judge, cases[0]):
            return
        sound = []
        with gpu_shared(request["lock"], waiting):
            for case in cases:
                verdict = check_case(judge, case, reference) if case.check else "right"
                if verdict == "wrong":
                    return
                if verdict == "right":
                    sound.append(case)
            if device == "cuda" and sound and not _keeps_inside(judge, sound):
                return
        timed = [case for case in sound if case.time]
        with gpu_alone(request["lock"], waiting):
            stopwatch = Stopwatch() if timed and device == "cuda" else None
            machine = _machine(judge, stopwatch)
            for case in timed:
                operations = operations_of(judge, case, reference) if reference is not None else 0.0
                if not time_case(judge, case, machine, operations, float(request["seconds_per_shape"])):
                    return
            if device == "cuda":
                for case in timed or sound[:1]:
                    if not _proved(judge, case):
                        return
        if reference is None or stopwatch is None:
            return
        with gpu_shared(request["lock"], waiting):
            failed = ready_peers(judge, timed, reference)
        with gpu_alone(request["lock"], waiting):
            for case in timed:
                time_peers(judge, case, reference, failed, stopwatch)


def _machine(judge: Judge, stopwatch: Stopwatch | None) -> Machine:
    if stopwatch is None:
        return Machine()
    rates = machine_rates(judge.emit, judge.request, stopwatch)
    free, _ = torch.cuda.mem_get_info()
    return Machine(stopwatch.overhead_us, stopwatch.floor_us, rates, l2_bytes(), int(free))


def _load(judge: Judge, case: Case) -> bool:
    """Start both sides, at once; False, after an event, where an extension cannot be loaded."""

    def loaded(side: str) -> SideError | None:
        try:
            judge.side(side)
        except SideError as error:
            return error
        return None

    for side in ("baseline", "candidate"):
        judge.start(side)
    original, candidate = judge.meanwhile(case, "candidate", partial(loaded, "baseline"), partial(loaded, "candidate"))
    if original is not None:
        judge.emit({"event": "error", "text": f"the original cannot be loaded: {original}"})
    elif candidate is not None:
        found = CandidateError(f"it cannot be loaded: {candidate}", timed_out=candidate.timed_out)
        _reject(judge, case, "while loaded", found)
    return original is None and candidate is None


def _keeps_inside(judge: Judge, cases: list[Case]) -> bool:
    try:
        check_memory(judge, cases)
    except CandidateError as error:
        _reject(judge, cases[0], "under compute-sanitizer", error)
        return False
    return True


def _proved(judge: Judge, case: Case) -> bool:
    judge.begin(case, "candidate")
    try:
        prove(judge, case)
    except CandidateError as error:
        _reject(judge, case, "while profiled", error)
        return False
    return True


def _reject(judge: Judge, case: Case, when: str, error: CandidateError) -> None:
    result = failure(error)
    judge.emit({"event": "case", "case": case.index, "shape": dict(case.shape), "distribution": when, **result})
