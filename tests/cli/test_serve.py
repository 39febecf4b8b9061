"""`warpwright serve` is the language server: it answers a client and ends with it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from support.command import COMMAND, environment, run_command
from warpwright import __version__


def message(**fields: object) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", **fields}).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def test_it_answers_on_stdio_in_a_folder_whose_modules_it_leaves_alone(tmp_path: Path) -> None:
    (tmp_path / "lsprotocol.py").write_text("raise SystemExit(9)\n", encoding="utf-8")
    talk = [
        message(id=1, method="initialize", params={"processId": None, "rootUri": None, "capabilities": {}}),
        message(method="initialized", params={}),
        message(id=2, method="shutdown"),
        message(method="exit"),
    ]
    done = subprocess.run(
        [*COMMAND, "serve"],
        input=b"".join(talk),
        capture_output=True,
        cwd=tmp_path,
        env=environment(),
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    header, _, rest = done.stdout.partition(b"\r\n\r\n")
    length = int(header.partition(b"Content-Length: ")[2].partition(b"\r\n")[0])
    answer = json.loads(rest[:length])
    assert answer["result"]["serverInfo"] == {"name": "warpwright", "version": __version__}


def test_stdio_and_tcp_exclude_each_other(tmp_path: Path) -> None:
    assert run_command("serve", "--stdio", "--tcp", "0", cwd=tmp_path).status == 2
