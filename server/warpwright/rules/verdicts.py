"""What a run of a kernel says of a finding that was read in its text: it shows the same, or it came to the very places,
in such a launch, and did not. What it did not show is information, as one run is no proof.

Of an access that the run did not come to, or that the compiler took out, it says nothing but that: the finding stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from warpwright.facts.model import AccessKind, Dim3, Kernel, KernelRun, Launch, RunFault, Space
from warpwright.facts.profile import FaultKind
from warpwright.rules.base import Finding, Related, Severity
from warpwright.rules.faults import place_line, ran
from warpwright.syntax.source import Span

_ENDS = {
    *(FaultKind.DEADLOCK, FaultKind.STEP_LIMIT, FaultKind.OUT_OF_BOUNDS, FaultKind.MISALIGNED),
    *(FaultKind.ASSERTION, FaultKind.TRAP, FaultKind.BARRIER_NOT_REACHED, FaultKind.OUTSIDE_MASK),
}
"""Behind such a fault a run does not do what the kernel is meant to."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A finding of the text, the accesses to an array that it is about, and the launch and blocks that it speaks of."""

    finding: Finding
    array: str
    accesses: Sequence[tuple[Span, Space, AccessKind]]
    launch: Launch | None
    blocks: Sequence[Dim3]


def judged(kernel: Kernel, claims: Iterable[Claim], *kinds: FaultKind) -> Iterator[Finding]:
    """The findings with what runs say of them; `kinds` are the faults that a run would have."""
    for claim in claims:
        shown = _shown(kernel, claim.finding, kinds)
        run = next((run for run in kernel.runs if _is_such(run, claim)), None)
        if shown is not None:
            yield _confirmed(claim.finding, shown)
        elif run is None:
            yield claim.finding
        elif _saw_all(run, claim):
            yield _withdrawn(claim.finding, run)
        else:
            yield _said(
                claim.finding, f"A run did not reach both places, or the compiler removed one; {ran(run)}", "open"
            )


def confirmed(kernel: Kernel, findings: Iterable[Finding], *kinds: FaultKind) -> Iterator[Finding]:
    """The findings, each with what a run shows at one of its places. A run that shows nothing there says nothing: its
    values are made up, and its arrays may be larger than those of the text."""
    for finding in findings:
        shown = _shown(kernel, finding, kinds)
        yield finding if shown is None else _confirmed(finding, shown)


def _shown(kernel: Kernel, finding: Finding, kinds: Sequence[FaultKind]) -> RunFault | None:
    here = {place_line(finding.span), *(place_line(each.span) for each in finding.related)}
    for fault in kernel.faults:
        if fault.kind in kinds and (
            place_line(fault.span) in here or (fault.other and place_line(fault.other) in here)
        ):
            return fault
    return None


def _is_such(run: KernelRun, claim: Claim) -> bool:
    """Whether a run was of such a launch, and nothing went wrong there."""
    return (
        claim.launch is not None
        and run.block == claim.launch.block
        and all(i < n for block in claim.blocks for i, n in zip(block, run.grid, strict=True))
        and not run.faults & _ENDS
        and not run.faulty_lines & {place_line(span) for span, _, _ in claim.accesses}
    )


def _saw_all(run: KernelRun, claim: Claim) -> bool:
    return all((*place_line(span), space, kind, claim.array) in run.accessed for span, space, kind in claim.accesses)


def _confirmed(finding: Finding, fault: RunFault) -> Finding:
    others = tuple(
        Related(span, "a run shows it here")
        for span in (fault.span, fault.other)
        if span is not None and place_line(span) != place_line(finding.span)
        if place_line(span) not in {place_line(each.span) for each in finding.related}
    )
    told = _said(finding, f"Confirmed by a run: {_small(fault.message.removesuffix('.'))}; {ran(fault)}", "confirmed")
    return replace(told, related=finding.related + others)


def _withdrawn(finding: Finding, run: KernelRun) -> Finding:
    told = _said(finding, f"A run came to both places in such a launch and did not show it; {ran(run)}", "withdrawn")
    return replace(told, severity=Severity.INFORMATION, fixes=())


def _said(finding: Finding, what: str, verdict: str) -> Finding:
    return replace(finding, message=f"{finding.message}\n{what}.", evidence={**finding.evidence, "run": verdict})


def _small(text: str) -> str:
    return text[:1].lower() + text[1:]
