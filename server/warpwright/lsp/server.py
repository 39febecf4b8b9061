"""The language server: what one connection holds, and how it is served on stdin and stdout or on TCP."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import re
import signal
import sys
import threading
from asyncio import IncompleteReadError
from collections.abc import Awaitable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

from lsprotocol import types
from pygls.exceptions import FeatureNotificationError
from pygls.io_ import StdoutWriter, run_async
from pygls.lsp.server import LanguageServer
from pygls.protocol import default_converter

from warpwright import __version__
from warpwright.editor.text import Encoding, Text
from warpwright.lsp.documents import Documents, uri_of
from warpwright.lsp.inline_completion import GhostText
from warpwright.lsp.log import log_to_stderr
from warpwright.lsp.methods import METHODS
from warpwright.lsp.notebook import SYNC
from warpwright.lsp.offers import Offers
from warpwright.lsp.protocol import Protocol
from warpwright.lsp.work import Worker
from warpwright.lsp.workspace_diagnostic import WorkspaceChanges

if TYPE_CHECKING:
    from pygls.io_ import AsyncReader

log = logging.getLogger(__name__)

# How long an analysis thread may hold the interpreter while the loop wants it; the default, 5 ms, is felt in a hover
# that passes between threads a few times.
_SWITCH_SECONDS = 0.001
_CHUNK_BYTES = 1 << 16
_LINK = re.compile(r"\]\((?=\w+:)")


class Server(LanguageServer):
    """One connection. `fixes` verifies quick fixes, `commands` runs kernel commands, `compiles` runs nvcc, `checks`
    looks at files that are not open: each in a process of its own. `told` holds the sentences that a user need not read
    twice, `cells` the texts of notebooks' cells, `wrong_projects` the files whose settings are wrong, `ready_at` when
    `commands` was last told to get ready."""

    protocol: Protocol

    def __init__(self) -> None:
        super().__init__(
            "warpwright",
            __version__,
            text_document_sync_kind=types.TextDocumentSyncKind.Incremental,
            protocol_cls=Protocol,
            converter_factory=default_converter,
            notebook_document_sync=SYNC,
            max_workers=1,
        )
        self.documents = Documents()
        self.cells: dict[str, Text] = {}
        self.fixes = Worker()
        self.commands = Worker()
        self.compiles = Worker()
        self.checks = Worker()
        self.workspace_changes = WorkspaceChanges()
        self.told: set[str] = set()
        self.wrong_settings: tuple[str, ...] = ()
        self.wrong_projects: set[str] = set()
        self.ghost_text = GhostText()
        self.offers = Offers()
        self.last_report: Path | None = None
        self.refresh_is_due = False
        self.ready_at = float("-inf")
        self.shows_images = False
        self.resolves_actions = False
        self._tasks: set[asyncio.Future[Any]] = set()
        self._reading: asyncio.Future[None] | None = None
        self._client: int | None = None
        for module in METHODS:
            module.register(self)

    @property
    def encoding(self) -> Encoding:
        return cast(Encoding, str(self.workspace.position_encoding or "utf-16"))

    def uri_of(self, path: str) -> str:
        document = self.documents.at_path(path)
        return document.uri if document is not None else uri_of(path)

    def in_background(self, work: Awaitable[object]) -> asyncio.Future[object]:
        """Start something that nobody waits for; its failure is one line in the log."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def message(self, text: str, kind: types.MessageType = types.MessageType.Info) -> None:
        """A sentence for the user's eyes. What it quotes of a file is no link: VS Code makes one of `[a](command:...)`,
        which would run what a file's author likes."""
        self.window_show_message(types.ShowMessageParams(type=kind, message=_LINK.sub("] (", text)))

    async def show(self, document: types.ShowDocumentParams, instead: str) -> None:
        """Open a document where the client can show one; else say `instead`."""
        window = self.client_capabilities.window
        if window and window.show_document and window.show_document.support:
            await self.window_show_document_async(document)
        else:
            self.message(instead)

    def report_server_error(self, error: Exception, source: object) -> None:
        """A fault in a handler is for the log, not for the user's screen; all but a notification's is there already."""
        if source is FeatureNotificationError:
            log.error("a notification could not be handled", exc_info=error)

    async def serve(self, reader: AsyncReader, writer: Any) -> int:
        """Answer one client until it says `exit` or goes away; the exit status that the protocol asks for."""
        stop = self._stop_event = threading.Event()
        self.protocol.set_writer(writer)
        try:
            reading = run_async(stop, reader, self.protocol, log, self.report_server_error)
            self._reading = asyncio.ensure_future(reading)
            await asyncio.wait({self._reading})
            if not self._reading.cancelled():
                self._reading.result()
        except (ConnectionError, IncompleteReadError):
            log.info("the client went away")
        except ValueError as error:
            log.error("what came is not the language server protocol: %s", error)
        finally:
            self.leave()
            self._forget_client()
            self.documents.shut_down()
            await self.stop_jobs()
            await self.ghost_text.close()
        return self.protocol.exit_status if self.protocol.exit_status is not None else 1

    def leave(self) -> None:
        """Take no more from the client, as after `exit`."""
        if self._reading is not None:
            self._reading.cancel()

    def leave_with(self, process: int) -> None:
        """Leave once the client's process has ended, which its pipes need not tell: others may hold their ends. On
        Linux; a process that cannot be seen from here, as in a container, is not waited for."""
        if sys.platform == "linux":
            with contextlib.suppress(OSError, OverflowError):
                self._client = os.pidfd_open(process)
                asyncio.get_running_loop().add_reader(self._client, self.leave)

    def _forget_client(self) -> None:
        if self._client is not None:
            asyncio.get_running_loop().remove_reader(self._client)
            os.close(self._client)
            self._client = None

    async def stop_jobs(self) -> None:
        """End what is under way, and the processes that do it; a later job would start new ones."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(self.fixes.close(), self.commands.close(), self.compiles.close(), self.checks.close())

    def _ended(self, task: asyncio.Future[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("background work failed", exc_info=error)


def serve_stdio() -> NoReturn:
    """Serve one editor on stdin and stdout until it leaves or a signal says so; then the process ends.

    Whatever else writes to stdout from here on, a library or a print, goes to stderr: the protocol has its own copy.
    """
    log_to_stderr()
    sys.setswitchinterval(_SWITCH_SECONDS)
    stdout = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    async def served() -> NoReturn:
        server = Server()
        signals: list[int] = []

        def ended_by(number: int) -> None:
            signals.append(number)
            server.leave()

        if sys.platform != "win32":
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, ended_by, number)
        status = await server.serve(_read_in_thread(sys.stdin.fileno()), StdoutWriter(stdout))
        _end(128 + signals[0] if signals else status)

    try:
        asyncio.run(served())
    except KeyboardInterrupt:
        _end(130)


def _end(status: int) -> NoReturn:
    """End the process now, whatever its threads do: none of them has anything to lose."""
    atexit._run_exitfuncs()
    logging.shutdown()
    os._exit(status)


class _FairReader(asyncio.StreamReader):
    """Lets what a message started run before the next line is read; data at hand would be read without a pause."""

    async def readline(self) -> bytes:
        await asyncio.sleep(0)
        return await super().readline()


def _read_in_thread(file: int) -> asyncio.StreamReader:
    """What comes from a file, read by a thread that nobody waits for: an interrupt must not wait for the next byte."""
    loop = asyncio.get_running_loop()
    reader = _FairReader()

    def read() -> None:
        data = b"-"
        while data and not loop.is_closed():
            data = os.read(file, _CHUNK_BYTES)
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(reader.feed_data if data else lambda _: reader.feed_eof(), data)

    threading.Thread(target=read, daemon=True, name="stdin").start()
    return reader


def serve_tcp(port: int, host: str = "127.0.0.1") -> int:
    """Serve every editor that connects, each with a server of its own, until interrupted. Port 0 takes a free one.

    The address is written to stderr once connections are taken.
    """
    log_to_stderr()
    sys.setswitchinterval(_SWITCH_SECONDS)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await Server().serve(reader, writer)
        finally:
            writer.close()

    async def served() -> None:
        listener = await asyncio.start_server(connected, host, port)
        address = listener.sockets[0].getsockname()
        sys.stderr.write(f"warpwright: listening on {address[0]}:{address[1]}\n")
        sys.stderr.flush()
        async with listener:
            await listener.serve_forever()

    try:
        asyncio.run(served())
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        sys.stderr.write(f"warpwright: port {port} cannot be listened on: {reason}. Choose another one.\n")
        return 2
    except KeyboardInterrupt:
        return 130
    return 0
