"""codeAction/resolve: the edit of a quick fix, made and verified now that the user wants it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types

from warpwright.lsp.edits import TextChangedError, annotation_of, workspace_edit
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
    if action.edit is not None or action.command is not None or "target" not in data:
        return action
    if document is None or document.version != data.get("version"):
        return _refused(ls, action, "The document has changed since this was offered; ask again.")
    request = ls.documents.request(document)
    seconds = ls.documents.settings_of(document).verify_seconds
    try:
        answer = await _verified(ls, {**request, "target": data["target"]}, action.title, seconds)
        if not answer["edits"]:
            return _refused(ls, action, answer["reason"])
        action.edit = await workspace_edit(ls, answer, request["open"], annotation_of(answer, needs_confirmation=False))
    except StoppedError:
        return _refused(ls, action, "It was stopped before it was verified.")
    except (WorkError, TextChangedError) as error:
        return _refused(ls, action, str(error))
    action.title = f"{action.title} [{answer['badge']}]"
    return action


async def _verified(ls: Server, request: dict[str, Any], title: str, seconds: float) -> dict[str, Any]:
    async def verified(progress: Progress) -> dict[str, Any]:
        answer: dict[str, Any] = await ls.fixes.run("fix", request, progress, seconds)
        return answer

    return await with_progress(ls, f"Verifying: {title}", None, verified)


def _refused(ls: Server, action: types.CodeAction, reason: str) -> types.CodeAction:
    """A client has chosen the action already, so `disabled` alone would go unseen."""
    ls.message(f"{action.title}: not applied. {reason}", types.MessageType.Warning)
    action.disabled = types.CodeActionDisabled(reason=reason)
    return action
