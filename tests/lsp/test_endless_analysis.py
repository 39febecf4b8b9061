"""An analysis that does not end: other files are answered, it is stopped, and the server leaves when it is told to.

The servers are started by a program in which the analysis of a text with a certain word does not end.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.editor import NEOVIM, OLD_NEOVIM, VSCODE, Profile, start_editor
from support.kernels import CLEAN, CONFLICT
from warpwright.editor.stoppable import Stoppable

LEAVES_WITHIN = 30.0
"""Seconds; on a machine that is at work, and far less than an endless analysis is given."""

SPIN = "while True: pass"
SWALLOW = """
    while True:
        try:
            while True: pass
        except Exception: pass
"""
BLOCK = "os.read(os.pipe()[0], 1)"


def program(endless: str, **limits: float) -> list[str]:
    """A server in which the analysis of a text with the word `endless` does that."""
    code = f"""
import os, sys
import warpwright.lsp.documents as documents
import warpwright.lsp.turns as turns
honest = documents.analyse
def endless():
    {endless}
def analyse(source, *rest):
    if b"endless" in source.data:
        endless()
    return honest(source, *rest)
documents.analyse = analyse
for name, value in {limits!r}.items():
    setattr(turns, name, value)
from warpwright.lsp.__main__ import main
sys.exit(main([]))
"""
    return [sys.executable, "-P", "-c", code]


ENDLESS = f"// endless\n{CONFLICT}"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("profile", [VSCODE, NEOVIM, OLD_NEOVIM], ids=lambda each: each.name)
@pytest.mark.parametrize("endless", [SPIN, SWALLOW, BLOCK], ids=["spins", "guards itself", "waits in C"])
def test_other_files_are_answered_meanwhile(profile: Profile, endless: str, tmp_path: Path) -> None:
    with start_editor(profile, tmp_path, command=program(endless), options={"compile": "off"}) as editor:
        for number in range(2):
            editor.open(f"endless{number}.cu", ENDLESS)
        page = editor.open("a.cu", CONFLICT)
        assert len(page.diagnostics()) == 1
        assert page.hover("tile[x][y]") is not None
        assert page.actions(page.range("tile[x][y]"))
        page.set(CLEAN)
        assert page.diagnostics() == []
        began = time.monotonic()
    assert time.monotonic() - began < LEAVES_WITHIN
    assert editor.process.returncode == 0


@pytest.mark.parametrize("endless", [SPIN, BLOCK], ids=["spins", "waits in C"])
def test_it_is_stopped_said_so_and_the_next_text_is_analysed(endless: str, tmp_path: Path) -> None:
    command = program(endless, MOST_SECONDS=5.0)
    with start_editor(VSCODE, tmp_path, command=command, options={"compile": "off"}) as editor:
        page = editor.open("endless.cu", ENDLESS)
        (said,) = page.diagnostics()
        assert said.message == "This is not analysed: it took longer than 5 seconds and was stopped."
        assert page.hover("tile[x][y]") is None
        page.replace("// endless\n", "")
        assert [found.code for found in page.diagnostics()] == ["bank-conflict"]
        assert len([line for line in editor.log if "endless.cu is not analysed" in line]) == 1


@pytest.mark.slow
def test_many_endless_ones_keep_another_waiting_no_longer_than_they_are_given(tmp_path: Path) -> None:
    command = program(SPIN, MOST_SECONDS=5.0)
    with start_editor(OLD_NEOVIM, tmp_path, command=command, options={"compile": "off"}) as editor:
        pages = [editor.open(f"endless{number}.cu", ENDLESS) for number in range(6)]
        assert len(editor.open("a.cu", CONFLICT).diagnostics()) == 1
        for page in pages:
            assert "was stopped" in page.diagnostics()[0].message


def test_an_edit_ends_the_analysis_of_the_text_before_it(tmp_path: Path) -> None:
    command = program(SPIN, PATIENCE_SECONDS=0.5, MOST_SECONDS=600.0)
    with start_editor(OLD_NEOVIM, tmp_path, command=command, options={"compile": "off"}) as editor:
        page = editor.open("endless.cu", ENDLESS)
        time.sleep(0.2)
        page.replace("// endless\n", "")
        assert [found.code for found in page.diagnostics()] == ["bank-conflict"]


def _message(method: str, params: object, number: int | None = None) -> bytes:
    content = {"jsonrpc": "2.0", "method": method, "params": params, **({} if number is None else {"id": number})}
    body = json.dumps(content).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def _says_exit(server: subprocess.Popen[bytes], _client: subprocess.Popen[bytes]) -> None:
    assert server.stdin is not None
    server.stdin.write(_message("shutdown", None, 2) + _message("exit", None))
    server.stdin.flush()


def _closes_stdin(server: subprocess.Popen[bytes], _client: subprocess.Popen[bytes]) -> None:
    assert server.stdin is not None
    server.stdin.close()


def _terminates(server: subprocess.Popen[bytes], _client: subprocess.Popen[bytes]) -> None:
    server.send_signal(signal.SIGTERM)


def _interrupts(server: subprocess.Popen[bytes], _client: subprocess.Popen[bytes]) -> None:
    server.send_signal(signal.SIGINT)


def _dies(_server: subprocess.Popen[bytes], client: subprocess.Popen[bytes]) -> None:
    client.kill()


def _kills(server: subprocess.Popen[bytes], _client: subprocess.Popen[bytes]) -> None:
    server.kill()


ENDS: list[tuple[Callable[[subprocess.Popen[bytes], subprocess.Popen[bytes]], None], int]] = [
    (_says_exit, 0), (_closes_stdin, 1), (_terminates, 143), (_interrupts, 130), (_dies, 1), (_kills, -9),
]  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of the end of a process that is no child")
@pytest.mark.parametrize(("end", "status"), ENDS, ids=lambda each: getattr(each, "__name__", None))
def test_it_leaves_with_all_that_it_started(
    end: Callable[[subprocess.Popen[bytes], subprocess.Popen[bytes]], None], status: int, tmp_path: Path
) -> None:
    """While an analysis spins, one waits in C, and a worker looks at files that are not open."""
    (tmp_path / "unread.cu").write_text(CONFLICT, encoding="utf-8")
    client = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    command = program(f"{SPIN if status else BLOCK}")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        root = {"processId": client.pid, "capabilities": {}, "rootUri": tmp_path.as_uri()}
        root["initializationOptions"] = {"workspaceFiles": 10, "compile": "off"}
        server.stdin.write(_message("initialize", root, 1) + _message("initialized", {}))
        for number in range(2):
            item = {"uri": f"file:///{number}.cu", "languageId": "cuda-cpp", "version": 1, "text": ENDLESS}
            server.stdin.write(_message("textDocument/didOpen", {"textDocument": item}))
        server.stdin.write(_message("workspace/diagnostic", {"previousResultIds": []}, 3))
        server.stdin.flush()
        until = time.monotonic() + 60
        while not (started := _children(server.pid)) and time.monotonic() < until:
            time.sleep(0.05)
        assert started
        end(server, client)
        assert server.wait(LEAVES_WITHIN) == status
    until = time.monotonic() + LEAVES_WITHIN
    while (left := [pid for pid in started if Path(f"/proc/{pid}").exists()]) and time.monotonic() < until:
        time.sleep(0.05)
    client.kill()
    client.wait()
    assert left == []


def _children(process: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{process}/task").iterdir():
        found += [int(each) for each in (task / "children").read_text().split()]
    return found


def test_work_that_has_ended_is_not_stopped() -> None:
    done = Stoppable(os.getpid, "test")
    assert done.result.result(60) == os.getpid()
    done.stop()
    failed: Stoppable[int] = Stoppable(lambda: int("no number"), "test")
    with pytest.raises(ValueError, match="no number"):
        failed.result.result(60)
