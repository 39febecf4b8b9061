"""Machine code over its source as Markdown, for editors that show no HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from warpwright.editor.machine.listing import Listing, function_name, remarks, summary
from warpwright.editor.markdown import code, prose
from warpwright.toolchain.machine_view import Step

_COLUMN = 60


def machine_markdown(listings: Sequence[Listing], *, ptx: bool = False) -> str:
    """Each kernel with what there is to say of it, and its listing in a block of code; `ptx` in place of SASS."""
    return "\n".join(line for listed in listings for line in _kernel(listed, ptx))


def _kernel(listed: Listing, ptx: bool) -> Iterator[str]:
    flags = f" {code(' '.join(listed.flags))}" if listed.flags else ""
    yield f"# {code(listed.kernel.name)}, {listed.arch}"
    yield f"\nCompiled by {listed.compiler}{flags}.\n"
    yield from (f"- {prose(sentence)}" for sentence in summary(listed.kernel))
    body = list(_listing(listed, ptx))
    fence = "`" * max(3, 1 + max((len(run) for line in body for run in re.findall("`+", line)), default=0))
    yield from ("", f"{fence}text", *body, fence, "")


def _listing(listed: Listing, ptx: bool) -> Iterator[str]:
    for block in listed.blocks:
        yield f"{block.line:>5}  {block.text}"
        if ptx:
            yield from (f"         {each.row:>6}  {each.text}" for each in block.ptx)
        else:
            yield from map(_step, block.steps)
    if not ptx:
        for function, steps in listed.rest:
            yield f"       of no line, in {function_name(function) or listed.kernel.name}"
            yield from map(_step, steps)


def _step(step: Step) -> str:
    text = f"{step.instruction.offset:04x}  {step.instruction.text}"
    said = ", ".join(remarks(step))
    return f"           {text:<{_COLUMN}}  {said}".rstrip()
