"""How long work tells its caller where it stands, and how it is told to stop."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, float | None], None]
"""Called with a sentence and the share done (0 to 1), or None where the share is not known."""

IsCancelled = Callable[[], bool]
"""Polled by long work, at least every 200 ms; True means: stop, keep what is done, leave nothing behind."""


class CancelledError(Exception):
    """Work stopped because its caller asked for it."""


def silent(message: str, share: float | None) -> None:
    """A Progress for callers that do not watch."""


def never_cancelled() -> bool:
    return False
