"""workspace/didChangeWatchedFiles: a header that changed on disk changes what is known of the files that include it.

One that was created may be what any open document has looked for in vain, and a database of compile commands or a
project's settings change how all are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from warpwright.editor.project import NAME, PYPROJECT
from warpwright.lsp.background_compile import includes_changed
from warpwright.lsp.documents import path_of
from warpwright.lsp.project_problems import show_project_problems
from warpwright.lsp.publish_diagnostics import file_changed, refresh
from warpwright.toolchain.compile_commands import DATABASE

if TYPE_CHECKING:
    from warpwright.lsp.server import Server


def register(server: Server) -> None:
    server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)(did_change_watched_files)


def did_change_watched_files(ls: Server, params: types.DidChangeWatchedFilesParams) -> None:
    ls.workspace_changes.note(of_all=any(not change.uri.endswith(".cu") for change in params.changes))
    is_created = any(change.type == types.FileChangeType.Created for change in params.changes)
    of_all = any(change.uri.endswith((DATABASE, NAME, PYPROJECT)) for change in params.changes)
    if is_created or of_all:
        refresh(ls, ls.documents.mark_all())
        includes_changed(ls, ls.documents)
        show_project_problems(ls)
        return
    for change in params.changes:
        if ls.documents.get(change.uri) is None:
            file_changed(ls, path_of(change.uri))
            includes_changed(ls, ls.documents.includers(path_of(change.uri)))
