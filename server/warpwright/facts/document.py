"""Facts for other programs (the `facts` JSON contract) and for people (the source with caret lines)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from warpwright.facts.compiled import instances_of, occupancies, occupancy_of
from warpwright.facts.lifts import cause_words, lift_words, percent
from warpwright.facts.model import Access, Barrier, Branch, Kernel, Launch, Program, Space
from warpwright.facts.resources import KernelResources
from warpwright.syntax.source import Span

FORMAT_VERSION = 1
LONGEST_LINE = 1000
"""Columns up to which a fact's carets stand under it; further right it names its column."""


def facts_document(programs: Iterable[Program]) -> dict[str, Any]:
    """The `warpwright facts --format json` document. A kernel that several files include stands once per file that
    launches it, or once where none does."""
    defined = [kernel for program in programs for kernel in program.defined_kernels]
    launched = {_place(kernel) for kernel in defined if _is_launched(kernel)}
    kernels: dict[str, dict[str, Any]] = {}
    for kernel in defined:
        if _is_launched(kernel) or _place(kernel) not in launched:
            shapes = [(launch.grid, launch.block) for launch in kernel.launches]
            kernels.setdefault(repr((*_place(kernel), shapes)), _kernel(kernel))
    return {"version": FORMAT_VERSION, "kernels": list(kernels.values())}


def _place(kernel: Kernel) -> tuple[str, int]:
    return kernel.source.path, kernel.span.start


def _is_launched(kernel: Kernel) -> bool:
    """Whether a launch of the kernel is found, so that no shape had to be assumed."""
    return any(launch.span is not None for launch in kernel.launches)


def _kernel(kernel: Kernel) -> dict[str, Any]:
    compiled = [_compiled(kernel, resources) for resources in kernel.compiled]
    return {
        "name": kernel.name,
        "file": kernel.source.path,
        "line": kernel.name_span.line,
        "launches": [_launch(launch) for launch in kernel.launches],
        "accesses": [_access(access) for access in kernel.accesses],
        "branches": [_branch(branch) for branch in kernel.branches],
        "barriers": [_barrier(barrier) for barrier in kernel.barriers],
        "shared_arrays": [
            {"name": a.name, "type": a.element_type, "dims": list(a.dims), "bytes": a.bytes, "dynamic": a.dynamic}
            for a in kernel.shared_arrays
        ],
        "shared_bytes": kernel.shared_bytes,
        "incomplete": kernel.incomplete,
        **({"compiled": compiled} if compiled else {}),
    }


def _compiled(kernel: Kernel, resources: KernelResources) -> dict[str, Any]:
    """One compiled instance, with the occupancy of each launch that can mean it."""
    found = []
    for index, launch in enumerate(kernel.launches):
        each = occupancy_of(kernel, launch, resources) if resources in instances_of(kernel, launch) else None
        if each is not None:
            found.append({"launch": index, **asdict(each.occupancy), "basis": each.basis.value})
    return {**asdict(resources), "occupancy": found}


def _launch(launch: Launch) -> dict[str, Any]:
    return {
        "grid": list(launch.grid),
        "block": list(launch.block),
        "dynamic_shared_bytes": launch.dynamic_shared_bytes,
        "basis": launch.basis.value,
        "source": launch.source,
    }


def _access(access: Access) -> dict[str, Any]:
    return {
        "file": access.span.path,
        "line": access.span.line,
        "column": access.span.column,
        "expression": access.expression,
        "launch": access.launch,
        "space": access.space.value,
        "kind": access.kind.value,
        "bytes": access.bytes,
        "basis": access.basis.value,
        "active_lanes": access.active_lanes,
        "sectors_per_request": access.sectors_per_request,
        "ideal_sectors_per_request": access.ideal_sectors_per_request,
        "wavefronts_per_request": access.wavefronts_per_request,
        "ideal_wavefronts_per_request": access.ideal_wavefronts_per_request,
        "addresses_per_request": access.addresses_per_request,
        "why": access.why,
    }


def _branch(branch: Branch) -> dict[str, Any]:
    return {
        "file": branch.span.path,
        "line": branch.span.line,
        "column": branch.span.column,
        "condition": branch.condition,
        "divergence": branch.divergence.value,
        "warps_diverging": 0.0 if branch.predicated else branch.warps_diverging,  # a predicate splits no warp
        "predicated": branch.predicated,
        "why": branch.why,
    }


def _barrier(barrier: Barrier) -> dict[str, Any]:
    return {
        "file": barrier.span.path,
        "line": barrier.span.line,
        "column": barrier.span.column,
        "expression": barrier.expression,
        "divergent": barrier.divergent,
        "basis": barrier.basis.value,
        "reason": barrier.reason,
    }


def facts_text(program: Program) -> str:
    """The file's text with a caret line under each fact; a launch's shape stands over its kernel."""
    notes: dict[int, list[tuple[int, str]]] = {}

    def note(span: Span, text: str) -> None:
        if span.source is program.source:
            end = span.end_column if span.end_line == span.line else span.column + 1
            carets = "^" * max(1, end - span.column)
            indent = span.column - 1
            lead = "//" + " " * (indent - 2) if indent >= 2 else "//"
            if indent > LONGEST_LINE:
                lead, carets = "//", f" column {span.column}:"
            entry = (span.column, f"{lead}{carets} {text}")
            if entry not in notes.setdefault(span.line, []):
                notes[span.line].append(entry)

    for kernel in program.defined_kernels:
        for launch in kernel.launches[:4]:
            note(kernel.name_span, launch_text(launch))
        for text in dict.fromkeys(compiled_texts(kernel)):
            note(kernel.name_span, text)
        if kernel.incomplete:
            note(kernel.name_span, f"not followed whole: {kernel.incomplete}")
        for access in kernel.accesses:
            note(access.span, access_text(access))
        for branch in kernel.branches:
            note(branch.span, branch_text(branch))
        for barrier in kernel.barriers:
            note(barrier.span, f"barrier: {'divergent' if barrier.divergent else 'uniform'}: {barrier.reason}")
    lines: list[str] = []
    for number in range(1, len(program.source.line_starts) + 1):
        lines.append(program.source.line_text(number))
        lines += [text for _, text in sorted(notes.get(number, []))]
    return "\n".join(lines) + "\n"


def compiled_texts(kernel: Kernel) -> Iterator[str]:
    """What the compiler says of each instance, and the occupancy of each launch with what would lift it."""
    several = len(kernel.compiled) > 1
    for each in kernel.compiled:
        name = f" {each.name}" if several else ""
        spills = f"{each.spill_store_bytes} bytes spilled, {each.spill_load_bytes} read back"
        parts = [counted(each.registers, "register"), spills if each.spill_bytes else "no spills"]
        parts += [f"{each.stack_bytes} bytes of stack"] if each.stack_bytes else []
        parts += [f"{each.shared_bytes} bytes of shared memory"] if each.shared_bytes else []
        yield f"compiled for {each.arch or kernel.arch}:{name} {', '.join(parts)}"
    for found in occupancies(kernel):
        name = f" of {found.resources.name}" if several else ""
        block = f"block {dims_text(found.launch.block)}{'' if found.basis == 'exact' else ' (assumed)'}"
        why = f": {cause_words(found.footprint)}" if found.occupancy.fraction < 1 else ""
        ways = "".join(f"; {lift_words(found.footprint, lift)}" for lift in found.lifts)
        yield f"occupancy{name} {percent(found.occupancy.fraction)} %, {block}{why}{ways}"


def launch_text(launch: Launch) -> str:
    """A launch in words.

    >>> from warpwright.facts.model import Basis
    >>> launch_text(Launch((64, None, 1), (32, 8, 1), 0, Basis.EXACT, "a.cu:41"))
    'grid 64 x ?, block 32 x 8 (assumed: a.cu:41)'
    """
    grid = "" if launch.grid == (None, None, None) else f"grid {dims_text(launch.grid)}, "
    assumed = "assumed: " if launch.span is None else "" if launch.basis == "exact" else "assumed block at "
    return f"{grid}block {dims_text(launch.block)} ({assumed}{launch.source})"


def dims_text(dims: tuple[int | None, int | None, int | None]) -> str:
    """A grid or block for people, without trailing ones; an unknown extent is a question mark.

    >>> dims_text((32, 8, 1)), dims_text((None, 1, 1)), dims_text((16, 1, 4))
    ('32 x 8', '?', '16 x 1 x 4')
    """
    shown = list(dims)
    while len(shown) > 1 and shown[-1] == 1:
        shown.pop()
    return " x ".join("?" if extent is None else str(extent) for extent in shown)


def access_text(access: Access) -> str:
    """An access in words: what it costs, against the fewest possible, the basis and the reason."""
    head = f"{access.space.value} {access.kind.value} of {access.bytes} bytes"
    if access.space is Space.CONSTANT and access.addresses_per_request is not None:
        count = f"{counted(access.addresses_per_request, 'address', 'es')} (ideal 1)"
    elif access.transactions is not None:
        got, ideal = access.transactions
        count = (
            f"{counted(round(got, 3), 'wavefront' if access.space is Space.SHARED else 'sector')} (ideal {ideal:.4g})"
        )
    else:
        return f"{head}: {access.basis.value}: {access.why}"
    return f"{head}: {count}, {access.basis.value}: {access.why}"


def branch_text(branch: Branch) -> str:
    """How a branch splits warps, in words."""
    spared = ", but predicated" if branch.predicated and branch.warps_diverging else ""
    return f"branch: {branch.divergence.value}: {branch.why}{spared}"


def counted(number: float, noun: str, ending: str = "s") -> str:
    """
    >>> counted(1.0, "sector"), counted(4.875, "sector")
    ('1 sector', '4.875 sectors')
    """
    return f"{number:g} {noun}{'' if number == 1 else ending}"
