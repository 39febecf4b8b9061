"""Several candidates at once: each has its own report, in order, and a cancel leaves those that were not verified."""

from __future__ import annotations

from warpwright.progress import IsCancelled, never_cancelled, silent
from warpwright.syntax.source import Source
from warpwright.verify import several
from warpwright.verify.report import Report, Status
from warpwright.verify.several import Trial, verify_several

ORIGINAL = Source("k.cu", b"__global__ void k(float *a) {\n  a[0] = 1.0f;\n}\n")


def trial(line: int) -> Trial:
    """One whose syntax error is in the given line."""
    text = ORIGINAL.data.replace(b"{\n", b"{\n" + b"\n" * line).replace(b"1.0f;", b"1.0f +;")
    return Trial(f"Trying {line}", ORIGINAL, Source("k.cu", text))


def verified(trials: list[Trial], is_cancelled: IsCancelled = never_cancelled) -> list[Report | None]:
    return verify_several(
        trials, kernel="k", goal="speed", progress=silent, is_cancelled=is_cancelled, arch=None, flags=()
    )


def test_reports_are_in_the_order_of_the_trials() -> None:
    reports = verified([trial(line) for line in range(20)])
    for line, report in enumerate(reports):
        assert report is not None
        assert report.status is Status.DOES_NOT_COMPILE
        assert f"line {line + 2}" in report.reason, report.reason


def test_no_trials_have_no_reports() -> None:
    assert verified([]) == []


def test_what_was_stopped_has_no_report() -> None:
    assert verified([trial(1), trial(2)], is_cancelled=lambda: True) == [None, None]


def test_at_least_one_and_no_more_than_the_processors_serve() -> None:
    assert 1 <= several.at_once() <= several.MOST_AT_ONCE
