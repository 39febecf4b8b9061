"""initialize and initialized: the first settings, and what the server asks the client to tell it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lsprotocol import types

from warpwright.editor.project import NAME, PYPROJECT
from warpwright.lsp.configuration import pull_settings, take_settings
from warpwright.toolchain.compile_commands import DATABASE

if TYPE_CHECKING:
    from warpwright.lsp.server import Server

_VS_CODE = re.compile(
    r"\b(?:Visual Studio Code|code-server|Code|VSCodium|Cursor|Windsurf|Positron|Theia)\b", re.IGNORECASE
)
_WATCHED = ("**/*.{cuh,h,hpp,hh,inl,cu}", f"**/{DATABASE}", f"**/{NAME}", f"**/{PYPROJECT}")


def register(server: Server) -> None:
    server.feature(types.INITIALIZE)(initialize)
    server.feature(types.INITIALIZED)(initialized)


def initialize(ls: Server, params: types.InitializeParams) -> None:
    """`initializationOptions` holds the settings, or an object with them under `warpwright`."""
    ls.shows_images = _shows_images(params)
    options = params.initialization_options
    if isinstance(options, Mapping) and "warpwright" in options:
        options = options["warpwright"]
    take_settings(ls, options)


def initialized(ls: Server, params: types.InitializedParams) -> None:
    workspace = ls.client_capabilities.workspace
    watched = workspace.did_change_watched_files if workspace else None
    if watched and watched.dynamic_registration:
        ls.in_background(_watch(ls))
    ls.documents.get_ready()
    ls.in_background(pull_settings(ls))


def _shows_images(params: types.InitializeParams) -> bool:
    """Whether a hover shows an image whose address holds its data: VS Code and what is built from it, which say their
    application's name. Their renderer of Markdown is the capability; coc.nvim names the same one and shows text."""
    general = params.capabilities.general
    renderer = general.markdown.parser if general is not None and general.markdown is not None else ""
    return renderer == "marked" and params.client_info is not None and bool(_VS_CODE.search(params.client_info.name))


async def _watch(ls: Server) -> None:
    watchers = [types.FileSystemWatcher(glob_pattern=pattern) for pattern in _WATCHED]
    registration = types.Registration(
        id="warpwright-includes",
        method=types.WORKSPACE_DID_CHANGE_WATCHED_FILES,
        register_options=types.DidChangeWatchedFilesRegistrationOptions(watchers=watchers),
    )
    await ls.client_register_capability_async(types.RegistrationParams(registrations=[registration]))
