"""Settings come with initialize and from the client's configuration, and hold at once."""

from __future__ import annotations

from pathlib import Path

from support.editor import OLD_NEOVIM, VSCODE, start_editor
from support.kernels import CONFLICT

NO_LAUNCH = CONFLICT.split("void run")[0]


def test_from_initialization_options(tmp_path: Path) -> None:
    with start_editor(VSCODE, tmp_path, options={"ignore": ["bank-conflict"]}) as editor:
        assert editor.open("a.cu", CONFLICT).diagnostics() == []


def test_a_change_is_seen_without_an_edit(tmp_path: Path) -> None:
    with start_editor(VSCODE, tmp_path) as editor:
        page = editor.open("a.cu", CONFLICT)
        assert len(page.diagnostics()) == 1
        count = editor.client.diagnostic_refresh_count
        editor.set_settings({"ignore": ["memory"], "trace": {"server": "off"}})
        editor.wait(lambda: editor.client.diagnostic_refresh_count > count, "workspace/diagnostic/refresh")
        assert page.diagnostics() == []
        assert editor.messages == []


def test_a_change_is_pushed_to_clients_that_cannot_pull(tmp_path: Path) -> None:
    with start_editor(OLD_NEOVIM, tmp_path) as editor:
        page = editor.open("a.cu", CONFLICT)
        assert len(page.diagnostics()) == 1
        editor.set_settings({"select": ["uncoalesced-access"]})
        editor.wait(lambda: editor.published[-1].diagnostics == (), "an empty report")


def test_the_assumed_block_is_the_users(tmp_path: Path) -> None:
    with start_editor(VSCODE, tmp_path, options={"block": [16, 16]}) as editor:
        assert "16 x 16" in editor.open("a.cu", NO_LAUNCH).hover_text("transpose")
