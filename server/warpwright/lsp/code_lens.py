"""textDocument/codeLens"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from warpwright.editor.actions import GOALS
from warpwright.editor.lens import Lens, lenses
from warpwright.lsp.convert import Ranges
from warpwright.lsp.guard import guarded

if TYPE_CHECKING:
    from warpwright.lsp.documents import Document
    from warpwright.lsp.server import Server


def register(server: Server) -> None:
    server.feature(types.TEXT_DOCUMENT_CODE_LENS, types.CodeLensOptions(resolve_provider=False))(code_lens)


@guarded(lambda: None)
async def code_lens(ls: Server, params: types.CodeLensParams) -> list[types.CodeLens] | None:
    document = ls.documents.get(params.text_document.uri)
    if document is None or not ls.documents.settings_of(document).code_lens:
        return None
    analysis = await ls.documents.analysed(document)
    ranges = Ranges(ls.encoding)
    return [_code_lens(document, lens, ranges) for lens in lenses(analysis)]


def _code_lens(document: Document, lens: Lens, ranges: Ranges) -> types.CodeLens:
    argument: dict[str, object] = {"uri": document.uri, "kernel": lens.kernel}
    if lens.command in GOALS:
        argument["preview"] = True
    command = types.Command(title=lens.title, command=lens.command, arguments=[argument] if lens.command else None)
    return types.CodeLens(range=ranges.of(lens.span), command=command)
