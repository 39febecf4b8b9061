"""workspace/configuration, workspace/didChangeConfiguration and workspace/didChangeWorkspaceFolders: what the user set
under `warpwright`, for each folder."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from warpwright.editor.settings import Settings, parse_settings
from warpwright.lsp.background_compile import includes_changed
from warpwright.lsp.documents import path_of
from warpwright.lsp.folders import Folders
from warpwright.lsp.project_problems import show_project_problems
from warpwright.lsp.publish_diagnostics import refresh

if TYPE_CHECKING:
    from warpwright.lsp.server import Server

log = logging.getLogger(__name__)

SECTION = "warpwright"
_ANSWER_SECONDS = 10.0


def register(server: Server) -> None:
    server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)(did_change_configuration)
    server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)(did_change_workspace_folders)


def did_change_configuration(ls: Server, params: types.DidChangeConfigurationParams) -> None:
    """A client that can be asked is asked; another sends its settings along."""
    if _can_be_asked(ls):
        ls.in_background(pull_settings(ls))
    else:
        settings = params.settings
        take_settings(ls, settings.get(SECTION) if isinstance(settings, Mapping) else settings)


def did_change_workspace_folders(ls: Server, params: types.DidChangeWorkspaceFoldersParams) -> None:
    """A folder that came has settings of its own; files of one that went have those of no folder."""
    _use(ls, Folders(ls.documents.folders.everywhere, _of_each(ls, ls.documents.folders)))
    ls.in_background(pull_settings(ls))


async def pull_settings(ls: Server) -> None:
    if not _can_be_asked(ls):
        return
    folders = roots(ls)
    asked = [types.ConfigurationItem(section=SECTION)]
    asked += [types.ConfigurationItem(scope_uri=uri, section=SECTION) for uri in folders.values()]
    try:
        params = types.ConfigurationParams(items=asked)
        answer = await asyncio.wait_for(ls.workspace_configuration_async(params), _ANSWER_SECONDS)
    except TimeoutError:
        log.warning("the client did not send its settings; the present ones are kept")
        return
    if answer and answer[0] is not None:
        take_settings(ls, answer[0], dict(zip(folders, answer[1:], strict=False)))


def take_settings(ls: Server, value: object, of_folders: Mapping[Path, object] | None = None) -> None:
    """Use what is right in the settings, those of all folders and of each, and say, in the log and to the user, what is
    wrong in them; what was said the last time is not said again."""
    settings, wrong = parse_settings(value)
    each: dict[Path, Settings] = {}
    for folder in roots(ls):
        own, wrong_here = parse_settings(given) if (given := (of_folders or {}).get(folder)) else (settings, ())
        each[folder] = own.rooted(folder)
        wrong += wrong_here
    wrong = tuple(dict.fromkeys(wrong))
    if wrong and wrong != ls.wrong_settings:
        for sentence in wrong:
            log.warning("%s", sentence)
        ls.message(" ".join(wrong), types.MessageType.Warning)
    ls.wrong_settings = wrong
    _use(ls, Folders(settings, each))


def roots(ls: Server) -> dict[Path, str]:
    """The folders of the workspace with their addresses."""
    folders = [folder.uri for folder in ls.workspace.folders.values()]
    if not folders and ls.workspace.root_uri:
        folders = [ls.workspace.root_uri]
    return {path: uri for uri in folders if (path := Path(path_of(uri))).is_absolute()}


def _of_each(ls: Server, before: Folders) -> dict[Path, Settings]:
    return {folder: before.settings.get(folder, before.everywhere.rooted(folder)) for folder in roots(ls)}


def _use(ls: Server, folders: Folders) -> None:
    if ls.documents.set_folders(folders):
        refresh(ls, list(ls.documents))
        includes_changed(ls, ls.documents)
        ls.workspace_changes.note(of_all=False)
    show_project_problems(ls)


def _can_be_asked(ls: Server) -> bool:
    workspace = ls.client_capabilities.workspace
    return bool(workspace and workspace.configuration)
