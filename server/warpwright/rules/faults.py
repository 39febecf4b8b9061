"""What a run of a kernel did wrong, as findings: those of the rules that a run alone finds, and those that a rule adds
to what it reads in the text. A kernel has faults of runs where a profile of its very text is kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from warpwright.facts.document import dims_text
from warpwright.facts.model import Kernel, RunFault
from warpwright.facts.profile import FaultKind
from warpwright.rules.base import Finding, Fix, Related, Severity
from warpwright.syntax.source import Span


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
    said = {_line(finding.span) for finding in told}
    pairs: set[frozenset[tuple[str, int]]] = set()
    for fault in kernel.faults:
        places = frozenset({_line(fault.span)} | ({_line(fault.other)} if fault.other is not None else set()))
        if fault.kind not in kinds or places & said or (len(places) > 1 and places in pairs):
            continue
        pairs.add(places)
        yield Finding(
            span=fault.span,
            message=f"{fault.message.removesuffix('.')}; {_run(fault)}.",
            evidence=_evidence(fault),
            fixes=fixes,
            related=_related(fault),
            severity=severity,
        )


def _line(span: Span) -> tuple[str, int]:
    return span.path, span.line


def _run(fault: RunFault) -> str:
    """`emulated, block 256, n = 1,000`"""
    parts = [fault.basis.value]
    if fault.block is not None:
        parts.append(f"block {dims_text(fault.block)}")
    return ", ".join([*parts, *(f"{name} = {size:,}" for name, size in fault.sizes)])


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
