"""Which candidates may be offered."""

from __future__ import annotations

from warpwright.facts.resources import KernelResources
from warpwright.verify.report import ORIGINAL_REJECTED, UNTIMED, Level, Report, Status, What

_DECISIVE = frozenset({What.LAUNCH, What.OUTPUT, What.HOST_CODE})


def acceptable(report: Report, goal: str) -> bool:
    """May this candidate be offered for `goal`?

    Never where it is wrong, unsafe, does not compile or end, was not run, or a GPU timed it as slower. Where speed was
    asked for and a GPU ran it, only where it is faster. Where nothing was timed (it was emulated or recorded) and found
    correct, where what it was to cure is gone and nothing new was found. Not compared, and offered for what it is, may
    be a fix alone, one that compiles and is clean: of a text that nvcc rejects, or that did wrong in every run where
    the fix does not.
    """
    clean = report.reached(Level.ANALYSED) and not report.new_findings and report.finding_gone is not False
    saves = goal != "memory" or _saves_memory(report)
    if goal != "fix" and any(each.what in _DECISIVE for each in report.uncovered):
        return False
    if report.status is Status.NOT_RUN:
        return goal == "fix" and report.not_run_because == ORIGINAL_REJECTED and clean
    if report.status is Status.CURED:
        return goal == "fix" and clean
    if report.status is Status.FASTER:
        return (goal == "speed" or clean) and saves
    if report.status in (Status.CORRECT, Status.INCONCLUSIVE):
        return (goal != "speed" or report.backend in UNTIMED or _gained(report)) and clean and saves
    return False


def _gained(report: Report) -> bool:
    """Whether it was faster where it was run, though that was not everywhere."""
    if report.status is not Status.CORRECT or not report.speed:
        return False
    first = report.speed[0]
    return bool(first.ci95[0] > first.details["least_effect"])


def _saves_memory(report: Report) -> bool:
    """Fewer bytes of shared memory, stack or spills, or fewer registers, and none of them more."""
    compilation = report.compilation
    if compilation is None or compilation.original is None or compilation.candidate is None:
        return False
    before, after = (_footprint(c.resources) for c in (compilation.original, compilation.candidate))
    return after != before and all(a <= b for a, b in zip(after, before, strict=True))


def _footprint(resources: KernelResources) -> tuple[int, int, int, int]:
    return resources.shared_bytes, resources.stack_bytes, resources.spill_bytes, resources.registers
