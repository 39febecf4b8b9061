"""workspace/configuration and workspace/didChangeConfiguration: the user's settings under `warpwright`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lsprotocol import types

from warpwright.editor.settings import parse_settings
from warpwright.lsp.background_compile import includes_changed
from warpwright.lsp.publish_diagnostics import refresh

if TYPE_CHECKING:
    from warpwright.lsp.server import Server

log = logging.getLogger(__name__)

SECTION = "warpwright"
_ANSWER_SECONDS = 10.0


def register(server: Server) -> None:
    server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)(did_change_configuration)


def did_change_configuration(ls: Server, params: types.DidChangeConfigurationParams) -> None:
    """A client that can be asked is asked; another sends its settings along."""
    if _can_be_asked(ls):
        ls.in_background(pull_settings(ls))
    else:
        settings = params.settings
        take_settings(ls, settings.get(SECTION) if isinstance(settings, Mapping) else settings)


async def pull_settings(ls: Server) -> None:
    if not _can_be_asked(ls):
        return
    asked = types.ConfigurationParams(items=[types.ConfigurationItem(section=SECTION)])
    try:
        answer = await asyncio.wait_for(ls.workspace_configuration_async(asked), _ANSWER_SECONDS)
    except TimeoutError:
        log.warning("the client did not send its settings; the present ones are kept")
        return
    if answer and answer[0] is not None:
        take_settings(ls, answer[0])


def take_settings(ls: Server, value: object) -> None:
    """Use what is right in `value` and say, in the log and to the user, what is wrong in it."""
    settings, wrong = parse_settings(value)
    for sentence in wrong:
        log.warning("%s", sentence)
    if wrong:
        ls.message(" ".join(wrong), types.MessageType.Warning)
    if ls.documents.set_settings(settings):
        refresh(ls, list(ls.documents))
        ls.refresh_marks()
        includes_changed(ls, ls.documents)


def _can_be_asked(ls: Server) -> bool:
    workspace = ls.client_capabilities.workspace
    return bool(workspace and workspace.configuration)
