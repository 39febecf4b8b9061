"""The upper rungs of the ladder: run both kernels, and turn what the harness or the emulator saw into a verdict."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from warpwright.problems.model import Problem
from warpwright.progress import IsCancelled, Progress
from warpwright.verify.child import ChildEndedError, Event
from warpwright.verify.harness import run_request
from warpwright.verify.original_fails import Failure, failure_in, guessed_launch, unfinished
from warpwright.verify.proof import Proof
from warpwright.verify.report import CaseResult, Speed, Status, Uncovered, What
from warpwright.verify.results import case_result, speed_of, with_peers
from warpwright.verify.thresholds import THRESHOLD
from warpwright.verify.tried import EVERY_DISTRIBUTION, KINDS

MOST_RESTARTS = 3

Backend = Callable[[Mapping[str, Any], IsCancelled], Iterator[Event]]
"""What runs a request and gives its events: the harness, or the emulator."""


@dataclass(slots=True)
class Observed:
    """What was reported of one candidate. `reason` is one sentence where the status needs one, and `failure` what it is
    of; `left_out` are the sizes at which the original cannot be compared with, with the notes that say so; `rates` are
    the machine's, where they had to be measured; `sandbox` says what the process that ran it was kept from, `seconds`
    where the time of an extension went, by stage."""

    status: Status = Status.NOT_RUN
    reason: str = ""
    failure: Failure = field(default=Failure(""))
    cases: list[CaseResult] = field(default_factory=lambda: [])
    speed: list[Speed] = field(default_factory=lambda: [])
    notes: list[str] = field(default_factory=lambda: [])
    left_out: list[tuple[Mapping[str, int], str]] = field(default_factory=lambda: [])
    rates: Mapping[str, float] = field(default_factory=lambda: {})
    sandbox: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=lambda: {})
    uncovered: list[Uncovered] = field(default_factory=lambda: [])
    launches: list[str] = field(default_factory=lambda: [])
    work: Mapping[str, Mapping[str, float]] = field(default_factory=lambda: {})
    """Of each side, the fields of `facts.work.Work`; empty where nothing was counted."""
    cured: list[bool] = field(default_factory=lambda: [])
    """Of each time that the original did wrong, whether the candidate does not."""


def observe(
    request: Mapping[str, Any],
    *,
    progress: Progress,
    is_cancelled: IsCancelled,
    original: Problem | None = None,
    backend: Backend = run_request,
) -> Observed:
    """Run a request, again without the shape where it is the original that fails; `original` says what of its launch
    was guessed. Raises CancelledError.

    The candidate is run first, so that it cannot find what the original left. Where it fails, the original is asked,
    alone and in its place: what fails there, too, says nothing of the candidate.
    """
    observed = Observed()
    remaining = dict(request)
    attempt = partial(_attempt, progress=progress, is_cancelled=is_cancelled, original=original, backend=backend)
    for _ in range(MOST_RESTARTS):
        culprit = attempt(remaining, observed)
        if culprit is None:
            return observed
        if observed.status is not Status.NOT_RUN:
            failed = _failure_of_the_original(remaining, culprit, observed.status, attempt)
            if failed is None:
                return observed
            _clear(observed)
            _leave_failing_out(observed, remaining["cases"][culprit]["shape"], *failed, original)
        remaining["cases"] = _left_to_do(remaining["cases"], culprit, observed)
        if not remaining["cases"]:
            break
    if observed.status is Status.NOT_RUN and not observed.reason:
        observed.reason = "None of the shapes that were tried could be compared: " + "; ".join(observed.notes[:2]) + "."
    return observed


def _failure_of_the_original(
    request: Mapping[str, Any],
    index: int,
    status: Status,
    attempt: Callable[[Mapping[str, Any], Observed], int | None],
) -> tuple[Failure, str] | None:
    """How the original fails at one of the cases, by itself, and in words how it ended; None where it does not, or
    where it is not what judges.

    `status` is the candidate's there: one that is not safe is that, too, where the original takes too long.
    """
    if request.get("judge") != "baseline" or _is_sized_by_candidate(request):
        return None
    if "baseline" not in request["cases"][index]:  # of an extension, or emulated: they tell sides apart themselves
        return None
    cases = [{**case, "check": number == index, "time": False} for number, case in enumerate(request["cases"])]
    cases[index]["candidate"] = cases[index]["baseline"]
    seen = Observed()
    failed = attempt({**request, "candidate": request["baseline"], "cases": cases}, seen)
    if failed is None or (seen.status, status) == (Status.TIMEOUT, Status.UNSAFE):
        return None
    return seen.failure, _ENDED.get(seen.status, "fails")


_ENDED = {Status.TIMEOUT: "does not finish", Status.UNSAFE: "is not safe"}


def _clear(observed: Observed) -> None:
    """Take back what was said of the candidate at a shape."""
    observed.status, observed.reason, observed.failure = Status.NOT_RUN, "", Failure("")
    observed.cases = [case for case in observed.cases if case.ok]


def _leave_failing_out(
    observed: Observed, shape: Mapping[str, int], failure: Failure, ended: str, original: Problem | None
) -> None:
    """Note that the original fails at a shape."""
    why = guessed_launch(failure, shape, original) or f"the original itself {ended} there ({failure.said})"
    _leave_out(observed, shape, why)


def _leave_out(observed: Observed, shape: Mapping[str, int], why: str) -> None:
    note = f"{at(shape)} was left out: {why}"
    observed.notes.append(note)
    observed.left_out.append((shape, note))


def _left_to_do(cases: list[dict[str, Any]], culprit: int, observed: Observed) -> list[dict[str, Any]]:
    """The cases for another try: not the culprit, nothing twice, and what was compared but not timed only timed."""
    compared, timed = [(c.shape, c.distribution) for c in observed.cases], [s.shape for s in observed.speed]
    left = []
    for index, case in enumerate(cases):
        if index == culprit:
            continue
        if not all((case["shape"], each) in compared for each in case["distributions"]):
            left.append({**case, "more": case.get("more", False) and not observed.cases})
        elif case["time"] and case["shape"] not in timed:
            left.append({**case, "check": False})
    return left


def _attempt(
    request: Mapping[str, Any],
    observed: Observed,
    *,
    progress: Progress,
    is_cancelled: IsCancelled,
    original: Problem | None,
    backend: Backend,
) -> int | None:
    """One run of the backend. The index of a case at which one side fails, the candidate where there is a verdict;
    None at the end."""
    accused: int | None = None
    current: Event = {"phase": "start", "case": 0, "side": ""}
    proof = Proof(any(a["kind"] == "array" and a["role"] != "out" for a in request["arguments"]))
    try:
        for event in backend(request, is_cancelled):
            match event["event"]:
                case "hello":
                    observed.sandbox = tuple(event.get("sandbox", ()))
                case "progress":
                    progress(event["text"], event["share"])
                case "begin":
                    current = event
                    progress(_doing(event, request), _share(event, request))
                case "case":
                    observed.cases.append(case_result(event))
                    proof.add(event)
                    if not event["ok"]:
                        observed.status = _failure(event)
                        observed.reason, observed.failure = _wrong_sentence(event), failure_in(event)
                        accused = event.get("case") if observed.status in _ENDED else None
                case "speed":
                    observed.speed.append(speed_of(event))
                case "peers":
                    observed.speed = [with_peers(speed, event) for speed in observed.speed]
                case "seconds":
                    observed.seconds = added(observed.seconds, event["seconds"])
                case "work":
                    observed.work = {side: event[side] for side in ("original", "candidate")}
                case "rates":
                    observed.rates = event["rates"]
                case "unsupported" if _is_sized_by_candidate(request):
                    _beyond_the_candidate(observed, event["shape"], event["reason"])
                    return None
                case "unsupported":
                    observed.cured.append(event.get("cured", False))
                    why = guessed_launch(failure_in(event), event["shape"], original) or event["reason"]
                    if event.get("distribution") in KINDS:
                        observed.notes.append(f"{event['distribution']} values were left out: {why}")
                    else:
                        _leave_out(observed, event["shape"], why)
                case "note":
                    observed.notes.append(event["text"])
                case "uncovered":
                    missed = Uncovered(What(event["what"]), event["text"])
                    observed.uncovered += [missed] if missed not in observed.uncovered else []
                case "fault" | "refused":
                    return _failed(observed, current, request, failure_in(event), original)
                case "error":
                    observed.reason = f"It was not run: {event['text']}."
                    return None
    except ChildEndedError as error:
        by_itself = error.exit_status is not None and error.exit_status != -signal.SIGKILL
        if current["phase"] == "peers":  # all is measured but what torch makes of the reference
            observed.notes.append(f"torch.compile of the reference did not finish: {error}")
        elif error.timed_out or (by_itself and current["side"]):
            failure = unfinished(str(error)) if error.timed_out else Failure(str(error))
            return _failed(observed, current, request, failure, original)
        else:
            observed.reason = f"It was not run: {error}."
            return None
    except OSError as error:
        observed.reason = f"It was not run: the harness could not be started ({error.strerror})."
        return None
    if observed.status is Status.NOT_RUN:
        _conclude(observed, proof, len(request["cases"]), original)
    return accused


def added(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    """The sum of both by key."""
    return {key: round(one.get(key, 0.0) + other.get(key, 0.0), 2) for key in {**one, **other}}


def _failure(event: Event) -> Status:
    if event.get("timed_out"):
        return Status.TIMEOUT
    return Status.UNSAFE if event.get("unsafe") else Status.WRONG


def _wrong_sentence(event: Event) -> str:
    where = at(event["shape"])
    if event.get("timed_out"):
        return f"The candidate does not finish at {where}: {event['reason']}."
    if event.get("unsafe"):
        return f"The candidate is not safe at {where}: {event['reason']}."
    is_drawn = event["distribution"] in (*EVERY_DISTRIBUTION, THRESHOLD, *KINDS)
    when = f"{event['distribution']} values" if is_drawn else event["distribution"]
    return f"The candidate is wrong at {where} ({when}): {event['reason']}."


def _failed(
    observed: Observed, current: Event, request: Mapping[str, Any], failure: Failure, original: Problem | None
) -> int | None:
    """A hang, a fault or a refused launch is the candidate's while it runs; the original's costs that shape."""
    index = current["case"]
    shape = request["cases"][index]["shape"] if 0 <= index < len(request["cases"]) else {}
    ended = "does not finish" if failure.is_endless else "fails"
    if current["side"] == "candidate":
        observed.status = Status.TIMEOUT if failure.is_endless else Status.UNSAFE
        observed.reason, observed.failure = f"The candidate {ended} at {at(shape)}: {failure.said}.", failure
        return int(index)
    if current["side"] == "baseline" and _is_sized_by_candidate(request):
        _beyond_the_candidate(observed, shape, failure.said)
        return None
    if current["side"] == "baseline":
        _leave_failing_out(observed, shape, failure, ended, original)
        return int(index)
    observed.reason = f"It was not run: {failure.said}."
    return None


def _is_sized_by_candidate(request: Mapping[str, Any]) -> bool:
    """Whether the arrays are those of the candidate's kernel, which does what several launches of the original do."""
    return bool(request.get("sized_by_candidate", False))


def _beyond_the_candidate(observed: Observed, shape: Mapping[str, int], why: str) -> None:
    """What the original does outside of such arrays, the candidate does not do at all."""
    observed.status = Status.WRONG
    observed.reason = f"The original does more at {at(shape)} than the candidate, by which the arrays are sized: {why}."


_OF_VARIABLES = {
    "restless_variables": "what it leaves in {} was not compared: the original's differs from run to run",
    "other_variables": "it leaves other values in {}, which another file may read unless it is static",
}


def _conclude(observed: Observed, proof: Proof, asked: int, original: Problem | None) -> None:
    if not observed.cases:
        observed.reason = f"None of the {asked} shapes could be compared: " + "; ".join(observed.notes[:2]) + "."
        return
    if lacking := proof.lacking:
        observed.reason = lacking
        return
    observed.status = Status.CORRECT
    _name_sizes(observed, original)
    if any(case.details.get("restless") for case in observed.cases):
        observed.notes.append("the candidate's last bits differ from run to run; the original's do not")
    for key, said in _OF_VARIABLES.items():
        for name in dict.fromkeys(name for case in observed.cases for name in case.details.get(key, ())):
            observed.uncovered.append(Uncovered(What.OUTPUT, said.format(name)))
    if any(case.details.get("prints_lost") for case in observed.cases):
        lost = "what it prints was not compared everywhere: it is too much, or the original's differs from run to run"
        observed.uncovered.append(Uncovered(What.OUTPUT, lost))
    if not observed.speed:
        return
    first = observed.speed[0]
    slower = next((s for s in observed.speed if s.ci95[1] < 1 / s.details["least_effect"]), None)
    if slower is not None:
        observed.status = Status.SLOWER
        observed.reason = f"The candidate is correct and slower at {at(slower.shape)}: {slower.speedup:.3g}x."
    elif first.ci95[0] > first.details["least_effect"]:
        observed.status = Status.FASTER
    else:
        low, high = first.ci95
        observed.status = Status.INCONCLUSIVE
        observed.reason = f"The candidate is correct and no faster: {first.speedup:.2f}x (95% CI {low:.2f}-{high:.2f})."


def _name_sizes(observed: Observed, original: Problem | None) -> None:
    """Where the original fails at more sizes than could be compared, or at the program's own, what is shown at the
    others says little: those sizes are not covered. A few at which it fails are none that it is made for."""
    compared = {tuple(sorted(case.shape.items())) for case in observed.cases}
    missed = [(shape, note) for shape, note in observed.left_out if tuple(sorted(shape.items())) not in compared]
    is_own = original is not None and any(shape == original.own_shape for shape, _ in missed)
    if len(missed) <= len(compared) and not is_own:
        return
    named = list(dict.fromkeys(note for _, note in missed))
    observed.notes = [note for note in observed.notes if note not in named]
    observed.uncovered += [Uncovered(What.SIZE, note) for note in named]


def at(shape: Mapping[str, int]) -> str:
    """A shape in words.

    >>> at({"width": 31, "height": 33})
    'width = 31, height = 33'
    """
    return ", ".join(f"{name} = {value}" for name, value in shape.items()) or "its only shape"


def _doing(event: Event, request: Mapping[str, Any]) -> str:
    if event["phase"] in _WITHOUT_SHAPE:
        return _WITHOUT_SHAPE[event["phase"]]
    shape = at(request["cases"][event["case"]]["shape"])
    return f"{_DOING.get(event['phase'], 'Timing')} at {shape}"


_WITHOUT_SHAPE = {
    "wait": "Waiting for the GPU",
    "rates": "Measuring what this GPU can do (once on this machine)",
}
_DOING = {
    "check": "Comparing",
    "peers": "Compiling the reference with torch.compile",
}


def _share(event: Event, request: Mapping[str, Any]) -> float | None:
    if event["phase"] not in ("check", "time"):
        return None
    start, width = (0.4, 0.3) if event["phase"] == "check" else (0.7, 0.3)
    return start + width * float(event["case"]) / max(1, len(request["cases"]))
