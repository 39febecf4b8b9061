"""What is known about the thing under the cursor, as Markdown: an access, a branch, a barrier, a launch, a kernel.

Every number comes with the launch that it holds for and with its basis, so that a guess never reads like a count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warpwright.editor.analysis import Analysis
from warpwright.editor.markdown import code, place, prose
from warpwright.editor.picture import lanes_picture
from warpwright.editor.picture_svg import lanes_image
from warpwright.editor.resources_view import resource_lines
from warpwright.editor.roofline import roofline_of, roofline_text
from warpwright.facts.document import dims_text
from warpwright.facts.memory import ideal_sectors, ideal_wavefronts, sectors, wavefronts
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
    LaneAddresses,
    Launch,
    SharedArray,
    Space,
)
from warpwright.rules.gains import times_by_line
from warpwright.rules.words import number
from warpwright.syntax.source import Span

if TYPE_CHECKING:
    from warpwright.toolchain.machine_lines import MachineLines

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


_TOLD, _MOST_LINES = 0.05, 4
"""Of a kernel's memory time, what a line must take to be named, and how many are."""


@dataclass(frozen=True, slots=True)
class Hover:
    """Markdown, and the text that it is about."""

    markdown: str
    span: Span


Picture = Callable[[Access, LaneAddresses], str]
"""Draws a request, as Markdown."""


def text_picture(access: Access, lanes: LaneAddresses) -> str:
    """For clients that show Markdown as text."""
    return f"```text\n{lanes_picture(lanes, access.space, access.bytes)}\n```"


def image_picture(access: Access, lanes: LaneAddresses) -> str:
    """For clients that show images from `data:` addresses. What it shows is its text for who cannot see it."""
    ideal = _of_request(access, lanes)[1]
    text = " ".join(lanes_picture(lanes, access.space, access.bytes).replace("\n", "; ").split())
    return lanes_image(lanes, access.space, access.bytes, ideal, text)


def hover(
    analysis: Analysis, offset: int, picture: Picture = text_picture, machine: Iterable[MachineLines] = ()
) -> Hover | None:
    """What is known about the smallest thing at a byte offset of the document, and what its line became in `machine`.

    None where there is nothing to say.
    """
    path = analysis.source.path
    spans = {span for span in _spans(analysis.program.kernels) if span.path == path and span.contains(offset)}
    span = min(spans, key=lambda s: (s.end - s.start, s.start), default=None)
    parts: list[str] = []
    if span is not None:
        parts += [part for kernel in analysis.program.kernels for part in _about(analysis, kernel, span, picture)]
        parts += _of_runs(analysis, span)
    line = analysis.source.position(offset)[0]
    if traced := [each for each in analysis.traced if each.line == line]:
        parts += [f"**Last trace**: {prose(each.said)}  \n{prose(each.advice)}".rstrip() for each in traced]
        span = span or analysis.source.line_span(line)
    if code_of_line := _machine_code(machine, path, line):
        parts.append(code_of_line)
        span = span or analysis.source.line_span(line)
    return Hover("\n\n---\n\n".join(dict.fromkeys(parts)), span) if span is not None else None


def _machine_code(machine: Iterable[MachineLines], path: str, line: int) -> str:
    """What the first compilation that has the line made of it; "" where none has."""
    for lines in machine:
        if lines.at(path, line):
            from warpwright.editor.machine.words import line_markdown

            return line_markdown(lines, path, line)
    return ""


def _spans(kernels: Iterable[Kernel]) -> Iterator[Span]:
    for kernel in kernels:
        for group in (kernel.accesses, kernel.branches, kernel.barriers, kernel.shared_arrays):
            for fact in group:
                yield fact.span
        yield from (launch.span for launch in kernel.launches if launch.span is not None)
        yield kernel.name_span


def _about(analysis: Analysis, kernel: Kernel, span: Span, picture: Picture) -> Iterator[str]:
    accesses = [a for a in kernel.accesses if a.span == span]
    if accesses:
        yield _accesses_text(kernel, accesses, picture)
    branches = [b for b in kernel.branches if b.span == span]
    if branches:
        yield _branches_text(kernel, branches)
    yield from (_barrier_text(kernel, barrier) for barrier in kernel.barriers if barrier.span == span)
    yield from (_array_text(array) for array in kernel.shared_arrays if array.span == span)
    yield from (_launch_text(kernel, launch) for launch in kernel.launches if launch.span == span)
    if kernel.name_span == span and kernel.node is not None:
        yield _kernel_text(analysis, kernel)


def _of_runs(analysis: Analysis, span: Span) -> Iterator[str]:
    """What the kept runs of this text say of a line, or, at a kernel's name, of the whole; one run for each kernel."""
    if not analysis.profiles:
        return
    from warpwright.editor.profile.view import counts_of, counts_words, fault_words, run_of

    for profile in {profile.kernel: profile for profile in reversed(analysis.profiles)}.values():
        kernel = analysis.program.kernel(profile.kernel)
        lines = [each for each in profile.lines if (each.file, each.line) == (span.path, span.line)]
        what = "This line"
        if kernel is not None and kernel.name_span == span:
            lines, what = list(profile.lines), "The whole run"
        if lines:
            said = counts_words(counts_of(lines), lines[0].instruction_set)
            yield f"**{what}, {profile.basis.value}** ({prose(run_of(profile))}): {prose(said)}"
        for fault in profile.faults:
            if (fault.file, fault.line) == (span.path, span.line):
                what = "Fault" if not fault.guessed else "The run"
                yield f"**{what}, {profile.basis.value}**: {prose(fault_words(fault))}"


def _accesses_text(kernel: Kernel, accesses: Sequence[Access], picture: Picture) -> str:
    first = accesses[0]
    kinds = " and ".join(dict.fromkeys(access.kind.value for access in accesses))
    lines = [f"**{first.space.value.capitalize()} {kinds}** {code(first.expression)} in {code(kernel.name)}"]
    ordered = sorted(accesses, key=lambda a: a.launch)
    lines += dict.fromkeys(f"\n{_counts(access)} for {_launch_of(kernel, access.launch)}" for access in ordered)
    drawn = [a for a in accesses if a.lanes is not None and a.space in (Space.SHARED, Space.GLOBAL)]
    worst = max(drawn, key=lambda a: a.excess or 0.0, default=None)
    if worst is not None and worst.lanes is not None:
        lines += ["", picture(worst, worst.lanes), "", _request_text(kernel, worst, worst.lanes)]
    lines += dict.fromkeys(
        f"\n{_BASIS[access.basis].capitalize()}: {prose(access.why)}" for access in ordered if access.why
    )
    return "\n".join(lines)


def _request_text(kernel: Kernel, access: Access, lanes: LaneAddresses) -> str:
    """Which request is drawn, and what it alone costs."""
    count, ideal = _of_request(access, lanes)
    which = "the worst request" if count > ideal else "a request"
    unit = "wavefront" if access.space is Space.SHARED else "sector"
    x, y, z = lanes.block
    shape = f", {_shape_text(kernel.launches[access.launch])}" if len({a.launch for a in kernel.accesses}) > 1 else ""
    cost = f"{count} {unit}{'s' if count != 1 else ''}"
    return f"Drawn: the lanes of {which}, by warp {lanes.warp} of block ({x}, {y}, {z}){shape}, {cost}"


def _of_request(access: Access, lanes: LaneAddresses) -> tuple[int, float]:
    """Wavefronts or sectors of one request, and the fewest possible."""
    active = WARP - lanes.addresses.count(None)
    if access.space is Space.SHARED:
        count = wavefronts(lanes.addresses, access.bytes)
        return count, ideal_wavefronts(count, active, access.bytes)
    count = sectors(lanes.addresses, access.bytes)
    return count, ideal_sectors(count, active, access.bytes)


def _counts(access: Access) -> str:
    unit = "wavefront" if access.space is Space.SHARED else "sector"
    size = f"{access.bytes} byte{'s' if access.bytes != 1 else ''} a lane"
    if access.space is Space.CONSTANT and access.addresses_per_request is not None:
        many = access.addresses_per_request
        return f"**{number(many)} address{'es' if many != 1 else ''} per request**, served one after the other, {size},"
    if access.space is Space.LOCAL:
        held = "an element that a run-time value picks" if access.run_time_index else "the thread's own memory"
        return f"{held.capitalize()}, {size},"
    if access.transactions is None:
        return f"{unit.capitalize()}s per request: not known, {size},"
    got, ideal = access.transactions
    verdict = f"**{number(got)} {unit}{'s' if got != 1 else ''}/request**"
    lanes = "" if access.active_lanes == WARP else f", {number(access.active_lanes)} active lanes"
    lanes += f", {access.basis.value}" if access.basis in (Basis.EMULATED, Basis.MEASURED) else ""
    compared = f" (ideal {number(ideal)})" if got > ideal else " (ideal)"
    return f"{verdict}{compared}, {size}{lanes},"


def _launch_of(kernel: Kernel, index: int) -> str:
    if not 0 <= index < len(kernel.launches):
        return "an unknown launch"
    return _shape_text(kernel.launches[index])


def _shape_text(launch: Launch) -> str:
    origin = "assumed" if launch.basis is Basis.ASSUMED else "from"
    where = "" if launch.source in ("", "default") else f" {place(launch.source)}"
    if launch.basis is Basis.ASSUMED:
        return f"block {dims_text(launch.block)} ({origin}{',' + where if where else ': no launch found'})"
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
        lines += ["", f"{_BASIS[barrier.basis].capitalize()}: {prose(barrier.reason)}"]
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


def _hot_lines(kernel: Kernel) -> str:
    """`line 35 72%, line 31 14%`: the lines that take most, with a share that the eye can tell."""
    shares = sorted(times_by_line(kernel).items(), key=lambda each: -each[1])
    own = {line: share for (path, line), share in shares if path == kernel.source.path and share >= _TOLD}
    return ", ".join(f"line {line} {share:.0%}" for line, share in list(own.items())[:_MOST_LINES])


def _kernel_text(analysis: Analysis, kernel: Kernel) -> str:
    lines = [f"**Kernel** {code(kernel.name)}", ""]
    lines += [f"- launched with {_shape_text(launch)}" for launch in kernel.launches] or ["- no launch found"]
    shared = kernel.shared_bytes
    if kernel.shared_arrays:
        lines.append(f"- shared memory: {'not known' if shared is None else f'{shared:,} bytes'} a block")
    counts = Counter(space for space, _ in {(access.space, access.span) for access in kernel.accesses})
    lines.append(f"- accesses: {counts[Space.GLOBAL]} global, {counts[Space.SHARED]} shared")
    worst = max((a for a in kernel.accesses if (a.excess or 0.0) > 1.0), key=lambda a: a.excess or 0.0, default=None)
    if worst is not None:
        lines.append(f"- worst: {code(worst.expression)}, {number(worst.excess or 0.0)} times the ideal transactions")
    count = sum(1 for finding in analysis.findings if finding.kernel == kernel.name)
    lines.append(f"- {count} finding{'s' if count != 1 else ''}")
    if hot := _hot_lines(kernel):
        lines.append(f"- where the memory time goes, by estimate: {hot}")
    if kernel.incomplete:
        lines.append(f"- followed in part only: {prose(kernel.incomplete)}")
    lines += resource_lines(analysis, kernel)
    profile = next((each for each in analysis.profiles if each.kernel == kernel.name), None)
    found = roofline_of(profile, analysis.program.assume.arch) if profile is not None else None
    return "\n".join([*lines, *([roofline_text(found)] if found is not None else [])])
