"""Where pygls's own protocol is not what a client that misbehaves, or a long command, needs.

- Document text is ours (`editor.text`): pygls ends lines at form feeds, and fails on changes to what is not open.
- A command is an async handler that sees its progress token, so that `$/cancelRequest` stops it. Its progress can be
  cancelled from its arrival on.
- What is sent is UTF-8, whatever bytes the files hold that it tells of.
- A request that cannot be read is answered with an error instead of not at all.
- `exit` and the end of input leave the loop with a status; a cancel that comes too late is nothing to report.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams
from pygls.protocol import LanguageServerProtocol
from pygls.protocol.language_server import lsp_method

from warpwright.syntax.encoding import shown_in

CommandHandler = Callable[[types.ExecuteCommandParams], Awaitable[object]]


class Protocol(LanguageServerProtocol):
    """pygls's protocol with the methods above replaced; features are called as pygls calls them."""

    exit_status: int | None = None

    def structure_message(self, data: dict[str, Any]) -> Any:
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "id" in data and "method" in data:
                self._send_response(data["id"], None, error.to_response_error())
            raise

    def _serialize_message(self, data: Any) -> dict[str, Any]:
        message: dict[str, Any] = shown_in(super()._serialize_message(data))
        return message

    def _handle_cancel_notification(self, msg_id: int | str) -> None:
        if msg_id in self._request_futures:
            super()._handle_cancel_notification(msg_id)

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        self.fm.features[types.TEXT_DOCUMENT_DID_OPEN](params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        self.fm.features[types.TEXT_DOCUMENT_DID_CHANGE](params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        self.fm.features[types.TEXT_DOCUMENT_DID_CLOSE](params)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def lsp_notebook_document__did_open(self, params: types.DidOpenNotebookDocumentParams) -> None:
        self.fm.features[types.NOTEBOOK_DOCUMENT_DID_OPEN](params)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def lsp_notebook_document__did_change(self, params: types.DidChangeNotebookDocumentParams) -> None:
        self.fm.features[types.NOTEBOOK_DOCUMENT_DID_CHANGE](params)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def lsp_notebook_document__did_close(self, params: types.DidCloseNotebookDocumentParams) -> None:
        self.fm.features[types.NOTEBOOK_DOCUMENT_DID_CLOSE](params)

    @lsp_method(types.WORKSPACE_EXECUTE_COMMAND)
    async def lsp_workspace__execute_command(self, params: types.ExecuteCommandParams) -> object:  # type: ignore[override]
        handler: CommandHandler | None = self.fm.commands.get(params.command)
        if handler is None:
            raise JsonRpcInvalidParams(f"There is no command {params.command!r}.")
        token = params.work_done_token
        if token is None:
            return await handler(params)
        self.progress.tokens.setdefault(token, Future())  # one that is stopped before its work began is stopped then
        try:
            return await handler(params)
        finally:
            self.progress.tokens.pop(token, None)

    @lsp_method(types.EXIT)
    def lsp_exit(self, *args: object) -> None:  # type: ignore[override]
        self.exit_status = 0 if self._shutdown else 1
        stop = self._server._stop_event
        if stop is not None:
            stop.set()
