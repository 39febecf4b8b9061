"""initialize and initialized: the first settings, and what the server asks the client to tell it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from lsprotocol import types

from warpwright.editor.project import NAME, PYPROJECT
from warpwright.lsp.configuration import SECTION, pull_settings, take_settings
from warpwright.toolchain.compile_commands import DATABASE

if TYPE_CHECKING:
    from warpwright.lsp.server import Server

_VS_CODE = re.compile(
    r"\b(?:Visual Studio Code|code-server|Code|VSCodium|Cursor|Windsurf|Positron|Theia)\b", re.IGNORECASE
)
_IMPATIENT = re.compile(r"helix|eglot|emacs", re.IGNORECASE)
_WATCHED = ("**/*.{cuh,h,hpp,hh,inl,cu}", f"**/{DATABASE}", f"**/{NAME}", f"**/{PYPROJECT}")


def register(server: Server) -> None:
    server.feature(types.INITIALIZE)(initialize)
    server.feature(types.INITIALIZED)(initialized)


def initialize(ls: Server, params: types.InitializeParams) -> None:
    """`initializationOptions` holds the settings, or an object with them under `warpwright`."""
    if params.process_id is not None:
        ls.leave_with(params.process_id)
    ls.shows_images = _shows_images(params)
    ls.resolves_actions = _resolves_actions(params)
    options = params.initialization_options
    if isinstance(options, Mapping) and "warpwright" in options:
        options = options["warpwright"]
    take_settings(ls, options)


def initialized(ls: Server, params: types.InitializedParams) -> None:
    if wanted := list(_registrations(ls.client_capabilities)):
        ls.in_background(ls.client_register_capability_async(types.RegistrationParams(registrations=wanted)))
    ls.in_background(ls.documents.get_ready())
    ls.in_background(pull_settings(ls))


def _shows_images(params: types.InitializeParams) -> bool:
    """Whether a hover shows an image whose address holds its data: VS Code and what is built from it, which say their
    application's name. Their renderer of Markdown is the capability; coc.nvim names the same one and shows text."""
    general = params.capabilities.general
    renderer = general.markdown.parser if general is not None and general.markdown is not None else ""
    return renderer == "marked" and params.client_info is not None and bool(_VS_CODE.search(params.client_info.name))


def _resolves_actions(params: types.InitializeParams) -> bool:
    """Whether the client asks for the edit of an action that has none, keeps what it needs for that, and waits as long
    as verifying takes. Helix stands still meanwhile and gives up after 20 seconds, Emacs after 10."""
    text_document = params.capabilities.text_document
    known = text_document.code_action if text_document else None
    if known is None or not known.data_support or known.resolve_support is None:
        return False
    waits = params.client_info is None or not _IMPATIENT.match(params.client_info.name)
    return waits and "edit" in known.resolve_support.properties


def _registrations(capabilities: types.ClientCapabilities) -> Iterator[types.Registration]:
    """What the client is to tell the server of, where it can be asked for it: files on disk, changes of settings."""
    workspace = capabilities.workspace
    files = workspace.did_change_watched_files if workspace else None
    if files and files.dynamic_registration:
        watchers = [types.FileSystemWatcher(glob_pattern=pattern) for pattern in _WATCHED]
        options = types.DidChangeWatchedFilesRegistrationOptions(watchers=watchers)
        yield types.Registration("warpwright-includes", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
    settings = workspace.did_change_configuration if workspace else None
    if settings and settings.dynamic_registration:
        section = types.DidChangeConfigurationRegistrationOptions(section=SECTION)
        yield types.Registration("warpwright-settings", types.WORKSPACE_DID_CHANGE_CONFIGURATION, section)
