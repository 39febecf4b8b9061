"""Facts in sentences: the reasoning that a training example shows. Every number is one that the analysis counted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from warpwright.assist.prompts import one_line
from warpwright.facts.document import dims_text
from warpwright.facts.model import Access, Divergence, Kernel, Space
from warpwright.rules.base import Finding
from warpwright.rules.words import number, plural

GOALS = {"speed": "Make the kernel {} run faster.", "memory": "Make the kernel {} use less memory.", "fix": "Fix {}."}
CONSTRAINTS = {
    "speed": ("The results stay the same.", "It is faster at the shapes of the launch and slower at no other."),
    "memory": ("The results stay the same.", "It uses less memory and is not slower."),
    "fix": ("What was right stays the same.", "The defect that was found is gone."),
}


def diagnosis(findings: Iterable[Finding]) -> list[str]:
    """One step per finding: its name, the place and what was counted there, without the launch and the advice.

    For example "bank-conflict at `tile[threadIdx.x][threadIdx.y]`: 32 wavefronts per request where 1 would do."
    """
    return [f"{f.rule} at `{one_line(f.span.text)}`: {sentence(claim(f.message))}" for f in findings]


def claim(message: str) -> str:
    """A finding's message up to its first colon, semicolon, bracket or full stop.

    >>> claim("83% of the warps split, with 4.9 of 32 lanes on inside (block 256 from a.cu:53). Do this.")
    '83% of the warps split, with 4.9 of 32 lanes on inside'
    """
    return re.split(r"[:;]\s| \(|\.\s", one_line(message), maxsplit=1)[0]


def sentences(text: str) -> list[str]:
    """
    >>> sentences("It waits. It costs 1.5 cycles.")
    ['It waits.', 'It costs 1.5 cycles.']
    """
    return [sentence(part) for part in re.split(r"(?<=\.)\s+", one_line(text)) if part]


def outcome(before: Kernel, after: Kernel) -> list[str]:
    """What the counts were and are, per kind of number that changed.

    For example: "Shared memory: 16.5 times fewer wavefronts." Counts are of the requests that were looked at in the
    kernel's first launch, so that they can be compared between two texts of one kernel.
    """
    said: list[str] = []
    for space, noun in ((Space.SHARED, "wavefronts"), (Space.GLOBAL, "sectors")):
        was, now = transactions(before, space), transactions(after, space)
        if was and now and round(was) != round(now):
            more = now > was
            factor = number(now / was if more else was / now)
            said.append(f"{space.capitalize()} memory: {factor} times {'more' if more else 'fewer'} {noun}.")
    was_split, now_split = diverging(before), diverging(after)
    if was_split != now_split:
        said.append(f"Branches that split every warp: {was_split} before, {now_split} after.")
    if before.shared_bytes != after.shared_bytes and None not in (before.shared_bytes, after.shared_bytes):
        said.append(f"Shared memory of a block: {before.shared_bytes} bytes become {after.shared_bytes}.")
    return said


def transactions(kernel: Kernel, space: Space) -> float | None:
    """Sectors (global) or wavefronts (shared) of all requests looked at in the first launch; None where unknown."""
    total = 0.0
    for access in first_launch(kernel):
        if access.space is space:
            each = access.wavefronts_per_request if space is Space.SHARED else access.sectors_per_request
            if each is None:
                return None
            total += each * access.requests
    return total


def diverging(kernel: Kernel) -> int:
    return sum(b.divergence is Divergence.EVERY_WARP and b.launch == 0 for b in kernel.branches)


def first_launch(kernel: Kernel) -> Iterator[Access]:
    return (access for access in kernel.accesses if access.launch == 0)


def design(kernel: Kernel) -> list[str]:
    """How a clean kernel works, for one who is to write it: launch, edges, shared memory, access."""
    steps: list[str] = []
    if kernel.launches and None not in kernel.launches[0].block:
        steps.append(f"A block of {dims_text(kernel.launches[0].block)} threads.")
    guard = next((b for b in kernel.branches if b.divergence is Divergence.BOUNDARY), None)
    if guard is not None:
        steps.append(f"The edge of the data is guarded by `{one_line(guard.condition)}`.")
    for array in kernel.shared_arrays[:1]:
        steps.append(
            f"{array.name} in shared memory holds {plural(array.bytes, 'byte')} of a block." if array.bytes else ""
        )
    stores = [a for a in first_launch(kernel) if a.space is Space.GLOBAL and a.sectors_per_request is not None]
    if stores:
        widest = max(stores, key=lambda a: a.requests)
        steps.append(
            f"A warp's `{one_line(widest.expression)}` touches {plural(widest.sectors_per_request or 0, 'sector')}."
        )
    return [step for step in steps if step][:4]


def sentence(text: str) -> str:
    text = one_line(text)
    return text if text.endswith(".") else text + "."
