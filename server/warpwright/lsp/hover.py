"""textDocument/hover"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from lsprotocol import types

from warpwright.editor.hover import hover as hover_at
from warpwright.editor.hover import image_picture, text_picture
from warpwright.editor.text import carried_offset
from warpwright.lsp.convert import Ranges, position
from warpwright.lsp.guard import guarded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warpwright.editor.analysis import Analysis
    from warpwright.lsp.documents import Document
    from warpwright.lsp.server import Server
    from warpwright.toolchain.machine_lines import MachineLines

# A hover waits this long for the analysis of the newest text; then the last one answers, where its text still stands.
# The first analysis of a document is waited for: there is nothing else to say.
PATIENCE_SECONDS = 0.03
_OLDER = "\n\n*Of the text before the last edit; the new one is still being analysed.*"


def register(server: Server) -> None:
    server.feature(types.TEXT_DOCUMENT_HOVER)(hover)


@guarded(lambda: None)
async def hover(ls: Server, params: types.HoverParams) -> types.Hover | None:
    document = ls.documents.get(params.text_document.uri)
    if document is None:
        return None
    offset = document.text.offset(position(params.position), ls.encoding)
    data = document.text.data
    analysis = await _at_hand(ls, document)
    if analysis is None:
        return None
    carried = carried_offset(analysis.source.data, data, offset)
    is_newest = analysis.source.data == document.text.data
    if carried is None:
        return None
    machine = _machine_lines(ls, document) if is_newest else ()
    found = hover_at(analysis, carried, image_picture if ls.shows_images else text_picture, machine)
    if found is None:
        return None
    return types.Hover(
        contents=types.MarkupContent(
            types.MarkupKind.Markdown, found.markdown if is_newest else found.markdown + _OLDER
        ),
        range=Ranges(ls.encoding).of(found.span) if is_newest else None,
    )


def _machine_lines(ls: Server, document: Document) -> Iterator[MachineLines]:
    """What the present text became, alone and as a part of what includes it."""
    for each in (document, *ls.documents.includers(document.path)):
        if each.build is not None and each.build.lines is not None and each.build.is_of(each.text.data):
            yield each.build.lines


async def _at_hand(ls: Server, document: Document) -> Analysis | None:
    if document.analysis is None:
        return await ls.documents.analysed(document)
    try:
        return await asyncio.wait_for(asyncio.shield(ls.documents.analysed(document)), PATIENCE_SECONDS)
    except TimeoutError:
        return document.analysis
