"""textDocument/inlayHint"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from warpwright.editor.inlay import HOT, Hint, hints
from warpwright.editor.setting_values import ONLY_HOT
from warpwright.lsp.convert import Ranges, position
from warpwright.lsp.guard import guarded

if TYPE_CHECKING:
    from warpwright.lsp.server import Server


def register(server: Server) -> None:
    server.feature(types.TEXT_DOCUMENT_INLAY_HINT)(inlay_hint)


@guarded(lambda: None)
async def inlay_hint(ls: Server, params: types.InlayHintParams) -> list[types.InlayHint] | None:
    """What wasteful accesses of the newest text cost."""
    document = ls.documents.get(params.text_document.uri)
    shown = ls.documents.settings_of(document).inlay_hints if document is not None else False
    if document is None or not shown:
        return None
    analysis = await ls.documents.analysed(document)
    if analysis.source.data != document.text.data:
        return None
    start, end = (document.text.offset(position(p), ls.encoding) for p in (params.range.start, params.range.end))
    ranges = Ranges(ls.encoding)
    least = HOT if shown == ONLY_HOT else 0.0
    return [_inlay_hint(hint, ranges) for hint in hints(analysis, start, end, least)]


def _inlay_hint(hint: Hint, ranges: Ranges) -> types.InlayHint:
    why = types.MarkupContent(types.MarkupKind.Markdown, hint.why) if hint.why else None
    return types.InlayHint(position=ranges.of(hint.span).end, label=hint.words, tooltip=why, padding_left=True)
