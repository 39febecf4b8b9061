"""Files that are in Latin-1 on disk: what an editor has of them is edited, and no other byte of theirs changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest
from lsprotocol import types
from support.editor import NEOVIM, VSCODE, Editor, Page, start_editor
from support.kernels import SEARCHED

pytestmark = pytest.mark.nvcc
LATIN = "// café\n" + SEARCHED.replace("😀", "ß").replace(";\n", ";  // grüß \xff\n")
FIXED = LATIN.replace("tile[32][32]", "tile[32][32 + 1]")


@pytest.fixture(params=[VSCODE, NEOVIM], ids=["utf-16", "utf-8"])
def editor(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Editor]:
    with start_editor(request.param, tmp_path, options={"compile": "off", "plan": "fixed"}) as started:
        yield started
        assert not [line for line in started.log if "Traceback" in line], started.log


def opened(editor: Editor, name: str, text: str) -> Page:
    """A file as an editor has it that was told its encoding."""
    page = editor.open(name, text)
    path_of(page).write_bytes(text.encode("latin-1"))
    return page


def path_of(page: Page) -> Path:
    return Path(unquote(urlparse(page.uri).path))


def test_a_fix_that_is_resolved_changes_no_other_byte(editor: Editor) -> None:
    page = opened(editor, "a.cu", LATIN)
    fix = next(each for each in page.actions(page.range("tile[x][y]")) if each.title.startswith("Pad"))
    edit = editor.request("codeAction/resolve", fix).edit
    (change,) = edit.document_changes or [*(edit.changes or {}).values()]
    page.apply(change.edits if isinstance(change, types.TextDocumentEdit) else change)
    assert page.text.encode("latin-1") == FIXED.encode("latin-1")


@pytest.mark.sampled(4)
def test_what_a_search_finds_is_applied_and_changes_no_other_byte(editor: Editor) -> None:
    page = opened(editor, "a.cu", LATIN)
    asked = types.ExecuteCommandParams("warpwright.optimize", [{"uri": page.uri, "kernel": "transpose"}])
    result = editor.request("workspace/executeCommand", asked, 240)
    assert result["status"] == "applied", result
    assert page.text.encode("latin-1") == FIXED.encode("latin-1")


@pytest.mark.sampled(4)
def test_a_file_that_is_not_open_and_not_utf_8_is_not_edited(editor: Editor) -> None:
    kernel, _, host = LATIN.partition("void run")
    page = editor.open("a.cu", f'#include "turn.cuh"\nvoid run{host}')
    header = path_of(page).with_name("turn.cuh")
    header.write_bytes(kernel.encode("latin-1"))
    asked = types.ExecuteCommandParams("warpwright.optimize", [{"uri": page.uri, "kernel": "transpose"}])
    result = editor.request("workspace/executeCommand", asked, 240)
    assert result["status"] != "applied", result
    assert "turn.cuh is not UTF-8 and not open" in result["message"]
    assert header.read_bytes() == kernel.encode("latin-1")
