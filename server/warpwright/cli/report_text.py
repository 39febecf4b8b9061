"""A verification report for people: how far the candidate came, what the compiler says of both, how fast it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import click

from warpwright.cli.findings_text import count, printable
from warpwright.verify.report import EMULATOR, CaseResult, CompiledKernel, Level, Report, Speed, Status

GOOD = (Status.FASTER, Status.CORRECT)
BAD = (Status.WRONG, Status.UNSAFE, Status.DOES_NOT_COMPILE, Status.SLOWER, Status.TIMEOUT)

Row = tuple[str, str, str]


def report_text(report: Report) -> str:
    return "\n".join(_lines(report))


def badge(report: Report) -> str:
    colour = "green" if report.status in GOOD else "red" if report.status in BAD else "yellow"
    return click.style(report.badge(), fg=colour, bold=True)


def _lines(report: Report) -> Iterator[str]:
    yield f"{_ladder(report)}: {badge(report)}"
    if report.finding_gone and not report.new_findings:
        yield "  the finding is gone and no new one has come"
    if report.reason:
        yield f"  {printable(report.reason)}"
    yield from (f"  new: {finding.rule} at line {finding.span.line}" for finding in report.new_findings)
    yield from _indented(_compiled(report))
    yield from _indented(_cases(report.cases, report.backend))
    yield from _indented(_speeds(report.speed))
    yield from (f"  note: {printable(note)}" for note in report.notes)


def _ladder(report: Report) -> str:
    """The rungs that the candidate climbed; the first that it did not is where it stopped."""
    reached = [str(level) for level in Level if report.reached(level)]
    return click.style(" > ".join(reached) or "not parsed", bold=True)


def _compiled(report: Report) -> Iterator[str]:
    compilation = report.compilation
    if compilation is None or compilation.candidate is None:
        return
    before, after = compilation.original, compilation.candidate
    rows: list[Row] = [("", "original", "candidate")]
    rows += [(name, _figure(before, name), _figure(after, name)) for name in FIGURES]
    yield f"{compilation.compiler}, {compilation.arch}, {report.kernel}:"
    yield from _table(rows)


FIGURES = ("registers", "spill stores", "spill loads", "stack", "shared memory", "occupancy")


def _figure(kernel: CompiledKernel | None, name: str) -> str:
    if kernel is None:
        return "-"
    resources, occupancy = kernel.resources, kernel.occupancy
    match name:
        case "registers":
            return f"{resources.registers}"
        case "spill stores":
            return f"{resources.spill_store_bytes} B"
        case "spill loads":
            return f"{resources.spill_load_bytes} B"
        case "stack":
            return f"{resources.stack_bytes} B"
        case "shared memory":
            return f"{resources.shared_bytes} B"
    return f"{occupancy.fraction:.0%} ({occupancy.limiter})" if occupancy else "unknown"


def _cases(cases: Sequence[CaseResult], backend: str) -> Iterator[str]:
    """The failures one by one, the rest as one line."""
    if not cases:
        return
    failed = [case for case in cases if not case.ok]
    differences = [case.max_abs for case in cases if case.max_abs is not None]
    worst = f", largest difference {max(differences):.3g}" if differences else ""
    where = " on the CPU" if backend == EMULATOR else ""
    yield f"compared{where}: {len(cases) - len(failed)} of {count(len(cases), 'run')} as they should be{worst}"
    for case in failed[:MOST_FAILURES]:
        why = case.reason or f"largest difference {case.max_abs:.3g}, relative {case.max_rel:.3g}"
        yield f"  {click.style('wrong', fg='red')} {_shape(case.shape)}, {case.distribution}: {printable(why)}"


MOST_FAILURES = 5


def _speeds(speeds: Sequence[Speed]) -> Iterator[str]:
    if not speeds:
        return
    yield "timed, caches cold:"
    rows: list[tuple[str, ...]] = [("", "original", "candidate", "speedup", "95% CI")]
    rows += [
        (
            _shape(speed.shape),
            f"{speed.baseline_us:.1f} us",
            f"{speed.candidate_us:.1f} us",
            f"{speed.speedup:.2f}x",
            f"{speed.ci95[0]:.2f}-{speed.ci95[1]:.2f}",
        )
        for speed in speeds
    ]
    yield from _table(rows)


def _shape(shape: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {size}" for name, size in shape.items()) or "its one shape"


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Columns in step: the first to the left, the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [
            f"{row[0]:<{widths[0]}}",
            *(f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)),
        ]
        yield ("  " + "  ".join(cells)).rstrip()


def _indented(lines: Iterator[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)
