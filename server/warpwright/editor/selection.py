"""A selection inside a kernel: what of a search's steps it asks for."""

from __future__ import annotations

from collections.abc import Sequence

from warpwright.editor.rebase import line_edits
from warpwright.rewrites.base import Rewrite
from warpwright.rules.base import Finding
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.encoding import encoded
from warpwright.syntax.source import Span


def is_about(step: Rewrite, selection: Span, findings: Sequence[Finding] = ()) -> bool:
    """Whether a step edits the selected text, or is a fix of one of `findings` that is marked in it.

    `step` may be of a later version of the file: the selection is where the edits in between have put it. An edit that
    only touches an end of the selection is none of it, but for an insertion.
    """
    if step.source.path != selection.path:
        return False
    start, end = _carried(selection.start, selection.end, line_edits(selection.source.data, step.source.data))
    if any(_meets(edit, start, end) for edit in step.edits):
        return True
    return any(
        fix.rewrite == step.rewrite
        for finding in findings
        if finding.span.path == selection.path
        and finding.span.start < selection.end
        and selection.start < finding.span.end
        for fix in finding.fixes
    )


def _meets(edit: TextEdit, start: int, end: int) -> bool:
    if edit.start == edit.end:
        return start <= edit.start <= end
    return edit.start < end and start < edit.end


def _carried(start: int, end: int, edits: Sequence[TextEdit]) -> tuple[int, int]:
    """The span after the edits, with all that was written into it or over its ends."""
    before = inside = 0
    for edit in edits:
        grown = len(encoded(edit.new_text)) - (edit.end - edit.start)
        if edit.end < start:
            before += grown
        elif edit.start <= end:
            start, end = min(start, edit.start), max(end, edit.end)
            inside += grown
    return start + before, end + before + inside
