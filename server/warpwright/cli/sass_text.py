"""Machine code for people: each source line, then the instructions that it became."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath

import click

from warpwright.cli.findings_text import printable
from warpwright.editor.machine.listing import LineBlock, Listing, function_name, mark_label, remarks, summary
from warpwright.toolchain.machine_view import Mark, Step
from warpwright.toolchain.opcodes import Family

_REMARK_COLUMN = 64
_COLOURS = {
    Mark.SPILL: "red", Mark.LOCAL: "red", Mark.VARIABLE: "yellow", Mark.FP64: "magenta", Mark.TENSOR: "green",
    Mark.WIDE: "green", Mark.CALL: "yellow", Mark.GENERIC: "yellow",
}  # fmt: skip
_BRANCHES = {Family.CONTROL, Family.BARRIER}


def sass_text(listed: Listing, *, ptx: bool = False, line: int | None = None) -> str:
    """One kernel; with `ptx` its PTX in place of its machine code, with `line` that line alone."""
    out = [*_head(listed, line is None), ""]
    path = ""
    for block in _chosen(listed, line):
        if block.path != path:
            path = block.path
            if len({each.path for each in listed.blocks}) > 1:
                out.append(click.style(printable(path), bold=True))
        out += _block(listed, block, ptx)
    if line is None and not ptx:
        for function, steps in listed.rest:
            name = function_name(function) or listed.kernel.name
            out.append(click.style(f"      of no line, in {printable(name)}", bold=True))
            out += _instructions(listed, steps, None)
    return "\n".join(out)


def _head(listed: Listing, whole: bool) -> Iterator[str]:
    flags = f" {' '.join(listed.flags)}" if listed.flags else ""
    name = click.style(printable(listed.kernel.name), bold=True)
    yield f"{name}  {listed.arch}, {listed.compiler}{printable(flags)}"
    if whole:
        yield from (f"  {sentence}" for sentence in summary(listed.kernel))


def _chosen(listed: Listing, line: int | None) -> list[LineBlock]:
    """The blocks to show. Of one line also what was inlined there, which stands at lines of its own."""
    if line is None:
        return list(listed.blocks)
    main = next(iter(listed.sources))
    chosen = []
    for block in listed.blocks:
        steps = tuple(s for s in block.steps if (main, line) in listed.places(s.instruction.places))
        ptx = tuple(p for p in block.ptx if (main, line) in listed.places(p.places))
        if steps or ptx:
            chosen.append(LineBlock(block.path, block.line, block.text, steps, ptx))
    return chosen


def _block(listed: Listing, block: LineBlock, ptx: bool) -> Iterator[str]:
    number = click.style(f"{block.line:>4}", fg="blue")
    yield f"{number}  {click.style(printable(block.text), bold=True)}"
    if ptx:
        for each in block.ptx:
            label = f"{click.style(each.label, fg='cyan')}:  " if each.label else ""
            yield f"      {click.style(f'{each.row:>6}', dim=True)}  {label}{each.text}"
    else:
        yield from _instructions(listed, block.steps, (block.path, block.line))


def _instructions(listed: Listing, steps: Sequence[Step], place: tuple[str, int] | None) -> Iterator[str]:
    for step in steps:
        each = step.instruction
        if each.label:
            yield f"      {click.style(f'{each.label}:', fg='cyan')}"
        remark = ", ".join(_remarks(step))
        callers = [
            f"{PurePath(path).name}:{line}" for path, line in listed.places(each.places) if (path, line) != place
        ]
        if callers and place is not None:
            inlined = click.style(f"inlined at {callers[0]}", dim=True)
            remark = f"{remark}, {inlined}" if remark else inlined
        text = f"{each.offset:04x}".rjust(6)
        space = " " * max(2, _REMARK_COLUMN - len(each.text)) if remark else ""
        yield f"      {click.style(text, dim=True)}  {_instruction(step)}{space}{remark}"


def _instruction(step: Step) -> str:
    text = step.instruction.text
    if Mark.NEVER in step.marks:
        return click.style(text, dim=True)
    return click.style(text, fg="cyan") if step.family in _BRANCHES else text


def _remarks(step: Step) -> Iterable[str]:
    colours = {mark_label(step, mark): _COLOURS.get(mark) for mark in step.marks}
    for words in remarks(step):
        colour = colours.get(words)
        yield click.style(words, fg=colour) if colour else words
