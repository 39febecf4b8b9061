"""codeAction/resolve: the edit of a quick fix, made and verified now that the user wants it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types

from warpwright.editor.actions import FixTarget
from warpwright.editor.setting_values import BACKGROUND
from warpwright.lsp.edits import TextChangedError, annotation_of, workspace_edit
from warpwright.lsp.fix_at_once import edit_at_once, verify_behind
from warpwright.lsp.progress import StoppedError, with_progress
from warpwright.lsp.work import WorkError
from warpwright.progress import Progress

if TYPE_CHECKING:
    from warpwright.lsp.server import Server


def register(server: Server) -> None:
    server.feature(types.CODE_ACTION_RESOLVE)(code_action_resolve)


async def code_action_resolve(ls: Server, action: types.CodeAction) -> types.CodeAction:
    """The action with its edit and the badge it earned; where it earned none, disabled with the reason."""
    data = action.data if isinstance(action.data, dict) else {}
    document = ls.documents.get(str(data.get("uri")))
    if action.edit is not None or action.command is not None or not data.keys() & {"target", "fix_all"}:
        return action
    if document is None or document.version != data.get("version"):
        return _refused(ls, action, "The document has changed since this was offered; ask again.")
    request = ls.documents.request(document)
    settings = ls.documents.settings_of(document)
    try:
        if "fix_all" in data:
            return await _all_fixed(ls, action, {**request, "rule": None}, settings.optimize_seconds)
        if settings.verify_fixes == BACKGROUND:
            action.edit = await edit_at_once(ls, document, FixTarget(**data["target"]))
        if action.edit is not None:
            asked = {**request, "target": data["target"]}
            ls.in_background(verify_behind(ls, asked, action.title, settings.verify_seconds))
            return action
        answer = await _verified(
            ls, "fix", {**request, "target": data["target"]}, action.title, settings.verify_seconds
        )
        if not answer["edits"]:
            return _refused(ls, action, answer["reason"])
        action.edit = await workspace_edit(ls, answer, request["open"], annotation_of(answer, needs_confirmation=False))
    except StoppedError:
        return _refused(ls, action, "It was stopped before it was verified.")
    except (WorkError, TextChangedError) as error:
        return _refused(ls, action, str(error))
    action.title = f"{action.title} [{answer['badge']}]"
    return action


async def _all_fixed(ls: Server, action: types.CodeAction, request: dict[str, Any], seconds: float) -> types.CodeAction:
    """With nothing to fix it stays without an edit, and says nothing: it may be asked for with every save."""
    answer = await _verified(ls, "fixAll", request, action.title, seconds)
    if answer["choices"]:
        choice = answer["choices"][0]
        annotation = annotation_of(choice, needs_confirmation=False)
        action.edit = await workspace_edit(ls, choice, request["open"], annotation)
    return action


async def _verified(ls: Server, job: str, request: dict[str, Any], title: str, seconds: float) -> dict[str, Any]:
    async def verified(progress: Progress) -> dict[str, Any]:
        answer: dict[str, Any] = await ls.fixes.run(job, request, progress, seconds)
        return answer

    return await with_progress(ls, f"Verifying: {title}", None, verified)


def _refused(ls: Server, action: types.CodeAction, reason: str) -> types.CodeAction:
    """A client has chosen the action already, so `disabled` alone would go unseen."""
    ls.message(f"{action.title}: not applied. {reason}", types.MessageType.Warning)
    action.disabled = types.CodeActionDisabled(reason=reason)
    return action
