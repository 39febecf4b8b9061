"""What the events of a run say, as the results of a report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from warpwright.verify.child import Event
from warpwright.verify.report import CaseResult, Speed


def case_result(event: Event) -> CaseResult:
    """The comparison that an event "case" tells of."""
    known = {
        "event",
        "case",
        "shape",
        "distribution",
        "ok",
        "max_abs",
        "max_rel",
        "reason",
        "sample",
        "spread",
        "loose",
        "fault",
    }
    return CaseResult(
        event["shape"],
        event["distribution"],
        event["ok"],
        event["max_abs"],
        event["max_rel"],
        event.get("reason", ""),
        {key: value for key, value in event.items() if key not in known},
    )


def speed_of(event: Event) -> Speed:
    """The times that an event "speed" tells of."""
    low, high = event["ci95"]
    known = {"event", "case", "shape", "baseline_us", "candidate_us", "speedup", "ci95"}
    details = {key: value for key, value in event.items() if key not in known}
    speed = Speed(event["shape"], event["baseline_us"], event["candidate_us"], event["speedup"], (low, high), details)
    return replace(speed, details={**details, "best_baseline": _best_baseline(speed, {})})


def with_peers(speed: Speed, event: Event) -> Speed:
    """The same with what the reference takes there, where the event is of its shape."""
    if event["shape"] != speed.shape:
        return speed
    peers = event["peers"]
    return replace(speed, details={**speed.details, "peers": peers, "best_baseline": _best_baseline(speed, peers)})


def _best_baseline(speed: Speed, peers: Mapping[str, Any]) -> dict[str, Any]:
    """Who is fastest beside the candidate, and how many times as fast as that the candidate is: a win over a weak
    original is not one over two lines of torch."""
    times = {
        "the original": speed.baseline_us,
        "eager torch": peers.get("eager_us"),
        "torch.compile": peers.get("compile_us"),
    }
    us, name = min((us, name) for name, us in times.items() if us is not None)
    return {"name": name, "us": us, "speedup": us / speed.candidate_us}
