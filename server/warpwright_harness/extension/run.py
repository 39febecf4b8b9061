"""All of one verification of a torch extension: every size compared, the sizes to time timed, the kernels seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any

import torch

from warpwright_harness.events import Emit
from warpwright_harness.extension.batch import Parameters
from warpwright_harness.extension.check import check_case
from warpwright_harness.extension.judge import CandidateError, Case, Judge, failure
from warpwright_harness.extension.memory_check import MemoryCheck
from warpwright_harness.extension.peers import import_compiler, operations_of, ready_peers, time_peers
from warpwright_harness.extension.proof import prove
from warpwright_harness.extension.reference import Reference
from warpwright_harness.extension.side import SideError
from warpwright_harness.extension.timing import Machine, time_case
from warpwright_harness.gpu_lock import gpu_alone, gpu_shared
from warpwright_harness.timing.rates import RATES
from warpwright_harness.timing.speed import machine_rates
from warpwright_harness.timing.stopwatch import Stopwatch, l2_bytes


def judge_extension(request: Mapping[str, Any], reference: Reference | None, emit: Emit, device: str = "cuda") -> None:
    """Answer a request for an extension with a harness's events, the last of which says where the time went."""
    cases = [
        Case(i, c["shape"], Parameters(c["arguments"]), tuple(c["distributions"]), bool(c["check"]), bool(c["time"]))
        for i, c in enumerate(request["cases"])
    ]
    with Judge(request, emit, device) as judge:
        try:
            _judge(judge, cases, reference)
        finally:
            seconds = {name: round(took, 2) for name, took in judge.seconds.items()}
            emit({"event": "seconds", "seconds": seconds})


def _judge(judge: Judge, cases: Sequence[Case], reference: Reference | None) -> None:
    on_gpu = judge.device == "cuda"
    with ExitStack() as stack:
        for side in ("baseline", "candidate"):
            judge.start(side)
        memory_check = MemoryCheck(judge, cases) if on_gpu else None
        if memory_check is not None:
            stack.callback(memory_check.end)
        compiler = import_compiler() if on_gpu and reference is not None and any(c.time for c in cases) else None
        with judge.stage("load"):
            if not _load(judge, cases[0]):
                return
        with _gpu(judge, gpu_shared), judge.stage("compare"):
            sound = _sound(judge, cases, reference)
        if sound is None:
            return
        if memory_check is not None and sound:
            with judge.stage("look for accesses outside"):
                memory_check.get_ready(sound[0])
            with _gpu(judge, gpu_shared), judge.stage("look for accesses outside"):
                if not _keeps_inside(judge, memory_check, sound):
                    return
                memory_check.end()
        if compiler is not None:
            with judge.stage("import torch.compile"):
                compiler.join()
        timed = [case for case in sound if case.time]
        with _gpu(judge, gpu_alone):
            with judge.stage("measure the machine"):
                stopwatch = Stopwatch() if timed and on_gpu else None
                machine = _machine(judge, stopwatch)
            with judge.stage("time"):
                for case in timed:
                    operations = operations_of(judge, case, reference) if reference is not None else 0.0
                    seconds = float(judge.request["seconds_per_shape"])
                    if not time_case(judge, case, machine, reference, operations, seconds):
                        return
        if not on_gpu:
            return
        with _gpu(judge, gpu_shared):
            failed = _proved_and_ready(judge, timed or sound[:1], reference if timed else None)
        if failed is None or reference is None or stopwatch is None:
            return
        with _gpu(judge, gpu_alone), judge.stage("time the reference"):
            for case in timed:
                time_peers(judge, case, reference, failed, stopwatch)


@contextmanager
def _gpu(judge: Judge, lock: Callable[[str, Callable[[], None]], AbstractContextManager[None]]) -> Iterator[None]:
    """Hold the GPU, shared or alone."""

    def waiting() -> None:
        judge.emit({"event": "begin", "phase": "wait", "case": -1, "side": ""})

    with ExitStack() as stack:
        with judge.stage("wait for the GPU"):
            stack.enter_context(lock(judge.request["lock"], waiting))
        yield


def _sound(judge: Judge, cases: Sequence[Case], reference: Reference | None) -> list[Case] | None:
    """The cases that the original can be compared at; None, after an event, where the candidate is at fault."""
    sound = []
    for case in cases:
        verdict = check_case(judge, case, reference) if case.check else "right"
        if verdict == "wrong":
            return None
        if verdict == "right":
            sound.append(case)
    return sound


def _machine(judge: Judge, stopwatch: Stopwatch | None) -> Machine:
    if stopwatch is None:
        return Machine()
    rates = machine_rates(judge.emit, judge.request["rates"], stopwatch, RATES)
    free, _ = torch.cuda.mem_get_info()
    return Machine(stopwatch.overhead_us, stopwatch.floor_us, rates, l2_bytes(), int(free))


def _load(judge: Judge, case: Case) -> bool:
    """Load both extensions, at once; False, after an event, where one cannot be loaded."""

    def loaded(side: str) -> SideError | None:
        try:
            judge.side(side)
        except SideError as error:
            return error
        return None

    original, candidate = judge.meanwhile(case, "candidate", partial(loaded, "baseline"), partial(loaded, "candidate"))
    if original is not None:
        judge.emit({"event": "error", "text": f"the original cannot be loaded: {original}"})
    elif candidate is not None:
        found = CandidateError(f"it cannot be loaded: {candidate}", timed_out=candidate.timed_out)
        _reject(judge, case, "while loaded", found)
    return original is None and candidate is None


def _keeps_inside(judge: Judge, memory_check: MemoryCheck, cases: Sequence[Case]) -> bool:
    try:
        memory_check.look(cases)
    except CandidateError as error:
        _reject(judge, cases[0], "under compute-sanitizer", error)
        return False
    return True


def _proved_and_ready(
    judge: Judge, cases: Sequence[Case], reference: Reference | None
) -> dict[str, dict[int, str]] | None:
    """See which kernels run, in the sides, and compile the reference here meanwhile: `ready_peers`' answer. None, after
    an event, where the candidate is at fault.

    Only what is seen of the candidate tells the parent what goes on, until it is all seen: then a compilation that
    never ends costs no verdict.
    """

    peers = {"event": "begin", "phase": "peers", "case": cases[0].index if cases else -1, "side": ""}

    def proved() -> bool:
        sound = all(_proved(judge, case) for case in cases)
        if reference is not None:
            judge.emit(peers)
        return sound

    with ThreadPoolExecutor(1) as pool:
        proving = pool.submit(proved)

        def begin(case: Case) -> None:
            if proving.done():
                judge.emit({**peers, "case": case.index})

        failed: dict[str, dict[int, str]] = {}
        if reference is not None:
            with judge.stage("compile the reference, see which kernels run"):
                failed = ready_peers(judge, cases, reference, begin)
        with judge.stage("see which kernels run"):
            return failed if proving.result() else None


def _proved(judge: Judge, case: Case) -> bool:
    try:
        prove(judge, case)
    except CandidateError as error:
        _reject(judge, case, "while profiled", error)
        return False
    return True


def _reject(judge: Judge, case: Case, when: str, error: CandidateError) -> None:
    result = failure(error)
    judge.emit({"event": "case", "case": case.index, "shape": dict(case.shape), "distribution": when, **result})
