"""What is said where a side fails in a run: of the launch, where some of that was guessed, before the user's kernel.

The emulator knows the line of a fault and asks `Problem.guesses_behind` where it runs; a GPU tells the kind alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from warpwright.facts.profile import Fault, FaultKind
from warpwright.problems.guesses import not_reconstructed
from warpwright.problems.model import Problem
from warpwright.verify.child import Event


@dataclass(frozen=True, slots=True)
class Failure:
    """How a side failed: `said` is the end of a sentence, without the shape; `kinds` are those of fault that it may be,
    none where it is no fault, and `array` is the one that it is about, where that is known."""

    said: str
    kinds: tuple[FaultKind, ...] = ()
    array: str | None = None

    @property
    def is_endless(self) -> bool:
        return FaultKind.STEP_LIMIT in self.kinds


def failure_in(event: Event) -> Failure:
    """The failure that an event of a run tells of.

    >>> failure_in({"event": "fault", "text": "a misaligned address", "kinds": ["misaligned"]})
    Failure(said='a misaligned address', kinds=(<FaultKind.MISALIGNED: 'misaligned'>,), array=None)
    """
    fault = event.get("fault") or event
    said = fault.get("said") or event.get("text") or event.get("reason") or ""
    return Failure(said, tuple(map(FaultKind, fault.get("kinds", ()))), fault.get("array") or None)


def unfinished(said: str) -> Failure:
    """The failure of a side that does not end."""
    return Failure(said, (FaultKind.STEP_LIMIT, FaultKind.DEADLOCK))


def guessed_launch(failure: Failure, shape: Mapping[str, int], original: Problem | None) -> str:
    """That the launch could not be reconstructed, with what was guessed of it that the original's failure may come of;
    "" where nothing was, or no problem says it."""
    if original is None:
        return ""
    said = f"it does not finish ({failure.said})" if failure.is_endless else failure.said
    faults = [Fault(kind, "", 0, said, array=failure.array) for kind in failure.kinds]
    guessed = dict.fromkeys(guess for fault in faults for guess in original.guesses_behind(fault, shape))
    return not_reconstructed(said, guessed) if guessed else ""
