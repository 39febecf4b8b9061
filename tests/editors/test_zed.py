"""What Zed would send with the page's settings, without Zed: a server that is started by them, for C++."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from lsprotocol import types
from support.command import command_on_path
from support.editor import Profile, start_editor
from support.editors import KERNEL, LINE, PAGE
from support.pages import blocks

ZED = Profile("Zed", (types.PositionEncodingKind.Utf16,), pulls=True)


def test_the_server_understands_what_zed_sends(tmp_path: Path) -> None:
    (block,) = blocks(PAGE["Zed"], "json")
    (settings,) = json.loads(block)["lsp"].values()
    programs = tmp_path / "bin"
    programs.mkdir()
    program = shutil.which(settings["binary"]["path"], path=command_on_path(programs))
    assert program is not None
    command = [program, *settings["binary"]["arguments"]]
    environment = {"WARPWRIGHT_NVCC": "/no/such/nvcc"}
    options = settings["initialization_options"]
    with start_editor(ZED, tmp_path, options=options, command=command, environment=environment) as editor:
        page = editor.open("a.cu", KERNEL, language="c++")
        (finding,) = page.diagnostics()
        assert (finding.code, finding.range.start.line) == ("bank-conflict", LINE - 1)
        assert page.actions(page.range("tile[x][y]"))[0].title == "Pad the rows of tile by 1 element"
