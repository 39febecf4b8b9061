"""textDocument/definition and references, between a kernel and its launches; callHierarchy from a kernel to them.

For other names the answer is empty: they are clangd's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types

from warpwright.editor.navigation import kernel_at, launches
from warpwright.lsp.convert import Ranges, position
from warpwright.lsp.documents import uri_of
from warpwright.lsp.guard import guarded

if TYPE_CHECKING:
    from warpwright.facts.model import Kernel
    from warpwright.lsp.documents import Document
    from warpwright.lsp.server import Server
    from warpwright.syntax.source import Span


def register(server: Server) -> None:
    server.feature(types.TEXT_DOCUMENT_DEFINITION)(definition)
    server.feature(types.TEXT_DOCUMENT_REFERENCES)(references)
    server.feature(types.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY)(prepare_call_hierarchy)
    server.feature(types.CALL_HIERARCHY_INCOMING_CALLS)(incoming_calls)
    server.feature(types.CALL_HIERARCHY_OUTGOING_CALLS)(outgoing_calls)


@guarded(lambda: None)
async def definition(ls: Server, params: types.DefinitionParams) -> list[types.Location] | None:
    """Of a launch, the kernel."""
    _, kernel = await _kernel(ls, params.text_document.uri, params.position)
    return [_location(kernel.name_span, Ranges(ls.encoding))] if kernel is not None and kernel.node is not None else []


@guarded(lambda: None)
async def references(ls: Server, params: types.ReferenceParams) -> list[types.Location] | None:
    """Of a kernel, its launches."""
    _, kernel = await _kernel(ls, params.text_document.uri, params.position)
    if kernel is None:
        return []
    own = [kernel.name_span] if params.context.include_declaration and kernel.node is not None else []
    ranges = Ranges(ls.encoding)
    return [_location(span, ranges) for span in (*own, *(span for _, span in launches(kernel)))]


@guarded(lambda: None)
async def prepare_call_hierarchy(
    ls: Server, params: types.CallHierarchyPrepareParams
) -> list[types.CallHierarchyItem] | None:
    document, kernel = await _kernel(ls, params.text_document.uri, params.position)
    if document is None or kernel is None or kernel.node is None:
        return None
    ranges = Ranges(ls.encoding)
    item = types.CallHierarchyItem(
        kernel.name,
        types.SymbolKind.Function,
        uri_of(kernel.span.path),
        ranges.of(kernel.span),
        ranges.of(kernel.name_span),
        data={"document": document.uri, "kernel": kernel.name},
    )
    return [item]


@guarded(lambda: None)
async def incoming_calls(
    ls: Server, params: types.CallHierarchyIncomingCallsParams
) -> list[types.CallHierarchyIncomingCall] | None:
    """The launches of a kernel, each with where it stands."""
    data: dict[str, Any] = params.item.data if isinstance(params.item.data, dict) else {}
    document = ls.documents.get(str(data.get("document", "")))
    kernel = (await ls.documents.analysed(document)).program.kernel(str(data.get("kernel"))) if document else None
    if kernel is None:
        return None
    ranges = Ranges(ls.encoding)
    return [
        types.CallHierarchyIncomingCall(
            types.CallHierarchyItem(
                f"{kernel.name}<<<...>>>, line {span.line}",
                types.SymbolKind.Event,
                uri_of(span.path),
                ranges.of(span),
                ranges.of(span),
            ),
            [ranges.of(span)],
        )
        for _, span in launches(kernel)
    ]


@guarded(lambda: None)
async def outgoing_calls(
    ls: Server, params: types.CallHierarchyOutgoingCallsParams
) -> list[types.CallHierarchyOutgoingCall] | None:
    """None: what a kernel calls is clangd's to say."""
    return []


async def _kernel(ls: Server, uri: str, at: types.Position) -> tuple[Document | None, Kernel | None]:
    document = ls.documents.get(uri)
    if document is None:
        return None, None
    analysis = await ls.documents.analysed(document)
    if analysis.source.data != document.text.data:
        return document, None
    return document, kernel_at(analysis, document.text.offset(position(at), ls.encoding))


def _location(span: Span, ranges: Ranges) -> types.Location:
    return types.Location(uri_of(span.path), ranges.of(span))
