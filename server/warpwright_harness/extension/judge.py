"""What one verification of a torch extension needs: both sides, called in processes of their own on the judge's inputs.

A call that hangs, fails or dies costs the candidate its verdict, and the original that size.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

from warpwright_harness.drawn import make_values
from warpwright_harness.events import Emit
from warpwright_harness.extension.arena import ArenaError
from warpwright_harness.extension.batch import Batch, Parameters, Values, changed_since, run_batch
from warpwright_harness.extension.side import STEP_SECONDS, RaisedError, Side, SideError

HEARTBEAT_SECONDS = 5.0
LEAST_WAIT, MOST_WAIT = 0.002, 0.02
"""Seconds after which the outputs are looked at once more."""
THREAD_SECONDS = 0.25
"""In which a thread that is about to end does so."""


_Result = TypeVar("_Result")


class CandidateError(Exception):
    """The candidate is not what it should be; the message is one sentence's tail."""

    def __init__(self, message: str, *, unsafe: bool = True, timed_out: bool = False) -> None:
        super().__init__(message)
        self.unsafe = unsafe
        self.timed_out = timed_out


class OriginalError(Exception):
    """The original cannot be compared with at this size; the message is one sentence's tail."""


@dataclass(frozen=True)
class Case:
    """One size: its symbols, the arguments there, and what is to be done."""

    index: int
    shape: Mapping[str, int]
    parameters: Parameters
    distributions: tuple[str, ...]
    check: bool
    time: bool


@dataclass
class Judge:
    """What one verification needs: the sides, the secret order, and what was learned of each size."""

    request: Mapping[str, Any]
    emit: Emit
    device: str
    sides: dict[str, Side] = field(default_factory=lambda: {})
    order: random.Random = field(default_factory=random.SystemRandom)
    allowed: dict[int, dict[str, float]] = field(default_factory=lambda: {})
    """By size, the tolerance of each output on normal values."""
    written: frozenset[str] = frozenset()
    """The inputs that the original was seen to write to: outputs, even where a call leaves them as they were."""
    phase: str = "check"
    seconds: dict[str, float] = field(default_factory=lambda: {})
    """By stage, where the time went."""
    patience: float = STEP_SECONDS
    """Seconds in which a side has to answer."""

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *_: object) -> None:
        for side in self.sides.values():
            side.end()
        self.sides.clear()

    def begin(self, case: Case, side: str) -> None:
        """Tell the parent what runs next, so that a hang has a culprit."""
        self.emit({"event": "begin", "phase": self.phase, "case": case.index, "side": side})

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the time inside to a stage."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - started

    def side(self, name: str) -> Side:
        """The side's process, started anew where the last one was given up. Raises SideError."""
        if name not in self.sides:
            self.start(name)
        side = self.sides[name]
        try:
            side.load()
        except SideError:
            self.drop(name)
            raise
        return side

    def start(self, name: str) -> None:
        """Start a side's process, which loads its extension when it is first asked."""
        self.sides[name] = Side(self.loaded(name), patience=self.patience)

    def loaded(self, name: str) -> dict[str, Any]:
        """What a side's process is told to load."""
        asked = {key: self.request["extension"][key] for key in ("module", "namespace", "name")}
        asked |= {"library": self.request[name]["library"], "device": self.device}
        return {**asked, "flush_bytes": flush_bytes(self.device)}

    def meanwhile(self, case: Case, side: str, *work: Callable[[], _Result]) -> list[_Result]:
        """What all of `work` gives, done at once, while the parent hears every few seconds that it goes on."""
        with ThreadPoolExecutor(len(work)) as pool:
            futures = [pool.submit(each) for each in work]
            self.begin(case, side)
            while wait(futures, HEARTBEAT_SECONDS).not_done:
                self.begin(case, side)
            return [future.result() for future in futures]

    def candidate(self, case: Case, values: Sequence[Values], *, flush: bool = False) -> Batch:
        """Raises CandidateError, and RaisedError where the extension raises an error of its own."""
        try:
            return self._run("candidate", case, values, flush)
        except RaisedError:
            raise
        except SideError as error:
            raise CandidateError(str(error), timed_out=error.timed_out) from None

    def original(self, case: Case, values: Sequence[Values], *, flush: bool = False) -> Batch:
        """Raises OriginalError."""
        try:
            return self._run("baseline", case, values, flush)
        except SideError as error:
            raise OriginalError(f"the original itself fails there: {error}") from None

    def _run(self, name: str, case: Case, values: Sequence[Values], flush: bool) -> Batch:
        self.begin(case, name)
        try:
            return run_batch(self.side(name), case.parameters, values, self.order, flush=flush, device=self.device)
        except RaisedError:
            raise
        except SideError:
            self.drop(name)
            raise
        except ArenaError as error:
            raise OriginalError(str(error)) from None

    def drop(self, name: str) -> None:
        with suppress(KeyError):
            self.sides.pop(name).end()

    def draw(self, case: Case, distribution: str) -> dict[str, torch.Tensor]:
        """Values that no one else can know: the seed is drawn here and kept nowhere."""
        seed = self.order.randrange(1 << 62)
        return {
            spec.name: make_values(spec, distribution, seed + place, self.device)
            for place, spec in enumerate(case.parameters.tensors)
        }

    def learn(self, original: Batch) -> None:
        """Keep in mind which inputs the original writes to."""
        self.written = self.written.union(*(call.changed for call in original.calls))

    def require_no_threads(self) -> None:
        """Raises CandidateError where the candidate's process keeps threads that the original's has not."""
        if "candidate" not in self.sides or "baseline" not in self.sides:
            return
        deadline = time.monotonic() + THREAD_SECONDS
        while (more := self.sides["candidate"].threads() - self.sides["baseline"].threads()) > 0:
            if time.monotonic() > deadline:
                raise CandidateError(f"it leaves {more} threads running that the original does not")
            time.sleep(0.01)

    def later(self, batch: Batch) -> bool:
        """Whether the candidate's results change after its calls. Raises CandidateError."""
        time.sleep(self.order.uniform(LEAST_WAIT, MOST_WAIT))
        try:
            return changed_since(self.side("candidate"), batch)
        except SideError as error:
            raise CandidateError(str(error), timed_out=error.timed_out) from None


def failure(error: CandidateError) -> dict[str, Any]:
    """An event's part for a candidate that is not compared any further."""
    return {
        "ok": False,
        "unsafe": error.unsafe,
        "timed_out": error.timed_out,
        "reason": str(error),
        "max_abs": None,
        "max_rel": None,
    }


def flush_bytes(device: str) -> int:
    """Twice the second-level cache; four bytes without a GPU."""
    return 2 * int(torch.cuda.get_device_properties(0).L2_cache_size) if device == "cuda" else 4
