"""A language client over the real server, as a person at an editor would use it. Calls block; each has a time limit.

    with start_editor(VSCODE) as editor:
        page = editor.open("a.cu", TEXT)
        page.type_at("int n", "unsigned ")
        page.diagnostics()

The buffer that an edit is applied to, and its positions, are computed here and share nothing with the server's.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lsprotocol import types
from pytest_lsp import LanguageClient, make_test_lsp_client

SECONDS = 60.0
NO_MODEL = {"WARPWRIGHT_MODEL": "/nowhere/model.gguf"}
DEFAULT_MODEL = {"WARPWRIGHT_MODEL": ""}
SERVER = (sys.executable, "-m", "warpwright.lsp")


@dataclass(frozen=True)
class Profile:
    """What an editor says it can do, written out by hand from what the real ones send."""

    name: str
    encodings: tuple[types.PositionEncodingKind, ...]
    pulls: bool
    has_marked: bool = False  # the renderer of Markdown that VS Code names
    has_annotations: bool = False  # what a change is, shown beside it
    resolves: bool = True  # asks for the edit of a code action that has none

    def capabilities(self) -> types.ClientCapabilities:
        action_kinds = types.ClientCodeActionKindOptions(value_set=list(types.CodeActionKind))
        return types.ClientCapabilities(
            general=types.GeneralClientCapabilities(
                position_encodings=list(self.encodings),
                markdown=types.MarkdownClientCapabilities(parser="marked", version="1.1.0")
                if self.has_marked
                else None,
            ),
            workspace=types.WorkspaceClientCapabilities(
                apply_edit=True,
                configuration=True,
                workspace_edit=types.WorkspaceEditClientCapabilities(
                    document_changes=True,
                    change_annotation_support=types.ChangeAnnotationsSupportOptions(groups_on_label=True)
                    if self.has_annotations
                    else None,
                ),
                diagnostics=types.DiagnosticWorkspaceClientCapabilities(refresh_support=True) if self.pulls else None,
                did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(dynamic_registration=False),
            ),
            window=types.WindowClientCapabilities(
                work_done_progress=True, show_document=types.ShowDocumentClientCapabilities(support=True)
            ),
            text_document=types.TextDocumentClientCapabilities(
                hover=types.HoverClientCapabilities(content_format=[types.MarkupKind.Markdown]),
                publish_diagnostics=types.PublishDiagnosticsClientCapabilities(
                    related_information=True, version_support=True, code_description_support=True, data_support=True
                ),
                diagnostic=types.DiagnosticClientCapabilities() if self.pulls else None,
                inline_completion=types.InlineCompletionClientCapabilities(),
                code_action=types.CodeActionClientCapabilities(
                    code_action_literal_support=types.ClientCodeActionLiteralOptions(code_action_kind=action_kinds),
                    data_support=True,
                    disabled_support=True,
                    is_preferred_support=True,
                    resolve_support=types.ClientCodeActionResolveOptions(properties=["edit"])
                    if self.resolves
                    else None,
                ),
            ),
        )


VSCODE = Profile(
    "Visual Studio Code", (types.PositionEncodingKind.Utf16,), pulls=True, has_marked=True, has_annotations=True
)
NEOVIM = Profile("Neovim 0.12", (types.PositionEncodingKind.Utf8, types.PositionEncodingKind.Utf16), pulls=True)
OLD_NEOVIM = Profile("Neovim 0.7", (), pulls=False)
OLD_EMACS = Profile("Emacs 28 with eglot 1.9", (), pulls=False, resolves=False)
HELIX = Profile("helix", (types.PositionEncodingKind.Utf8,), pulls=False)


class Loop:
    """An event loop in a thread, so that tests are plain functions."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="client")
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, Any], seconds: float = SECONDS) -> Any:
        return self.start(work).result(seconds)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call something in the loop's thread, from whichever thread."""
        if threading.current_thread() is self._thread:
            return function(*arguments)

        async def called() -> Any:
            return function(*arguments)

        return self.run(called())

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(SECONDS)
        self._loop.close()


@dataclass
class Editor:
    """A client, its server's process (None over TCP) and what the server has said so far."""

    client: LanguageClient
    loop: Loop
    profile: Profile
    folder: Path
    initialized: types.InitializeResult | None = None
    pages: dict[str, Page] = field(default_factory=dict)
    applied: list[types.ApplyWorkspaceEditParams] = field(default_factory=list)
    published: list[types.PublishDiagnosticsParams] = field(default_factory=list)
    registrations: list[types.Registration] = field(default_factory=list)
    asked_for_settings: int = 0
    log: list[str] = field(default_factory=list)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def encoding(self) -> str:
        assert self.initialized is not None
        return str(self.initialized.capabilities.position_encoding)

    @property
    def process(self) -> asyncio.subprocess.Process:
        assert self.client._server is not None
        return self.client._server

    @property
    def messages(self) -> list[str]:
        return [message.message for message in self.client.messages]

    def open(self, name: str, text: str, uri: str | None = None, language: str = "cuda-cpp") -> Page:
        """Open a document, in a folder of its own unless an address is given."""
        if uri is None:
            path = self.folder / f"{next(self.numbers)}" / name
            path.parent.mkdir()
            path.write_text(text, encoding="utf-8", newline="")
            uri = path.as_uri()
        page = self.pages[uri] = Page(self, uri, text)
        item = types.TextDocumentItem(uri=uri, language_id=language, version=page.version, text=text)
        self.notify("textDocument/didOpen", types.DidOpenTextDocumentParams(item))
        return page

    def notify(self, method: str, params: object) -> None:
        self.loop.call(self.client.protocol.notify, method, params)

    def request(self, method: str, params: object, seconds: float = SECONDS) -> Any:
        return self.loop.run(self.client.protocol.send_request_async(method, params), seconds)

    def start_request(self, method: str, params: object, number: str) -> Future[Any]:
        return self.loop.start(self.client.protocol.send_request_async(method, params, number))

    def set_settings(self, settings: object) -> None:
        """Change the settings; the server has them when it gets the next message."""
        self.client.set_configuration(settings, section="warpwright")
        before = self.asked_for_settings
        self.notify("workspace/didChangeConfiguration", types.DidChangeConfigurationParams(settings=None))
        self.wait(lambda: self.asked_for_settings > before, "a question for the settings")

    def tell_of(self, file: Path, kind: types.FileChangeType = types.FileChangeType.Changed) -> None:
        """Tell the server that a file on disk came, changed or went."""
        params = types.DidChangeWatchedFilesParams([types.FileEvent(file.as_uri(), kind)])
        self.notify("workspace/didChangeWatchedFiles", params)

    def wait(self, condition: Callable[[], Any], what: str, seconds: float = SECONDS) -> Any:
        """The condition's value as soon as there is one."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = condition()
            if value:
                return value
            time.sleep(0.01)
        raise AssertionError(f"{what} did not come in {seconds:g} s; messages: {self.messages}; log: {self.log}")


@dataclass
class Page:
    """One open document as the client has it."""

    editor: Editor
    uri: str
    text: str
    version: int = 1

    @property
    def identifier(self) -> types.TextDocumentIdentifier:
        return types.TextDocumentIdentifier(self.uri)

    def position(self, index: int) -> types.Position:
        """The position of a character of the text, in the units agreed with the server."""
        before = re.split(r"\r\n|\n|\r", self.text[:index])
        return types.Position(len(before) - 1, _units(before[-1], self.editor.encoding))

    def index(self, position: types.Position) -> int:
        at = 0
        for _ in range(position.line):
            ended = re.compile(r"\r\n|\n|\r").search(self.text, at)
            assert ended is not None, f"{position} lies past the end"
            at = ended.end()
        line = re.split(r"\r\n|\n|\r", self.text[at:], maxsplit=1)[0]
        return at + next(
            n for n in range(len(line) + 1) if _units(line[:n], self.editor.encoding) == position.character
        )

    def range(self, words: str, occurrence: int = 0) -> types.Range:
        """Where some words stand in the text."""
        start = -1
        for _ in range(occurrence + 1):
            start = self.text.index(words, start + 1)
        return types.Range(self.position(start), self.position(start + len(words)))

    def words(self, where: types.Range) -> str:
        return self.text[self.index(where.start) : self.index(where.end)]

    def replace(self, old: str, new: str) -> None:
        """Edit the text as a person would: tell the server what changed, not what it is now."""
        where = self.range(old)
        at = self.text.index(old)
        self.text = self.text[:at] + new + self.text[at + len(old) :]
        self._changed([types.TextDocumentContentChangePartial(range=where, text=new)])

    def set(self, text: str) -> None:
        self.text = text
        self._changed([types.TextDocumentContentChangeWholeDocument(text)])

    def apply(self, edits: Sequence[Any]) -> None:
        """Apply edits that were given against the present text, and tell the server."""
        changes = []
        for edit in sorted(edits, key=lambda e: (e.range.start.line, e.range.start.character), reverse=True):
            start, end = self.index(edit.range.start), self.index(edit.range.end)
            changes.append(types.TextDocumentContentChangePartial(range=edit.range, text=edit.new_text))
            self.text = self.text[:start] + edit.new_text + self.text[end:]
        self._changed(changes)

    def close(self) -> None:
        self.editor.notify("textDocument/didClose", types.DidCloseTextDocumentParams(self.identifier))

    def diagnostics(self) -> list[types.Diagnostic]:
        """The newest text's, pulled or waited for as the profile has it."""
        if self.editor.profile.pulls:
            report = self.pull()
            return list(report.items)
        published = self.editor.wait(self._published, f"diagnostics of {self.uri} at version {self.version}")
        return list(published.diagnostics)

    def pull(self, previous: str | None = None) -> Any:
        params = types.DocumentDiagnosticParams(self.identifier, previous_result_id=previous)
        return self.editor.request("textDocument/diagnostic", params)

    def hover(self, words: str, occurrence: int = 0) -> types.Hover | None:
        where = self.range(words, occurrence).start
        answer: types.Hover | None = self.editor.request(
            "textDocument/hover", types.HoverParams(self.identifier, where)
        )
        return answer

    def hover_text(self, words: str) -> str:
        """The Markdown of a hover that there must be."""
        answer = self.hover(words)
        assert answer is not None
        assert isinstance(answer.contents, types.MarkupContent)
        return answer.contents.value

    def lenses(self) -> list[types.CodeLens]:
        return self.editor.request("textDocument/codeLens", types.CodeLensParams(self.identifier)) or []

    def titles(self) -> list[str]:
        """What stands above the kernels."""
        return [lens.command.title for lens in self.lenses() if lens.command is not None]

    def hints(self) -> list[tuple[str, str]]:
        """What stands behind which end of a line's text, up to there."""
        end = self.position(len(self.text))
        params = types.InlayHintParams(self.identifier, types.Range(types.Position(0, 0), end))
        found = self.editor.request("textDocument/inlayHint", params) or []
        return [(self.text[: self.index(h.position)].rsplit("\n", 1)[-1], h.label) for h in found]

    def actions(self, where: types.Range, only: Sequence[str] | None = None) -> list[types.CodeAction]:
        kinds: Any = list(only) if only is not None else None
        context = types.CodeActionContext(diagnostics=self.diagnostics(), only=kinds)
        params = types.CodeActionParams(self.identifier, where, context)
        return self.editor.request("textDocument/codeAction", params) or []

    def _published(self) -> types.PublishDiagnosticsParams | None:
        found = [p for p in self.editor.published if p.uri == self.uri and p.version == self.version]
        return found[-1] if found else None

    def _changed(self, changes: Sequence[types.TextDocumentContentChangeEvent]) -> None:
        self.version += 1
        identifier = types.VersionedTextDocumentIdentifier(version=self.version, uri=self.uri)
        self.editor.notify("textDocument/didChange", types.DidChangeTextDocumentParams(identifier, list(changes)))


@contextlib.contextmanager
def start_editor(
    profile: Profile,
    folder: Path,
    *,
    options: object = None,
    command: Sequence[str] = SERVER,
    environment: dict[str, str] | None = None,
    port: int | None = None,
) -> Iterator[Editor]:
    """Start a server (or connect to one on a port), initialize it, and shut it down at the end. It has the model that
    `environment` names, as the default would be loaded beside every file that is opened."""
    loop = Loop()
    client = make_test_lsp_client()
    editor = Editor(client, loop, profile, folder)
    _listen(editor)
    try:
        if port is not None:
            loop.run(client.start_tcp("127.0.0.1", port))
        else:
            loop.run(_start(editor, command, {**os.environ, **NO_MODEL, **(environment or {})}))
        params = types.InitializeParams(
            capabilities=profile.capabilities(),
            client_info=types.ClientInfo(name=profile.name),
            root_uri=folder.as_uri(),
            initialization_options=options,
        )
        try:
            editor.initialized = loop.run(client.initialize_session(params))
        except RuntimeError as error:
            raise AssertionError(f"the server did not start: {editor.log}") from error
        yield editor
        if port is not None:
            loop.run(client.shutdown_async(None))
        elif editor.process.returncode is None:
            loop.run(client.shutdown_session())
    finally:
        server = client._server
        if server is not None and server.returncode is None:
            loop.call(server.kill)
        loop.close()


async def _start(editor: Editor, command: Sequence[str], environment: dict[str, str]) -> None:
    await LanguageClient.__mro__[1].start_io(editor.client, *command, env=environment)  # type: ignore[attr-defined]
    editor.tasks.append(asyncio.ensure_future(_keep_log(editor)))


async def _keep_log(editor: Editor) -> None:
    assert editor.process.stderr is not None
    while line := await editor.process.stderr.readline():
        editor.log.append(line.decode(errors="replace").rstrip())


def _listen(editor: Editor) -> None:
    features = editor.client.protocol.fm.features
    keep_diagnostics = features[types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS]

    def published(params: types.PublishDiagnosticsParams) -> None:
        keep_diagnostics(params)
        editor.published.append(params)

    features[types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS] = published
    give_settings = features[types.WORKSPACE_CONFIGURATION]

    def settings(params: types.ConfigurationParams) -> Any:
        given = give_settings(params)
        editor.asked_for_settings += 1
        return given

    features[types.WORKSPACE_CONFIGURATION] = settings

    @editor.client.feature(types.CLIENT_REGISTER_CAPABILITY)
    def register(params: types.RegistrationParams) -> None:
        editor.registrations.extend(params.registrations)

    @editor.client.feature(types.WORKSPACE_APPLY_EDIT)
    def apply_edit(params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        editor.applied.append(params)
        for change in params.edit.document_changes or []:
            assert isinstance(change, types.TextDocumentEdit)
            page = editor.pages[change.text_document.uri]
            if change.text_document.version != page.version:
                return types.ApplyWorkspaceEditResult(applied=False, failure_reason="the text has another version")
            page.apply(change.edits)
        return types.ApplyWorkspaceEditResult(applied=True)


def _units(text: str, encoding: str) -> int:
    if encoding == "utf-8":
        return len(text.encode())
    return len(text.encode("utf-16-le")) // 2 if encoding == "utf-16" else len(text)
