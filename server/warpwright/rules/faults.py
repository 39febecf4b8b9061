"""What a run of a kernel did wrong, as findings: those of the rules that a run alone finds, and those that a rule adds
to what it reads in the text. A kernel has faults of runs where a profile of its very text is kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from warpwright.facts.document import dims_text
from warpwright.facts.model import Kernel, KernelRun, RunFault
from warpwright.facts.profile import FaultKind
from warpwright.rules.base import Finding, Fix, Related, Severity
from warpwright.syntax.source import Span

_RACES: dict[str, str] = {
    FaultKind.SHARED_RACE: "two threads, no __syncthreads() between",
    FaultKind.GLOBAL_RACE: "two threads, no __syncthreads() between",
    FaultKind.MISSING_SYNCWARP: "two lanes of one warp, no __syncwarp() between",
}


def of_runs(
    kernel: Kernel,
    *kinds: FaultKind,
    told: Iterable[Finding] = (),
    severity: Severity | None = None,
    fixes: tuple[Fix, ...] = (),
) -> Iterator[Finding]:
    """A finding for each fault of these kinds, a race once whichever of its accesses came last.

    What `told` says of the text is not said again of a run: a fault one of whose places such a finding stands at.
    """
    said = {place_line(finding.span) for finding in told}
    pairs: set[frozenset[tuple[str, int]]] = set()
    for fault in kernel.faults:
        places = frozenset({place_line(fault.span)} | ({place_line(fault.other)} if fault.other is not None else set()))
        if fault.kind not in kinds or places & said or (len(places) > 1 and places in pairs):
            continue
        pairs.add(places)
        yield Finding(
            span=fault.span,
            message=_message(fault),
            evidence=_evidence(fault),
            fixes=fixes,
            related=_related(fault),
            severity=severity,
        )


def _message(fault: RunFault) -> str:
    """``Race on `tile`: two threads, no __syncthreads() between`` and what they did, or what happened; and in which
    run."""
    sentence, run = fault.message.removesuffix("."), ran(fault)
    race = _RACES.get(fault.kind)
    if race is None or len(fault.threads) < 2:
        return f"{sentence}\n{run[:1].upper()}{run[1:]}."
    is_one_block = fault.threads[0][0] == fault.threads[1][0]
    who = race if is_one_block else "two blocks, nothing orders them"
    return f"Race on `{fault.array}`: {who}\n{sentence}; {run}."


def place_line(span: Span) -> tuple[str, int]:
    """The file and the line of a place: what a run knows of it."""
    return span.path, span.line


def ran(run: RunFault | KernelRun) -> str:
    """`emulated, block 256, n = 1,000`"""
    parts = [run.basis.value]
    if run.block is not None:
        parts.append(f"block {dims_text(run.block)}")
    return ", ".join([*parts, *(f"{name} = {size:,}" for name, size in run.sizes)])


def _evidence(fault: RunFault) -> dict[str, object]:
    return {
        "basis": fault.basis.value,
        "threads": [{"block": list(block), "thread": list(thread)} for block, thread in fault.threads],
        "array": fault.array,
        "byte": fault.address,
        "count": fault.count,
        "other_line": fault.other.line if fault.other is not None else None,
        "grid": None if fault.grid is None else list(fault.grid),
        "block": None if fault.block is None else list(fault.block),
        "shape": dict(fault.sizes),
    }


def _related(fault: RunFault) -> tuple[Related, ...]:
    if fault.other is None:
        return ()
    who = ""
    if len(fault.threads) > 1:
        block, thread = fault.threads[-1]
        who = f"by thread {thread} of block {block}"
    return (Related(fault.other, f"the other access {who}".strip()),)
