"""textDocument/documentSymbol"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from warpwright.editor.navigation import Symbol, symbols
from warpwright.lsp.convert import Ranges
from warpwright.lsp.guard import guarded

if TYPE_CHECKING:
    from warpwright.lsp.server import Server


def register(server: Server) -> None:
    server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL, types.DocumentSymbolOptions(label="CUDA"))(document_symbol)


@guarded(lambda: None)
async def document_symbol(ls: Server, params: types.DocumentSymbolParams) -> list[types.DocumentSymbol] | None:
    """Kernels and launches."""
    document = ls.documents.get(params.text_document.uri)
    if document is None:
        return None
    ranges = Ranges(ls.encoding)
    return [_symbol(symbol, ranges) for symbol in symbols(await ls.documents.analysed(document))]


def _symbol(symbol: Symbol, ranges: Ranges) -> types.DocumentSymbol:
    kind = types.SymbolKind.Event if symbol.is_launch else types.SymbolKind.Function
    return types.DocumentSymbol(
        name=symbol.name,
        detail=symbol.detail,
        kind=kind,
        range=ranges.of(symbol.span),
        selection_range=ranges.of(symbol.name_span),
    )
