"""Why a search has nothing to offer, in one sentence that counts the verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from warpwright.optimize.rank import SLOWER
from warpwright.verify.report import Report, Status

_ENDED = {
    Status.WRONG: ("was wrong", "were wrong"),
    Status.UNSAFE: ("was unsafe", "were unsafe"),
    Status.DOES_NOT_COMPILE: ("did not compile", "did not compile"),
    Status.TIMEOUT: ("did not end in time", "did not end in time"),
    Status.NOT_RUN: ("could not be run", "could not be run"),
}


def why_none(reports: Sequence[Report], goal: str, stopped: bool) -> str:
    """Of the candidates that were verified, none of which is offered.

    >>> timed = Report(Status.INCONCLUSIVE)
    >>> why_none([timed, Report(Status.WRONG), timed], "speed", False)
    'None of the 3 candidates is better: 2 are correct and no faster, 1 was wrong.'
    >>> why_none([timed], "speed", True)
    'The only candidate is correct and no faster. The search was stopped before it had ended.'
    >>> unknown = Report(Status.NOT_RUN, reason="How to run f is not known.")
    >>> why_none([unknown, unknown], "speed", False)
    'None of the 2 candidates could be run, so none is verified and none offered. How to run f is not known.'
    """
    end = " The search was stopped before it had ended." if stopped else ""
    if not reports:
        return (
            "The search was stopped before a candidate was verified."
            if stopped
            else "No rewrite that applies is one that the wish allows."
        )
    reasons = {report.reason if report.status is Status.NOT_RUN else "" for report in reports}
    if len(reasons) == 1 and (reason := reasons.pop()):
        which = "The only candidate" if len(reports) == 1 else f"None of the {len(reports)} candidates"
        could = "could not" if len(reports) == 1 else "could"
        return f"{which} {could} be run, so none is verified and none offered. {reason}{end}"
    verdicts = Counter(_verdict(report, goal) for report in reports).most_common()
    if len(reports) == 1:
        return f"The only candidate {verdicts[0][0][0]}.{end}"
    told = ", ".join(f"{count} {words[count > 1]}" for words, count in verdicts)
    return f"None of the {len(reports)} candidates is better: {told}.{end}"


def _verdict(report: Report, goal: str) -> tuple[str, str]:
    """What is true of one candidate, and of several: the end of a sentence."""
    if ended := _ENDED.get(report.status):
        return ended
    return _both(_shortcoming(report, goal))


def _shortcoming(report: Report, goal: str) -> str:
    """What a candidate that is correct lacks."""
    if goal == "speed" and report.status is Status.SLOWER:
        return "slower"
    if goal == "speed" and (report.speed or report.status is Status.INCONCLUSIVE):
        return "no faster"
    if report.finding_gone is False:
        return "still has the finding"
    if report.new_findings:
        return "brings a new finding"
    if goal == "speed":
        predicted = report.predicted
        return "predicted to be slower" if predicted and predicted.speedup < SLOWER else "not predicted to be faster"
    return "saves no memory" if goal == "memory" else "mends nothing"


def _both(lacks: str) -> tuple[str, str]:
    verb, _, rest = lacks.partition(" ")
    plural = {"still": "still have", "brings": "bring", "saves": "save", "mends": "mend"}.get(verb)
    if plural is None:
        return f"is correct and {lacks}", f"are correct and {lacks}"
    return f"is correct and {lacks}", f"are correct and {plural} {rest.removeprefix('has ')}"
