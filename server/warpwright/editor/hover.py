"""What is known about the thing under the cursor, as Markdown: an access, a branch, a barrier, a launch, a kernel.

Every number comes with the launch that it holds for and with its basis, so that a guess never reads like a count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from warpwright.editor.analysis import Analysis
from warpwright.editor.markdown import code, number, place, prose
from warpwright.editor.picture import lanes_picture
from warpwright.facts.document import dims_text
from warpwright.facts.model import (
    BANK_BYTES,
    BANKS,
    WARP,
    Access,
    Barrier,
    Basis,
    Branch,
    Divergence,
    Kernel,
    Launch,
    SharedArray,
    Space,
)
from warpwright.syntax.source import Span

_BASIS = {
    Basis.EXACT: "counted from the text",
    Basis.ASSUMED: "counted with something assumed",
    Basis.DATA_DEPENDENT: "depends on data that is read from memory",
    Basis.UNKNOWN: "not known",
    Basis.EMULATED: "emulated",
    Basis.MEASURED: "measured",
}
_DIVERGENCE = {
    Divergence.UNIFORM: "**No warp diverges**",
    Divergence.BOUNDARY: "**Only the warps at the edge of the data diverge**",
    Divergence.PARTIAL: "**Some warps diverge**",
    Divergence.EVERY_WARP: "**Every warp diverges**",
    Divergence.DATA_DEPENDENT: "**Divergence depends on data** that is read from memory",
    Divergence.UNKNOWN: "Divergence is not known",
}


@dataclass(frozen=True, slots=True)
class Hover:
    """Markdown, and the text that it is about."""

    markdown: str
    span: Span


def hover(analysis: Analysis, offset: int) -> Hover | None:
    """What is known about the smallest thing at a byte offset of the document; None where there is nothing to say."""
    path = analysis.source.path
    spans = {span for span in _spans(analysis.program.kernels) if span.path == path and span.contains(offset)}
    if not spans:
        return None
    span = min(spans, key=lambda s: (s.end - s.start, s.start))
    parts = [part for kernel in analysis.program.kernels for part in _about(analysis, kernel, span)]
    return Hover("\n\n---\n\n".join(dict.fromkeys(parts)), span)


def _spans(kernels: Iterable[Kernel]) -> Iterator[Span]:
    for kernel in kernels:
        for group in (kernel.accesses, kernel.branches, kernel.barriers, kernel.shared_arrays):
            for fact in group:
                yield fact.span
        yield from (launch.span for launch in kernel.launches if launch.span is not None)
        yield kernel.name_span


def _about(analysis: Analysis, kernel: Kernel, span: Span) -> Iterator[str]:
    accesses = [a for a in kernel.accesses if a.span == span]
    if accesses:
        yield _accesses_text(kernel, accesses)
    branches = [b for b in kernel.branches if b.span == span]
    if branches:
        yield _branches_text(kernel, branches)
    yield from (_barrier_text(kernel, barrier) for barrier in kernel.barriers if barrier.span == span)
    yield from (_array_text(array) for array in kernel.shared_arrays if array.span == span)
    yield from (_launch_text(kernel, launch) for launch in kernel.launches if launch.span == span)
    if kernel.name_span == span and kernel.node is not None:
        yield _kernel_text(analysis, kernel)


def _accesses_text(kernel: Kernel, accesses: Sequence[Access]) -> str:
    first = accesses[0]
    kinds = " and ".join(dict.fromkeys(access.kind.value for access in accesses))
    lines = [f"**{first.space.value.capitalize()} {kinds}** {code(first.expression)} in {code(kernel.name)}"]
    said: dict[str, None] = {}
    for access in sorted(accesses, key=lambda a: a.launch):
        why = f"\n\n{prose(access.why)} ({_BASIS[access.basis]})" if access.why else ""
        said[f"\n{_counts(access)} for {_launch_of(kernel, access.launch)}{why}"] = None
    lines += said
    worst = max((a for a in accesses if a.lanes is not None), key=lambda a: a.excess or 0.0, default=None)
    if worst is not None and worst.lanes is not None and worst.space in (Space.SHARED, Space.GLOBAL):
        x, y, z = worst.lanes.block
        lines += ["", f"Warp {worst.lanes.warp} of block ({x}, {y}, {z}):", "```text"]
        lines += [lanes_picture(worst.lanes, worst.space), "```"]
    return "\n".join(lines)


def _counts(access: Access) -> str:
    if access.space is Space.SHARED:
        unit, got, ideal = "wavefront", access.wavefronts_per_request, access.ideal_wavefronts_per_request
    else:
        unit, got, ideal = "sector", access.sectors_per_request, access.ideal_sectors_per_request
    size = f"{access.bytes} byte{'s' if access.bytes != 1 else ''} a lane"
    if got is None or ideal is None:
        return f"{unit.capitalize()}s per request: not known, {size},"
    verdict = f"**{number(got)} {unit}{'s' if got != 1 else ''} per request**"
    lanes = "" if access.active_lanes == WARP else f", {number(access.active_lanes)} active lanes"
    compared = f" where {number(ideal)} would do" if got > ideal else ", the fewest possible"
    return f"{verdict}{compared}, {size}{lanes},"


def _launch_of(kernel: Kernel, index: int) -> str:
    if not 0 <= index < len(kernel.launches):
        return "an unknown launch"
    return _shape_text(kernel.launches[index])


def _shape_text(launch: Launch) -> str:
    origin = "assumed" if launch.basis is Basis.ASSUMED else "from"
    where = "" if launch.source in ("", "default") else f" {place(launch.source)}"
    if launch.basis is Basis.ASSUMED:
        return f"block {dims_text(launch.block)} ({origin}{',' + where if where else ': no launch is in sight'})"
    return f"block {dims_text(launch.block)} ({origin}{where})" if where else f"block {dims_text(launch.block)}"


def _branches_text(kernel: Kernel, branches: Sequence[Branch]) -> str:
    first = branches[0]
    lines = [f"**Branch** {code(first.condition)} in {code(kernel.name)}"]
    for branch in sorted(branches, key=lambda b: b.launch):
        share = f" ({number(100 * branch.warps_diverging)} % of the warps)" if branch.warps_diverging else ""
        lines += ["", f"{_DIVERGENCE[branch.divergence]}{share}, for {_launch_of(kernel, branch.launch)}"]
        if branch.why:
            lines += ["", prose(branch.why)]
    return "\n".join(lines)


def _barrier_text(kernel: Kernel, barrier: Barrier) -> str:
    lines = [f"**Barrier** {code(barrier.expression)} in {code(kernel.name)}", ""]
    if barrier.divergent:
        condition = f" under {code(barrier.condition.text)}" if barrier.condition is not None else ""
        lines.append(f"**Not every thread of the block reaches it**{condition}: the result is undefined.")
    if barrier.reason:
        lines += ["", f"{prose(barrier.reason)} ({_BASIS[barrier.basis]})"]
    return "\n".join(lines)


def _array_text(array: SharedArray) -> str:
    if array.dynamic:
        return f"**Shared array** {code(array.name)}: its size is set by the launch."
    size = "size not known" if array.bytes is None else f"{array.bytes:,} bytes of each block's shared memory"
    lines = [f"**Shared array** {code(array.name)}: {size}"]
    columns = array.dims[-1] if len(array.dims) > 1 else None
    if columns is not None and array.element_bytes is not None:
        pitch = columns * array.element_bytes
        if pitch % BANK_BYTES == 0:
            shift = pitch // BANK_BYTES % BANKS
            step = "in the same bank" if shift == 0 else f"{shift} bank{'s' if shift != 1 else ''} further on"
            lines += ["", f"A row is {pitch} bytes, so the element below another lies {step} (of {BANKS})."]
    return "\n".join(lines)


def _launch_text(kernel: Kernel, launch: Launch) -> str:
    lines = [f"**Launch** of {code(kernel.name)}", ""]
    lines.append(f"- grid {dims_text(launch.grid)}, block {dims_text(launch.block)}")
    threads = launch.threads
    if threads is not None:
        warps = -(-threads // WARP)
        rest = threads % WARP
        idle = f", the last one with {rest} of {WARP} lanes" if rest else ""
        lines.append(f"- {threads} threads a block: {warps} warp{'s' if warps != 1 else ''}{idle}")
    if launch.dynamic_shared_bytes:
        lines.append(f"- {launch.dynamic_shared_bytes:,} bytes of dynamic shared memory a block")
    lines.append("- its error is read afterwards" if launch.checked else "- its error is not read afterwards")
    return "\n".join(lines)


def _kernel_text(analysis: Analysis, kernel: Kernel) -> str:
    lines = [f"**Kernel** {code(kernel.name)}", ""]
    lines += [f"- launched with {_shape_text(launch)}" for launch in kernel.launches] or ["- no launch is in sight"]
    shared = kernel.shared_bytes
    if kernel.shared_arrays:
        lines.append(f"- shared memory: {'not known' if shared is None else f'{shared:,} bytes'} a block")
    counts = Counter(space for space, _ in {(access.space, access.span) for access in kernel.accesses})
    lines.append(f"- accesses: {counts[Space.GLOBAL]} global, {counts[Space.SHARED]} shared")
    worst = max((a for a in kernel.accesses if (a.excess or 0.0) > 1.0), key=lambda a: a.excess or 0.0, default=None)
    if worst is not None:
        lines.append(f"- worst: {code(worst.expression)}, {number(worst.excess or 0.0)} times the fewest transactions")
    count = sum(1 for finding in analysis.findings if finding.kernel == kernel.name)
    lines.append(f"- {count} finding{'s' if count != 1 else ''}")
    if kernel.incomplete:
        lines.append(f"- followed in part only: {prose(kernel.incomplete)}")
    return "\n".join(lines)
