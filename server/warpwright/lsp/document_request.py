"""What the commands on a document ask of their jobs: to fix all findings, to write a kernel that a comment asks for."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from warpwright.lsp.kernel_command import analysed, argument_of, document_of, offset_of
from warpwright.lsp.work import WorkError

if TYPE_CHECKING:
    from warpwright.lsp.documents import Document
    from warpwright.lsp.server import Server

Json = dict[str, Any]
DOCUMENT_TITLES = {"fixAll": "Fixing all findings", "generate": "Writing a kernel"}


async def document_request(ls: Server, goal: str, params: types.ExecuteCommandParams) -> tuple[Document, Json]:
    """The open document that an argument names, and the request for the job of that goal. Raises WorkError."""
    from warpwright.assist.comment_request import asked_at
    from warpwright.editor.formula_comment import formula_at

    argument = argument_of(params)
    document = document_of(ls, argument)
    analysis = await analysed(ls, document)
    request = ls.documents.request(document)
    if goal == "fixAll":
        rule = argument.get("rule")
        return document, {**request, "rule": str(rule) if rule is not None else None}
    offset = offset_of(ls, document, argument.get("position"))
    if offset is not None and formula_at(analysis.source, offset) is not None:
        return document, {**request, "formula_at": offset}
    asked = asked_at(analysis.source, offset) if offset is not None else None
    if asked is None:
        raise WorkError("Put the cursor on a comment outside functions that says what the kernel should do.")
    return document, {**request, "asked": asdict(asked)}
