"""workspace/executeCommand: Explain a rule or a rewrite, without a network.

The argument is {"rule": its name} or, for the finding at a place, {"uri", "position"}. The result is {"status":
"shown" | "failed", "message", "page": the path of the Markdown or null}.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from warpwright.editor.actions import EXPLAIN_RULE
from warpwright.editor.report_file import written_text
from warpwright.lsp.documents import uri_of
from warpwright.lsp.kernel_command import argument_of, document_of, offset_of, or_failed
from warpwright.lsp.work import WorkError

if TYPE_CHECKING:
    from warpwright.lsp.server import Server

Json = dict[str, Any]


def register(server: Server) -> None:
    server.command(EXPLAIN_RULE)(or_failed(server, partial(explain_rule, server), _result))


async def explain_rule(ls: Server, params: types.ExecuteCommandParams) -> Json:
    """Open the page where the client can show a document; else say where it is. Raises WorkError."""
    from warpwright.editor.explain import explained, explanation

    argument = argument_of(params)
    name = str(argument["rule"]) if "rule" in argument else await _rule_at(ls, argument)
    about = await ls.documents.in_thread(lambda: explained(name))
    if about is None:
        raise WorkError(f"There is no rule or rewrite {name!r}.")
    page = await asyncio.to_thread(written_text, f"{about.name}.md", explanation(about))
    if page is None:
        raise WorkError("The page cannot be written to the cache; set WARPWRIGHT_CACHE_DIR.")
    where = f"The page of {about.name} is {page}."
    await ls.show(types.ShowDocumentParams(uri=uri_of(str(page)), take_focus=True), where)
    return _result("shown", where, str(page))


async def _rule_at(ls: Server, argument: Any) -> str:
    """The rule of the finding at a position, or else on its line."""
    document = document_of(ls, argument)
    analysis = await ls.documents.analysed(document)
    offset = offset_of(ls, document, argument.get("position"))
    if offset is not None:
        line = analysis.source.position(min(offset, len(analysis.source.data)))[0]
        findings = analysis.findings_here()
        here = [f for f in findings if f.span.start <= offset <= f.span.end]
        found = here or [f for f in findings if f.span.line <= line <= f.span.end_line]
        if found:
            return min(found, key=lambda f: f.span.end - f.span.start).rule
    raise WorkError("No finding at the cursor.")


def _result(status: str, message: str, page: str | None = None) -> Json:
    return {"status": status, "message": message, "page": page}
