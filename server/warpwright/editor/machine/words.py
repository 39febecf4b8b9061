"""What a line became, in words: for a hover, and for whatever else has little room."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from warpwright.editor.markdown import code
from warpwright.toolchain.machine_lines import LineCode, MachineLines, Variant
from warpwright.toolchain.machine_view import MachineAccess, Mark

_MOST_VARIANTS = 2
_MOST_NAMES = 3
_MOST_CODE_LINES = 4
_SAID_ELSEWHERE = {Mark.FP64, Mark.CALL, Mark.WIDE}


def line_markdown(lines: MachineLines, file: str, line: int) -> str:
    """What the compiler made of a line, as Markdown of some ten lines; "" where it made nothing of it."""
    variants = lines.at(file, line)
    parts = [_variant_markdown(lines, variant, len(variants) > 1) for variant in variants[:1]]
    for variant in variants[1:_MOST_VARIANTS]:
        said = "; ".join([counts_words(variant.code), *notable(variant.code)])
        parts.append(f"In {_names(variant.kernels)}: {said}")
    left = sum(len(variant.kernels) for variant in variants[_MOST_VARIANTS:]) + lines.others.get((file, line), 0)
    if left:
        parts.append(f"*{_count(left, 'other instance')} of the kernel: Show SASS has them.*")
    return "\n\n".join(parts)


def _variant_markdown(lines: MachineLines, variant: Variant, is_named: bool) -> str:
    one = variant.code
    of = f" in {_names(variant.kernels)}" if is_named or len(variant.kernels) > 1 else ""
    text = [f"**Machine code** for {code(lines.arch)}{of}: {counts_words(one)}"]
    words = list(notable(one))
    text += ["", *(f"- {each}" for each in words)] if words else []
    shown = one.shown[:_MOST_CODE_LINES]
    if shown:
        left = one.sass - len(shown)
        text += ["", "```text", *(each.replace("`", "") for each in shown)]
        text += [f"… {left:,} more: Show SASS has all", "```"] if left else ["```"]
    return "\n".join(text)


def counts_words(one: LineCode) -> str:
    """`14 SASS instructions, 6 of them of functions inlined here, from 9 of PTX`."""
    inlined = f", {one.inlined:,} of them of functions inlined here" if one.inlined else ""
    ptx = f", from {one.ptx:,} of PTX" if one.ptx else ""
    return f"**{_count(one.sass, 'SASS instruction')}**{inlined}{ptx}"


def notable(one: LineCode) -> Iterator[str]:
    """What is worth knowing of a line's instructions: one phrase for each memory, and one each for the rest."""
    by_space: dict[str, list[str]] = {}
    for (space, kind), widths in widths_by_kind(one.accesses).items():
        by_space.setdefault(space, []).append(access_words(space, kind, widths))
    yield from ("; ".join(words) for words in by_space.values())
    marks = dict(one.marks)
    if Mark.FP64 in marks:
        yield f"{marks[Mark.FP64]:,} in double precision: {', '.join(one.doubles[:_MOST_CODE_LINES])}"
    if Mark.CALL in marks:
        functions = ", ".join(code(each) if each else "through a register" for each in one.calls[:_MOST_NAMES])
        yield f"{_count(marks[Mark.CALL], 'call')}: {functions}"
    others = [(mark, count) for mark, count in marks.items() if mark not in _SAID_ELSEWHERE]
    if others:
        yield ", ".join(f"{count:,} {mark_words(mark)}" for mark, count in others)


def access_words(space: str, kind: str, widths: Iterable[tuple[int, int]]) -> str:
    """`12 global loads: 4 bytes a lane`, `5 shared loads: 4 of 4 bytes a lane, 1 of 16 (128-bit)`.

    >>> access_words("global", "load", [(4, 12)])
    '12 global loads: 4 bytes a lane'
    >>> access_words("shared", "store", [(4, 4), (16, 1)])
    '5 shared stores: 4 of 4 bytes a lane, 1 of 16 (128-bit)'
    """
    widths = sorted(widths)
    count = sum(count for _, count in widths)
    total = _count(count, f"{space} {kind}") if space != "generic" else f"{_count(count, kind)} at generic addresses"
    if len(widths) == 1:
        width = widths[0][0]
        return f"{total}: {width} byte{'s' if width != 1 else ''} a lane{_bits(width)}"
    first, *rest = [(width, count) for width, count in widths]
    parts = [f"{first[1]:,} of {first[0]} byte{'s' if first[0] != 1 else ''} a lane"]
    parts += [f"{count:,} of {width}{_bits(width)}" for width, count in rest]
    return f"{total}: {', '.join(parts)}"


def mark_words(mark: Mark) -> str:
    """A mark behind a count."""
    return {
        Mark.SPILL: "spilled to or from local memory",
        Mark.VARIABLE: "to or from a variable in local memory",
        Mark.LOCAL: "to or from local memory",
        Mark.TENSOR: "on the tensor cores",
        Mark.GENERIC: "at a generic address",
        Mark.NEVER: "never executed",
    }.get(mark, mark.value)


def widths_by_kind(accesses: Iterable[tuple[MachineAccess, int]]) -> dict[tuple[str, str], list[tuple[int, int]]]:
    """(width, count) of each kind of access."""
    found: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for access, count in accesses:
        found.setdefault((access.space, access.kind), []).append((access.width, count))
    return found


def _bits(width: int) -> str:
    return f" ({8 * width}-bit)" if width >= 16 else ""


def _names(kernels: Iterable[str]) -> str:
    names = list(kernels)
    shown = ", ".join(code(name) for name in names[:_MOST_NAMES])
    return shown + (f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else "")


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' if count != 1 else ''}"
