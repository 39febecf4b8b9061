"""workspace/executeCommand `warpwright.applyFix`: a quick fix in a client that resolves no code actions, or waits too
briefly for it.

Its argument is the action's `data` with its `title`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from warpwright.editor.actions import APPLY_FIX
from warpwright.lsp.code_action_resolve import code_action_resolve
from warpwright.lsp.edits import APPLY_SECONDS, why_not_applied
from warpwright.lsp.kernel_command import argument_of
from warpwright.lsp.work import WorkError

if TYPE_CHECKING:
    from warpwright.lsp.server import Server


def register(server: Server) -> None:
    async def apply_fix(params: types.ExecuteCommandParams) -> None:
        await _apply_fix(server, params)

    server.command(APPLY_FIX)(apply_fix)


async def _apply_fix(ls: Server, params: types.ExecuteCommandParams) -> None:
    """Verify the fix and have the client apply it; where it is not applied, a message says why."""
    try:
        argument = dict(argument_of(params))
    except WorkError as error:
        ls.message(str(error), types.MessageType.Warning)
        return
    action = types.CodeAction(title=str(argument.pop("title", "")), data=argument)
    resolved = await code_action_resolve(ls, action)
    if resolved.edit is None:
        return
    refusal = await why_not_applied(ls, resolved.edit, resolved.title, APPLY_SECONDS)
    ls.message(
        f"{resolved.title}: not applied. {refusal}" if refusal else f"{resolved.title}.",
        types.MessageType.Warning if refusal else types.MessageType.Info,
    )
