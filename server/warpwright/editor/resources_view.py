"""What the compiler says that a kernel takes, in words: for the line above it and for the hover at its name."""

from __future__ import annotations

from collections.abc import Iterator

from warpwright.editor.analysis import Analysis
from warpwright.editor.build import Build
from warpwright.editor.markdown import code
from warpwright.facts.compiled import LaunchOccupancy, occupancies, spill_lines, with_compiled
from warpwright.facts.document import dims_text
from warpwright.facts.lifts import lift_words, percent, size_words
from warpwright.facts.model import Basis, Kernel

OLDER = "before the last edits"
MOST_LINES = 3
MOST_INSTANCES = 3
"""Kinds of instances that the hover tells apart: the rest are counted."""


def resource_words(analysis: Analysis, kernel: Kernel) -> str:
    """`sm_90: occupancy 75 % (registers), 40 registers, 4 KB shared`; "" where it was not compiled.

    What matters most is first, as an editor cuts a long line off. Of an older text nothing is said but what the
    compiler counted, and that it is older.
    """
    build = analysis.build
    if build is None:
        return ""
    said = [
        f"{arch}: {', '.join(_words(compiled, analysis.build_is_current))}"
        for arch, compiled in _by_architecture(analysis, build, kernel)
    ]
    return "; ".join(said) + ("" if analysis.build_is_current or not said else f" ({OLDER})")


def resource_lines(analysis: Analysis, kernel: Kernel) -> Iterator[str]:
    """The same as Markdown, each instance whole, and the occupancy of each launch."""
    build = analysis.build
    if build is None:
        return
    for arch, compiled in _by_architecture(analysis, build, kernel):
        yield f"\n**Compiled for {arch}** ({build.compiler}{'' if analysis.build_is_current else f', {OLDER}'})\n"
        said: dict[str, list[str]] = {}
        for each in sorted(compiled.compiled, key=lambda one: (-one.spill_bytes, -one.registers)):
            taken = (
                f"{each.registers} registers, {spill_words(each.spill_store_bytes, each.spill_load_bytes)}, "
                f"{each.stack_bytes:,} bytes of stack a thread; {each.shared_bytes:,} bytes of static shared memory, "
                f"{each.constant_bytes:,} of constant memory, {_barriers(each.barriers)} a block"
            )
            at = ", ".join(str(line.line) for line in spill_lines(compiled, each)[:MOST_LINES])
            where = f"; spills most at lines {at}" if at and analysis.build_is_current else ""
            said.setdefault(taken + where, []).append(each.name)
        yield from _instance_lines(said, len(compiled.compiled))
        if analysis.build_is_current:
            yield from _occupancy_lines(sorted(occupancies(compiled), key=lambda one: one.occupancy.fraction), compiled)


def _instance_lines(said: dict[str, list[str]], instances: int) -> Iterator[str]:
    """What is said, of which instances; those that take the same in one line, the worst first."""
    kinds = list(said.items())
    for taken, names in kinds[:MOST_INSTANCES]:
        more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
        yield f"- {f'{code(names[0])}{more}: ' if instances > 1 else ''}{taken}"
    if rest := sum(len(names) for _, names in kinds[MOST_INSTANCES:]):
        yield f"- {rest:,} more instance{'s' if rest != 1 else ''}, with no more spills"


def _occupancy_lines(found: list[LaunchOccupancy], kernel: Kernel) -> Iterator[str]:
    """One line for launches and instances that come out alike; the least occupancy first."""
    alike: dict[object, list[LaunchOccupancy]] = {}
    for each in found:
        alike.setdefault((each.launch.block, each.basis, each.footprint, each.occupancy), []).append(each)
    kinds = list(alike.values())
    for group in kinds[:MOST_INSTANCES]:
        yield _occupancy_line(group[0], len({each.resources.name for each in group}), len(kernel.compiled))
    if (rest := len(kinds) - MOST_INSTANCES) > 0:
        yield f"- {rest:,} more, with no lower occupancy"


def spill_words(stores: int, loads: int) -> str:
    """
    >>> spill_words(0, 0), spill_words(8, 16)
    ('no spills', 'spills: 8 bytes stored, 16 loaded')
    """
    return f"spills: {stores:,} bytes stored, {loads:,} loaded" if stores or loads else "no spills"


def _by_architecture(analysis: Analysis, build: Build, kernel: Kernel) -> Iterator[tuple[str, Kernel]]:
    for arch, resources in build.kernels.items():
        program = with_compiled(analysis.program, resources.values())
        found = next((each for each in program.kernels if each.span == kernel.span), None)
        if found is not None and found.compiled:
            yield arch, found


def _words(kernel: Kernel, is_current: bool) -> Iterator[str]:
    compiled = kernel.compiled
    found = list(occupancies(kernel)) if is_current else []
    if found:
        yield _occupancy_words(found)
    worst = max(compiled, key=lambda each: each.spill_bytes)
    if worst.spill_bytes:
        yield spill_words(worst.spill_store_bytes, worst.spill_load_bytes)
    least, most = (pick(each.registers for each in compiled) for pick in (min, max))
    instances = f" in {len(compiled)} instances" if len(compiled) > 1 else ""
    yield f"{_range(least, most)} registers{instances}"
    stack = max(each.stack_bytes for each in compiled)
    if stack:
        yield f"{size_words(stack)} stack"
    shared = max((each.shared_bytes for each in found), default=max(each.shared_bytes for each in compiled))
    if shared:
        yield f"{size_words(shared)} shared"


def _occupancy_words(found: list[LaunchOccupancy]) -> str:
    """The least, with what limits it and what of it was assumed, and the greatest where launches differ."""
    worst = min(found, key=lambda each: each.occupancy.fraction)
    best = max(each.occupancy.fraction for each in found)
    why = [] if worst.occupancy.fraction == 1 else [worst.occupancy.limiter]
    if worst.basis is not Basis.EXACT:
        why.append(f"block {dims_text(worst.launch.block)} assumed")
    least, most = percent(worst.occupancy.fraction), percent(best)
    share = least if least == most else f"{least} to {most}"
    return f"occupancy {share} %" + (f" ({', '.join(why)})" if why else "")


def _occupancy_line(found: LaunchOccupancy, alike: int, instances: int) -> str:
    now = found.occupancy
    more = f" and {alike - 1:,} more" if alike > 1 else ""
    name = f"{code(found.resources.name)}{more}, " if instances > 1 else ""
    block = f"block {dims_text(found.launch.block)}{', assumed' if found.basis is not Basis.EXACT else ''}"
    limit = f", limited by {' and '.join(now.limiters)}" if now.fraction < 1 else ""
    lifts = "".join(f"\n  - {lift_words(found.footprint, lift)}" for lift in found.lifts)
    blocks = f"{now.blocks} block{'s' if now.blocks != 1 else ''}, {now.warps} warps on a multiprocessor"
    return f"- occupancy {percent(now.fraction)} % ({name}{block}): {blocks}{limit}{lifts}"


def _range(least: int, most: int) -> str:
    return str(least) if least == most else f"{least} to {most}"


def _barriers(count: int) -> str:
    return f"{count} barrier{'s' if count != 1 else ''}"
