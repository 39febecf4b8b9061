"""What was found on this machine, as a page in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from warpwright.editor.markdown import prose
from warpwright.editor.parts import Part


def parts_page(parts: Sequence[Part]) -> str:
    """A table of all parts; below it, for each that is missing, what does not work and what to do.

    >>> print(parts_page([Part("GPU", True, "H200", "timing"), Part("model", False, "None.", "plans", "Get one.")]))
    # warpwright on this machine
    <BLANKLINE>
    | part | | |
    |---|---|---|
    | GPU | found | H200 |
    | model | **missing** | None. |
    <BLANKLINE>
    ## What is missing
    <BLANKLINE>
    - **model**: without it no plans. Get one.
    <BLANKLINE>
    """
    rows = [f"| {part.name} | {'found' if part.found else '**missing**'} | {prose(part.what)} |" for part in parts]
    page = ["# warpwright on this machine", "", "| part | | |", "|---|---|---|", *rows, ""]
    missing = [part for part in parts if not part.found]
    if missing:
        page += ["## What is missing", ""]
        page += [
            f"- **{part.name}**: without it no {prose(part.gives)}. {prose(part.advice)}".rstrip() for part in missing
        ]
        page.append("")
    return "\n".join(page)
