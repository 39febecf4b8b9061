"""What is said when a part of the machine that a feature needs is not there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Missing:
    """`what` was looked for, `reason` says what was found instead, `advice` what to do; one sentence each."""

    what: str
    reason: str
    advice: str

    def __str__(self) -> str:
        return f"{self.reason} {self.advice}"
