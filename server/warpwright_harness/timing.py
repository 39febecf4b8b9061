"""Is the candidate faster? Interleaved rounds on one GPU that nobody else times on.

A round runs both sides in random order on one of several sets of inputs (other values at other addresses), restores
what they changed, empties the second-level cache and times each launch with CUDA events, once cold and once warm.
Every timed output of the candidate is compared with the original's, so that nothing behaves only while it is checked.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch

from warpwright_harness.buffers import POISONS, Buffer, perturbed
from warpwright_harness.compare import NOISE_FACTOR, compare, largest_gap
from warpwright_harness.correctness import PERTURBATIONS, Reference, input_values, seed_of
from warpwright_harness.device import synchronize
from warpwright_harness.intervals import speedup_interval
from warpwright_harness.session import DEVICE, Case, Session

SETS = 4
LEAST_ROUNDS = 30
MOST_ROUNDS = 120
SPIN_CYCLES = 200_000
"""A kernel that spins this long (about 0.1 ms) goes ahead of each timed one, so that the GPU never waits for Python."""
LAUNCH_BOUND_FACTOR = 20


def time_case(session: Session, case: Case, reference: Reference | None, seconds: float) -> bool:
    """Time both sides at one shape and emit a "speed" event; False where a timed output was wrong."""
    flush = torch.empty(2 * _l2_bytes(), dtype=torch.uint8, device=DEVICE)
    sets = [_Set(session, case, number) for number in range(SETS if _bytes(case) < 1 << 30 else 2)]
    order = random.Random(session.seed + case.index)
    cold: dict[str, list[float]] = {"baseline": [], "candidate": []}
    warm: dict[str, list[float]] = {"baseline": [], "candidate": []}
    started = time.monotonic()
    rounds = 0
    while rounds < MOST_ROUNDS and (rounds < LEAST_ROUNDS or time.monotonic() - started < seconds):
        chosen = sets[order.randrange(len(sets))]
        for side in order.sample(("baseline", "candidate"), 2):
            session.begin("time", case, side)
            session.set_variables(side, case, chosen.values)
            chosen.restore()
            flush.fill_(rounds % 251)
            took = _timed(partial(session.launch, side, case, chosen.buffers))
            why = chosen.wrong()  # of both sides, so that what happens between two timings is the same
            chosen.restore()
            session.launch(side, case, chosen.buffers)
            chosen.restore()
            again = _timed(partial(session.launch, side, case, chosen.buffers))
            why = chosen.wrong() or why
            if why and side == "candidate":
                session.emit(_wrong_event(case, why))
                return False
            if rounds > 1:  # the first rounds warm clocks and pages up
                cold[side].append(took)
                warm[side].append(again)
        rounds += 1
    speedup, interval = speedup_interval(cold["baseline"], cold["candidate"], session.seed)
    warm_speedup, warm_interval = speedup_interval(warm["baseline"], warm["candidate"], session.seed)
    floor = median(_timed(lambda: torch.cuda._sleep(1)) for _ in range(20))
    fastest = median(cold["candidate"])
    bound = _bound_us(case)
    session.emit(
        {
            "event": "speed",
            "case": case.index,
            "shape": dict(case.shape),
            "baseline_us": median(cold["baseline"]),
            "candidate_us": fastest,
            "speedup": speedup,
            "ci95": interval,
            "warm": {
                "baseline_us": median(warm["baseline"]),
                "candidate_us": median(warm["candidate"]),
                "speedup": warm_speedup,
                "ci95": warm_interval,
            },
            "rounds": len(cold["baseline"]),
            "floor_us": floor,
            "launch_bound": median(cold["baseline"]) < LAUNCH_BOUND_FACTOR * floor,
            "bound": {"us": bound, "what": "every element moved once at the memory's peak bandwidth"},
            "fraction_of_bound": bound / fastest if bound else None,
            "peers": {"eager_us": _eager_us(session, case, reference, flush)},
        }
    )
    return True


def _wrong_event(case: Case, why: str) -> dict[str, Any]:
    return {
        "event": "case",
        "case": case.index,
        "shape": dict(case.shape),
        "distribution": "while timed",
        "ok": False,
        "reason": why,
        "max_abs": None,
        "max_rel": None,
    }


class _Set:
    """Inputs of one seed with the buffers that both sides share, and the original's outputs for them."""

    def __init__(self, session: Session, case: Case, number: int) -> None:
        self.case = case
        self.values = input_values(session, case, "normal", 500 + number)
        self.buffers: Mapping[str, Buffer] = session.buffers(case)
        runs = [session.run("baseline", case, self.buffers, self.values, poison) for poison in POISONS]
        self.expected = runs[0].values
        self.written = {s.name: ~(runs[0].poisoned[s.name] & runs[1].poisoned[s.name]) for s in case.outputs}
        noise = {s.name: largest_gap(runs[1].values[s.name], runs[0].values[s.name]) for s in case.outputs}
        for step in range(PERTURBATIONS if any(s.is_float for s in case.outputs) else 0):
            seed = seed_of(session, case, 2000 + step)
            moved = {s.name: perturbed(s, self.values[s.name], seed + i) for i, s in enumerate(case.inputs)}
            outputs = session.run("baseline", case, self.buffers, moved, POISONS[0])
            for spec in case.outputs:
                gap = largest_gap(
                    outputs.values[spec.name][self.written[spec.name]],
                    self.expected[spec.name][self.written[spec.name]],
                )
                noise[spec.name] = max(noise[spec.name], gap)
        self.tolerance = {name: NOISE_FACTOR * gap for name, gap in noise.items()}
        self.poison = POISONS[0]

    def restore(self) -> None:
        for spec in self.case.outputs:
            self.buffers[spec.name].fill(self.poison, self.values.get(spec.name))

    def wrong(self) -> str:
        """Why the outputs in the buffers are wrong; empty where they are right."""
        for spec in self.case.outputs:
            buffer = self.buffers[spec.name]
            if not buffer.guards_intact(self.poison):
                return f"it writes outside {spec.name}, whose extent is {spec.count:,}"
            wrote = ~buffer.poisoned(self.poison)
            expected = self.written[spec.name]
            difference = compare(
                spec, buffer.data, self.expected[spec.name], (wrote, expected), self.tolerance[spec.name]
            )
            if difference.why:
                return difference.why
        return ""


def _timed(work: Callable[[], object]) -> float:
    """Microseconds on the GPU of what `work` enqueues. Raises CudaFaultError."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda._sleep(SPIN_CYCLES)
    start.record()
    work()
    end.record()
    synchronize()
    return float(start.elapsed_time(end)) * 1000.0


def _eager_us(session: Session, case: Case, reference: Reference | None, flush: torch.Tensor) -> float | None:
    """The torch reference in the kernel's own types, cold; None where there is none that runs."""
    if reference is None:
        return None
    values = input_values(session, case, "normal", 900)
    inputs = {s.name: values[s.name] for s in case.inputs}
    samples = []
    for _ in range(12):
        flush.fill_(1)
        try:
            samples.append(_timed(lambda: reference(**inputs, **case.scalars)))
        except (RuntimeError, TypeError, ValueError) as error:
            session.emit({"event": "note", "text": f"the reference was not timed: {error}"})
            return None
    return median(samples[2:])


def _bytes(case: Case) -> int:
    return sum(s.scalars * int(s.dtype.itemsize) for s in case.arrays)


def _bound_us(case: Case) -> float | None:
    """The arrays' bytes, in-out ones twice, over the memory's peak bandwidth."""
    properties: Any = torch.cuda.get_device_properties(0)
    clock, width = getattr(properties, "memory_clock_rate", 0), getattr(properties, "memory_bus_width", 0)
    if not clock or not width:
        return None
    moved = sum(s.scalars * int(s.dtype.itemsize) * (2 if s.role == "in-out" else 1) for s in case.arrays)
    return float(moved / (2.0 * clock * 1e3 * width / 8) * 1e6)


def _l2_bytes() -> int:
    return int(torch.cuda.get_device_properties(0).L2_cache_size)


@contextmanager
def gpu_lock(path: str, waiting: Callable[[], None]) -> Iterator[None]:
    """Only one process times on this machine at once; `waiting` is called each half second until it is free."""
    try:
        import fcntl
    except ImportError:  # no such lock on Windows
        yield
        return
    try:
        handle = Path(path).open("a", encoding="utf-8")  # noqa: SIM115 (closed below)
    except PermissionError:  # another user's file
        yield
        return
    with handle:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                waiting()
                time.sleep(0.5)
        yield
