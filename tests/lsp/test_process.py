"""The server as a process: what it loads, how it is reached, how it ends."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.editor import NEOVIM, SERVER, VSCODE, start_editor
from support.kernels import CONFLICT

HEAVY = {"numpy", "torch", "rich", "llama_cpp", "pydantic", "transformers", "huggingface_hub", "pytest", "click"}


def test_nothing_heavy_is_loaded_by_real_work(tmp_path: Path) -> None:
    """The server is started with a hook that writes down its modules when it ends, and made to answer everything."""
    modules = tmp_path / "modules.json"
    program = (
        "import atexit, json, pathlib, sys\n"
        f"atexit.register(lambda: pathlib.Path({str(modules)!r}).write_text(json.dumps(sorted(sys.modules))))\n"
        "from warpwright.lsp.__main__ import main\n"
        "sys.exit(main([]))\n"
    )
    with start_editor(VSCODE, tmp_path, command=[sys.executable, "-c", program]) as editor:
        page = editor.open("a.cu", CONFLICT)
        page.diagnostics()
        assert page.hover("tile[x][y]") is not None
        assert page.actions(page.range("tile[x][y]"))
    loaded = set(json.loads(modules.read_text()))
    assert "warpwright.lsp.server" in loaded
    assert not loaded & HEAVY


def test_stdout_carries_the_protocol_alone(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom warpwright.editor import hover\nhonest = hover.hover\n"
        "def noisy(*arguments):\n    print('a print from somewhere')\n    return honest(*arguments)\n"
        "import warpwright.lsp.hover as method\nmethod.hover_at = noisy\n"
        "from warpwright.lsp.__main__ import main\nsys.exit(main([]))\n"
    )
    with start_editor(VSCODE, tmp_path, command=[sys.executable, "-u", "-c", program]) as editor:
        page = editor.open("a.cu", CONFLICT)
        assert page.hover("tile[x][y]") is not None
        editor.wait(lambda: "a print from somewhere" in editor.log, "the print on stderr")


def test_a_fault_in_a_handler_is_one_line_in_the_log(tmp_path: Path) -> None:
    program = (
        "import sys\nimport warpwright.lsp.hover as method\n"
        "def broken(*arguments):\n    raise KeyError('no\\nsuch')\nmethod.hover_at = broken\n"
        "from warpwright.lsp.__main__ import main\nsys.exit(main([]))\n"
    )
    with start_editor(VSCODE, tmp_path, command=[sys.executable, "-c", program]) as editor:
        page = editor.open("a.cu", CONFLICT)
        assert page.hover("tile[x][y]") is None
        assert len(page.diagnostics()) == 1
        editor.wait(lambda: editor.log, "the log")
        assert len(editor.log) == 1
        assert "hover failed: KeyError" in editor.log[0]
        assert editor.messages == []


@pytest.mark.parametrize("command", [["-m", "warpwright.cli", "serve", "--stdio"], ["-m", "warpwright.lsp", "--stdio"]])
def test_both_ways_to_start_it(command: list[str], tmp_path: Path) -> None:
    with start_editor(VSCODE, tmp_path, command=[sys.executable, *command]) as editor:
        assert len(editor.open("a.cu", CONFLICT).diagnostics()) == 1
        process = editor.process
        assert editor.log == []
    assert process.returncode == 0


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    command = [sys.executable, "-m", "warpwright.lsp", "--tcp", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        try:
            yield int(re.fullmatch(r"warpwright: listening on 127\.0\.0\.1:(\d+)\n", said)[1])  # type: ignore[index]
            assert process.poll() is None
        finally:
            process.terminate()


def test_several_editors_over_tcp_know_nothing_of_each_other(port: int, tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
    with start_editor(VSCODE, tmp_path / "one", port=port) as one:
        page = one.open("a.cu", CONFLICT)
        with start_editor(NEOVIM, tmp_path / "two", port=port, options={"ignore": ["bank-conflict"]}) as two:
            other = two.open("a.cu", CONFLICT, uri=page.uri)
            assert (one.encoding, two.encoding) == ("utf-16", "utf-8")
            assert other.diagnostics() == []
            assert len(page.diagnostics()) == 1
        assert len(page.diagnostics()) == 1
    with start_editor(VSCODE, tmp_path / "three", port=port) as three:
        assert len(three.open("a.cu", CONFLICT).diagnostics()) == 1


def test_a_port_that_is_taken(port: int) -> None:
    command = [sys.executable, "-m", "warpwright.lsp", "--tcp", str(port)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert (
        done.stderr == f"warpwright: port {port} cannot be listened on: Address already in use. Choose another one.\n"
    )


def test_an_interrupt_ends_it_at_once() -> None:
    """As Ctrl-C does for a person who started the server in a terminal to see whether it runs."""
    pipe = subprocess.PIPE
    with subprocess.Popen([*SERVER], stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        body = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}'
        process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        process.stdin.flush()
        assert process.stdout.readline().startswith(b"Content-Length")
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_the_server_and_its_workers_import_nothing_that_windows_lacks() -> None:
    code = """
import asyncio, concurrent.futures.process, multiprocessing, selectors, shutil, subprocess, sys, tempfile, uuid
for name in ("fcntl", "resource", "pwd", "grp", "termios", "syslog"):
    sys.modules[name] = None
import warpwright.lsp.server, warpwright.editor.worker
import warpwright.emulator.__main__, warpwright.verify.emulated.__main__
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stderr
