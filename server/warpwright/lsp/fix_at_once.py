"""A quick fix that keeps the results, applied at once and verified behind that, where the setting asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types

from warpwright.editor.actions import FixTarget, find_target, propose_fix
from warpwright.lsp.convert import to_edits
from warpwright.lsp.edits import edit_of_files
from warpwright.lsp.progress import StoppedError, with_progress
from warpwright.lsp.work import WorkError
from warpwright.progress import Progress
from warpwright.rewrites.base import Declined

if TYPE_CHECKING:
    from warpwright.lsp.documents import Document
    from warpwright.lsp.server import Server


async def edit_at_once(ls: Server, document: Document, target: FixTarget) -> types.WorkspaceEdit | None:
    """The edit of a safe fix of the document's present text; None of one that may change results, or that edits
    another file: those are verified first."""
    analysis = await ls.documents.analysed(document)
    if analysis.source.data != document.text.data:
        return None
    finding = find_target(analysis, target)
    if finding is None or not any(fix.safe for fix in finding.fixes if fix.rewrite == target.rewrite):
        return None
    made = await ls.documents.in_thread(lambda: propose_fix(analysis, finding, target.rewrite))
    if isinstance(made, Declined) or not made.safe or made.source.path != document.path:
        return None
    edits = to_edits(document.text, made.edits, ls.encoding)
    return edit_of_files(ls, [(document.uri, document.version, edits)])


async def verify_behind(ls: Server, request: dict[str, Any], title: str, seconds: float) -> None:
    """Verify what was applied, by the text before it. The user hears of it, most of all where it is refuted."""

    async def verified(progress: Progress) -> dict[str, Any]:
        answer: dict[str, Any] = await ls.fixes.run("fix", request, progress, seconds)
        return answer

    try:
        answer = await with_progress(ls, f"Verifying: {title}", None, verified)
    except StoppedError:
        ls.message(f"{title}: applied, and not verified: that was stopped.", types.MessageType.Warning)
    except WorkError as error:
        ls.message(f"{title}: applied, and not verified: {error}", types.MessageType.Warning)
    else:
        if answer["edits"]:
            ls.message(f"{title}: verified [{answer['badge']}]", types.MessageType.Info)
        else:
            ls.message(f"{title}: did not pass verification; undo it. {answer['reason']}", types.MessageType.Warning)
