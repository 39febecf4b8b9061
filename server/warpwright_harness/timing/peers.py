"""What the reference takes, in eager torch and through torch.compile, and the operations that torch counts on it.

A kernel that beats the user's own may still be slower than two lines of torch; who is told "faster" is told that too.
Compiling takes seconds, so that each reference is compiled once in a process, by the hash of its text, and is timed
once per shape: many candidates of one problem share the result.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import torch

from warpwright_harness.checks.correctness import Reference, input_values
from warpwright_harness.session import Case, Session
from warpwright_harness.timing.operations import operations_counted
from warpwright_harness.timing.stopwatch import SPIN_CYCLES, SPIN_US, Stopwatch

COMPILE_SECONDS = 15.0
"""For all shapes of a request together; no further shape is compiled after that."""

SAMPLES = 12
MOST_SPIN_US = 20_000.0


@dataclass
class Peers:
    """What is known of one reference, for as long as the process lives. `compiled` is the reference that torch.compile
    was asked for; shapes are keyed by their sizes."""

    reference: Reference
    compiled: Reference | None = None
    operations: dict[Any, float] = field(default_factory=lambda: {})
    times: dict[Any, dict[str, Any]] = field(default_factory=lambda: {})


_known: dict[str, Peers] = {}


def peers_of(path: str, reference: Reference) -> Peers:
    """The one for this text of the reference, known or new."""
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    return _known.setdefault(digest, Peers(reference))


def operations_of(session: Session, peers: Peers, case: Case) -> float:
    """What `operations_counted` says of the reference at a shape, asked once for each."""
    key = _key(case)
    if key not in peers.operations:
        peers.operations[key] = operations_counted(partial(peers.reference, **_arguments(session, case)))
    return peers.operations[key]


def compile_peers(session: Session, peers: Peers, cases: Sequence[Case]) -> None:
    """Run the reference at each shape, eager and compiled, so that timing finds it ready; why one fails is kept."""
    if peers.compiled is None:
        from torch._inductor import config

        config.compile_threads = 1  # no further processes, which would live as long as this one
        peers.compiled = torch.compile(peers.reference, dynamic=False)
    started = time.monotonic()
    for case in cases:
        if _key(case) in peers.times:
            continue
        known: dict[str, Any] = {"eager_us": None, "compile_us": None}
        peers.times[_key(case)] = known
        session.begin("peers", case, "")
        arguments = _arguments(session, case)
        if why := why_not(partial(peers.reference, **arguments)):
            known["eager_failed"] = why
            continue
        if find_spec("triton") is None:
            known["compile_failed"] = "triton is not installed, which torch.compile needs"
        elif time.monotonic() - started > COMPILE_SECONDS:
            known["compile_failed"] = f"compiling for other shapes took more than {COMPILE_SECONDS:g} seconds"
        elif why := why_not(partial(peers.compiled, **arguments)):
            known["compile_failed"] = why


def time_peers(session: Session, peers: Peers, case: Case, stopwatch: Stopwatch) -> None:
    """Emit a "peers" event: medians in microseconds with cold caches, None where a peer does not run, and why.

    `compile_peers` went before.
    """
    known = peers.times[_key(case)]
    arguments = _arguments(session, case)
    for name, function in (("eager", peers.reference), ("compile", peers.compiled)):
        if function is None or known[f"{name}_us"] is not None or f"{name}_failed" in known or "eager_failed" in known:
            continue
        known[f"{name}_us"] = microseconds_of(stopwatch, partial(function, **arguments))
    session.emit({"event": "peers", "case": case.index, "shape": dict(case.shape), "peers": dict(known)})


def _key(case: Case) -> tuple[Any, ...]:
    return tuple(sorted(case.shape.items())), tuple(sorted(case.scalars.items()))


def _arguments(session: Session, case: Case) -> Mapping[str, Any]:
    values = input_values(session, case, "normal", 900)
    return {**{s.name: values[s.name] for s in case.inputs}, **case.scalars}


def microseconds_of(stopwatch: Stopwatch, work: Callable[[], object]) -> float:
    """Of torch's work, with cold caches: the median of calls behind a spin that outlasts their enqueueing."""
    started = time.perf_counter()
    work()
    enqueueing = (time.perf_counter() - started) * 1e6
    spin = int(min(2 * enqueueing + SPIN_US, MOST_SPIN_US) / SPIN_US * SPIN_CYCLES)
    return median([stopwatch.start_cold(work, spin)() for _ in range(SAMPLES)][2:])


def why_not(work: Callable[[], object]) -> str:
    """Why it fails, in a line; empty where it does not. A user's module may raise anything."""
    try:
        work()
        torch.cuda.synchronize()
    except Exception as error:
        if "CUDA error" in str(error):
            raise
        line = next(iter(str(error).strip().splitlines()), "")
        return f"{type(error).__name__}: {line[:200]}"
    return ""
