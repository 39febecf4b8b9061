"""Warm processes of one kind: taken for a request, given back after it, replaced when they are spent."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from warpwright.progress import CancelledError, IsCancelled
from warpwright.verify.child import LAST, Child, ChildEndedError, Event, Kind

MOST_AT_ONCE = 4
"""Children that answer requests, and idle ones that are kept."""

_POLL_SECONDS = 0.1
IDLE_SECONDS = 600.0
"""An idle process holds memory, a GPU's too: after this time the next use of the pool ends it."""


class Pool:
    """As many children as there are requests at once, up to MOST_AT_ONCE; idle ones are kept warm for the next.

    A child survives only a request that it finished. When one is spent, by a CUDA error, a time-out or a cancel, a
    fresh one is started at once and gets ready while nobody waits for it. Safe to use from several threads.
    """

    def __init__(self, kind: Callable[[], Kind]) -> None:
        """`kind` is asked each time: children of another kind than the present one are not used any more."""
        self._kind = kind
        self._lock = threading.Lock()
        self._idle: list[Child] = []
        self._room = threading.Semaphore(MOST_AT_ONCE)

    def run(self, request: Mapping[str, Any], is_cancelled: IsCancelled) -> Iterator[Event]:
        """The child's greeting, then the events of one request up to its last (see `child.LAST`).

        Waits while MOST_AT_ONCE others are answered. A child that was asked with the same "reference" before is
        preferred: it has compiled it. Raises ChildEndedError where the process hangs or dies, CancelledError, OSError
        where it cannot be started.
        """
        while not self._room.acquire(timeout=_POLL_SECONDS):
            if is_cancelled():
                raise CancelledError
        try:
            yield from self._answered(request, is_cancelled)
        finally:
            self._room.release()

    def _answered(self, request: Mapping[str, Any], is_cancelled: IsCancelled) -> Iterator[Event]:
        topic = str(request.get("reference") or "")
        child = self._first_ready(topic, is_cancelled)
        child.knows.add(topic)
        finished = False
        try:
            yield child.greet(is_cancelled)
            started = time.monotonic()
            child.send(request, is_cancelled)
            patience = child.kind.step_seconds
            while True:
                left = started + child.kind.total_seconds - time.monotonic()
                if left <= 0:
                    raise ChildEndedError(f"it took more than {child.kind.total_seconds:g} seconds", timed_out=True)
                event = child.next_event(min(patience, left), is_cancelled)
                patience = child.patience_after(event)
                finished = event["event"] in ("done", "refused") and not event.get("spent")
                yield event
                if event["event"] in LAST:
                    return
        finally:
            if finished:
                self._give_back(child)
            else:
                self._spent(child)

    def greeting(self, is_cancelled: IsCancelled) -> Event:
        """What a child says first; it is kept for the next request unless it lacks its device. Raises as `run` does."""
        child = self._taken()
        fit = False
        try:
            event = child.greet(is_cancelled)
            fit = "missing" not in event.get("device", {})
        finally:
            if fit:
                self._give_back(child)
            else:
                child.kill()
        return event

    def prepare(self) -> None:
        """Have a child ready or getting ready; returns at once. One that cannot be started is said when it is used."""
        child: Child | None = None
        with contextlib.suppress(OSError):
            child = self._taken()
        if child is not None:
            self._give_back(child)

    def close(self) -> None:
        """End all idle children; the next request starts a new one."""
        with self._lock:
            idle, self._idle = self._idle, []
        for child in idle:
            child.kill()

    def _first_ready(self, topic: str, is_cancelled: IsCancelled) -> Child:
        """A child that has greeted: one that is idle, or that is given back while another is still getting ready, which
        then goes on with that for the next request. Raises as `run` does."""
        while True:
            child = self._taken(topic)
            try:
                child.greet(lambda: is_cancelled() or self._has_ready())
            except CancelledError:
                if is_cancelled():
                    self._spent(child)
                    raise
                self._give_back(child)
            except BaseException:
                self._spent(child)
                raise
            else:
                return child

    def _has_ready(self) -> bool:
        with self._lock:
            return any(child.greeting is not None for child in self._idle)

    def _taken(self, topic: str = "") -> Child:
        """An idle child, one that knows the topic or has greeted before one that has not, else a new one. Raises
        OSError."""
        kind = self._kind()
        now = time.monotonic()
        with self._lock:
            fit = [c for c in self._idle if c.alive and c.kind == kind and now - c.idle_since < IDLE_SECONDS]
            unfit = [c for c in self._idle if c not in fit]
            chosen = max(fit, key=lambda c: (topic in c.knows, c.greeting is not None, c.idle_since), default=None)
            self._idle = [c for c in fit if c is not chosen]
        for child in unfit:
            child.kill()
        return chosen or Child(kind)

    def _give_back(self, child: Child) -> None:
        child.idle_since = time.monotonic()
        with self._lock:
            keep = len(self._idle) < MOST_AT_ONCE
            if keep:
                self._idle.append(child)
        if not keep:
            child.kill()

    def _spent(self, child: Child) -> None:
        lacking = child.greeting is None or "missing" in child.greeting.get("device", {})
        child.kill()
        with self._lock:
            has_idle = bool(self._idle)
        if not lacking and not has_idle:
            self.prepare()
