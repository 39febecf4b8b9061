"""Whatever an editor sends, the server goes on, and says it in one line of its log where there is something to say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from lsprotocol import types
from support.editor import SERVER, VSCODE, Editor, start_editor
from support.kernels import CONFLICT


def still_works(editor: Editor) -> None:
    page = editor.open("check.cu", CONFLICT)
    assert [d.code for d in page.diagnostics()] == ["bank-conflict"]
    page.close()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("end", range(0, len(CONFLICT), 37))
def test_a_half_written_kernel(vscode: Editor, end: int) -> None:
    page = vscode.open("a.cu", CONFLICT[:end])
    page.diagnostics()
    if CONFLICT[:end].strip():
        page.hover(CONFLICT[:end].split()[-1])
        page.actions(types.Range(types.Position(0, 0), types.Position(9999, 9999)))
    page.close()


def test_typing_a_whole_file_ends_like_opening_it(vscode: Editor) -> None:
    typed = vscode.open("a.cu", "")
    for start in range(0, len(CONFLICT), 11):
        at = typed.position(len(typed.text))
        typed.apply([types.TextEdit(types.Range(at, at), CONFLICT[start : start + 11])])
        if start % 55 == 0:
            typed.diagnostics()
    opened = vscode.open("a.cu", CONFLICT)
    assert typed.text == opened.text
    shown = [[(d.code, d.range) for d in page.diagnostics()] for page in (typed, opened)]
    assert shown[0] == shown[1] != []


def test_binary_and_huge_documents_are_left_alone(vscode: Editor) -> None:
    binary = vscode.open("a.cu", "\x7fELF\0\0" + CONFLICT)
    assert [d.message for d in binary.diagnostics()] == ["This is not analysed: it holds binary data."]
    assert binary.hover("tile[x][y]") is None
    assert binary.actions(binary.range("tile[x][y]")) == []
    huge = vscode.open("b.cu", "// padding\n" * 500_000 + CONFLICT)
    assert [d.message for d in huge.diagnostics()] == ["This is not analysed: it is larger than 1 MB."]
    assert huge.hover("transpose") is None
    told = [line for line in vscode.log if "not analysed" in line]
    assert any("binary" in line for line in told)
    assert any("larger than 1 MB" in line for line in told)
    binary.replace("\x7fELF\0\0", "")
    assert [d.code for d in binary.diagnostics()] == ["bank-conflict"]
    still_works(vscode)


def test_text_that_is_not_utf_8_survives(vscode: Editor) -> None:
    page = vscode.open("a.cu", CONFLICT)
    page.text = page.text.replace("größe", "gr?ße")
    where = page.range("gr?ße")
    lone = json.loads('"gr\\udf6a\\u00dfe"')  # half of a surrogate pair, which JSON can carry
    page._changed([types.TextDocumentContentChangePartial(range=where, text=lone)])
    (diagnostic,) = page.diagnostics()
    assert page.words(diagnostic.range) == "tile[x][y]"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_byte_order_mark(any_editor: Editor, line_end: str) -> None:
    page = any_editor.open("a.cu", "\ufeff" + CONFLICT.replace("\n", line_end))
    (diagnostic,) = page.diagnostics()
    assert page.words(diagnostic.range) == "tile[x][y]"


def test_one_line_of_very_many_statements(vscode: Editor) -> None:
    """Other documents are answered for meanwhile, and so is the line itself."""
    small = vscode.open("small.cu", CONFLICT)
    table = f"__device__ const float table[] = {{{'1.0f, ' * 150_000}}};"
    large = vscode.open("large.cu", CONFLICT.replace("\n", " ") + table)
    assert len(small.diagnostics()) == 1
    (diagnostic,) = large.diagnostics()
    assert large.words(diagnostic.range) == "tile[x][y]"
    large.replace("tile[32][32]", "tile[32][33]")
    assert large.diagnostics() == []


def test_what_is_not_open(any_editor: Editor) -> None:
    before = list(any_editor.messages)
    unknown = types.TextDocumentIdentifier("file:///nowhere/a.cu")
    at = types.Position(3, 4)
    everywhere = types.Range(types.Position(0, 0), at)
    assert any_editor.request("textDocument/hover", types.HoverParams(unknown, at)) is None
    context = types.CodeActionContext(diagnostics=[])
    assert not any_editor.request("textDocument/codeAction", types.CodeActionParams(unknown, everywhere, context))
    report = any_editor.request("textDocument/diagnostic", types.DocumentDiagnosticParams(unknown))
    assert report.items == ()
    identifier = types.VersionedTextDocumentIdentifier(version=2, uri=unknown.uri)
    change = types.TextDocumentContentChangePartial(range=everywhere, text="x")
    any_editor.notify("textDocument/didChange", types.DidChangeTextDocumentParams(identifier, [change]))
    any_editor.notify("textDocument/didClose", types.DidCloseTextDocumentParams(unknown))
    still_works(any_editor)
    assert any_editor.messages == before


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "uri", ["untitled:Untitled-1", "vscode-vfs://github/o/r/a.cu", "file:///c%3A/a%20b/a.cu", "???"]
)
def test_documents_without_a_file(any_editor: Editor, uri: str) -> None:
    page = any_editor.open("", '#include "pyproject.toml"\n' + CONFLICT, uri=uri)
    (diagnostic,) = page.diagnostics()
    assert page.words(diagnostic.range) == "tile[x][y]"
    page.close()


def test_positions_outside_the_text(vscode: Editor) -> None:
    page = vscode.open("a.cu", CONFLICT)
    for line, character in ((0, 10**6), (10**6, 0), (10**9, 10**9)):
        assert (
            vscode.request("textDocument/hover", types.HoverParams(page.identifier, types.Position(line, character)))
            is None
        )
    end = types.Position(10**6, 10**6)
    page.apply([])
    page.text += "// the end\n"
    page._changed([types.TextDocumentContentChangePartial(range=types.Range(end, end), text="// the end\n")])
    (diagnostic,) = page.diagnostics()
    assert page.words(diagnostic.range) == "tile[x][y]"


def test_closing_and_reopening_while_it_is_analysed(any_editor: Editor) -> None:
    kernels = "\n".join(CONFLICT.replace("transpose", f"transpose_{n}").replace("run", f"run_{n}") for n in range(100))
    page = any_editor.open("a.cu", kernels)
    page.close()
    again = any_editor.open("a.cu", CONFLICT, uri=page.uri)
    assert len(again.diagnostics()) == 1
    still_works(any_editor)


def test_requests_that_cannot_be_read_are_answered(tmp_path: Path) -> None:
    """Raw bytes, as no client library would send them; every request gets a response, and the server stays."""
    messages: list[bytes] = [
        _request(1, "initialize", {"capabilities": {}, "processId": None, "rootUri": None}),
        _request(None, "initialized", {}),
        _request(2, "textDocument/hover", {"textDocument": 5}),
        _request(3, "textDocument/hover", None),
        _request(4, "no/such/method", {}),
        _request(5, "workspace/executeCommand", {"command": "warpwright.nonsense", "arguments": []}),
        _request(6, "workspace/executeCommand", {"command": "warpwright.optimize", "arguments": ["x", {}]}),
        _request(7, "codeAction/resolve", {"title": "t", "data": {"uri": 3, "target": "x"}}),
        b"Content-Length: 9\r\n\r\n{not json",
        _request(None, "textDocument/didChange", {"contentChanges": "x"}),
        _request(None, "$/cancelRequest", {"id": 99}),
        _request(8, "textDocument/hover", {"textDocument": {"uri": "x"}, "position": {"line": 0, "character": 0}}),
        _request(9, "shutdown", None),
        _request(None, "exit", None),
    ]
    done = subprocess.run(SERVER, input=b"".join(messages), capture_output=True, timeout=60, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    responses = {m["id"]: m for m in _messages(done.stdout) if "id" in m and "method" not in m}
    assert sorted(responses) == list(range(1, 10))
    assert all("error" in responses[n] for n in (2, 3, 4, 5))
    assert responses[6]["result"]["status"] == "failed"
    assert responses[8]["result"] is None
    log = done.stderr.decode().splitlines()
    assert not [line for line in log if "Traceback" in line or line.startswith(" ")], log
    assert len(log) == 6, log  # 2, 3, 4, 5, the one that is not JSON, and the change without a document


def test_the_end_of_input_ends_the_server(tmp_path: Path) -> None:
    hello = _request(1, "initialize", {"capabilities": {}, "processId": None, "rootUri": None})
    done = subprocess.run(
        SERVER, input=hello + b"Content-Length: 5000\r\n\r\n{", capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [["--tcp"], ["--tcp", "99999"], ["--stdio", "--tcp", "1"], ["nonsense"]])
def test_wrong_arguments(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "warpwright.lsp", *arguments]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert done.stderr.decode().startswith("usage:")


def test_settings_of_the_wrong_type(tmp_path: Path) -> None:
    with start_editor(VSCODE, tmp_path, options={"warpwright": {"block": "big", "arch": 9}}) as editor:
        assert "warpwright.block: must be" in editor.messages[0]
        assert "warpwright.arch: must be" in editor.messages[0]
        for settings in (["x"], "x", 3, {"ignore": {"a": 1}}, {"unheard": 1}):
            count = len(editor.messages)
            editor.set_settings(settings)
            editor.wait(lambda: len(editor.messages) > count, f"a message about {settings}")  # noqa: B023
        still_works(editor)
        assert not [line for line in editor.log if "Traceback" in line]


def _request(number: int | None, method: str, params: object) -> bytes:
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    body = json.dumps(message if number is None else {**message, "id": number}).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def _messages(data: bytes) -> list[dict[str, object]]:
    found = []
    while data:
        header, _, rest = data.partition(b"\r\n\r\n")
        length = int(header.split(b"Content-Length: ")[1].split(b"\r\n")[0])
        found.append(json.loads(rest[:length]))
        data = rest[length:]
    return found
