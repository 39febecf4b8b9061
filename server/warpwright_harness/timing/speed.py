"""The timed half of a request: the machine's rates, and every shape that is to be timed; the reference beside them is a
request of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from warpwright_harness.checks.correctness import Reference
from warpwright_harness.device import LaunchRefusedError
from warpwright_harness.events import Emit
from warpwright_harness.gpu_lock import gpu_alone, gpu_shared
from warpwright_harness.session import Case, Session
from warpwright_harness.timing.peers import compile_peers, operations_of, peers_of, time_peers
from warpwright_harness.timing.rates import MEMORY, RATES, measure_rates
from warpwright_harness.timing.rounds import time_case
from warpwright_harness.timing.stopwatch import Stopwatch

FURTHER = (("baseline", "candidate"), ("candidate", "baseline"), ("baseline", "candidate"))
"""In which order both sides are loaded three times more. Where its code lies moves a kernel's time by a tenth of a
microsecond and more when caches are cold; each round takes one of four places, and no side's are better."""


def time_cases(
    session: Session,
    cases: Sequence[Case],
    reference: Reference | None,
    request: Mapping[str, Any],
    waiting: Callable[[], None],
) -> None:
    """Emit an event "speed" for each case until the candidate is caught at something."""
    peers = peers_of(request["reference"], reference) if reference is not None else None
    with ExitStack() as stack:
        stack.enter_context(gpu_alone(request["lock"], waiting))
        sessions = [session, *_further(session, request, stack)]
        stopwatch = Stopwatch()
        counted = [operations_of(session, peers, case) if peers is not None else 0.0 for case in cases]
        rates = machine_rates(session.emit, request["rates"], stopwatch, RATES if any(counted) else MEMORY)
        for case, operations in zip(cases, counted, strict=True):
            if not time_case(sessions, case, stopwatch, rates, operations, float(request["seconds_per_shape"])):
                return


def measure_peers(
    session: Session, reference: Reference, request: Mapping[str, Any], waiting: Callable[[], None]
) -> None:
    """Emit an event "peers" for each case of a session that need not have loaded its kernels. Compiling the reference
    takes seconds and shares the GPU."""
    peers, cases = peers_of(request["reference"], reference), session.cases()
    with gpu_shared(request["lock"], waiting):
        compile_peers(session, peers, cases)
    with gpu_alone(request["lock"], waiting):
        stopwatch = Stopwatch()
        for case in cases:
            time_peers(session, peers, case, stopwatch)


def measure_rates_alone(emit: Emit, request: Mapping[str, Any], waiting: Callable[[], None]) -> None:
    """Emit an event "rates" with those of memory, or a note that says why there are none."""
    with gpu_alone(request["lock"], waiting):
        machine_rates(emit, {}, Stopwatch(), MEMORY)


def _further(session: Session, request: Mapping[str, Any], stack: ExitStack) -> Iterator[Session]:
    for order in FURTHER:
        try:
            yield stack.enter_context(Session(request, session.emit, order))
        except LaunchRefusedError:  # no room for the variables of another copy
            return


def machine_rates(
    emit: Emit, known: Mapping[str, float], stopwatch: Stopwatch, wanted: Sequence[str]
) -> Mapping[str, float]:
    """The machine's: those that the parent has kept, and of the wanted ones those that it lacks, which are measured; an
    event "rates" then says all."""
    lacking = [name for name in wanted if name not in known]
    if not lacking:
        return known
    emit({"event": "begin", "phase": "rates", "case": -1, "side": ""})
    try:
        measured = {**known, **measure_rates(stopwatch, lacking)}
    except (RuntimeError, ImportError) as error:
        if "CUDA error" in str(error):
            raise
        emit({"event": "note", "text": f"the machine's rates were not measured: {error}"})
        return {}
    emit({"event": "rates", "rates": measured})
    return measured
