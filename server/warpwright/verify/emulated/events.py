"""What a comparison in the emulator tells: the events of the harness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warpwright.emulator.agreement import Difference
from warpwright.verify.child import Event


def case_event(differences: Sequence[Difference], why: str, *, spread: bool, sample: Mapping[str, str]) -> Event:
    """The event "case" of comparing all outputs; `why` is empty where they agree."""
    return {
        "event": "case",
        "ok": not why,
        "max_abs": max((d.max_abs for d in differences), default=0.0),
        "max_rel": max((d.max_rel for d in differences), default=0.0),
        "max_ulp": max((d.max_ulp for d in differences), default=0.0),
        "rel_l2": max((d.rel_l2 for d in differences), default=0.0),
        "tolerance": max((d.tolerance for d in differences), default=0.0),
        "reason": why,
        "spread": spread,
        "sample": dict(sample),
    }


def unsupported(reason: str, *, cured: bool = False) -> Event:
    """The event of a shape at which the original proves nothing; `cured` where it does wrong there and the candidate
    does not."""
    return {"event": "unsupported", "reason": reason, "cured": cured}


def unsafe(reason: str) -> Event:
    return {"event": "case", "ok": False, "unsafe": True, "reason": reason, "max_abs": None, "max_rel": None}
