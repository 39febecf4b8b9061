"""Folders of a workspace with settings of their own, and projects whose files hold over them."""

from __future__ import annotations

from pathlib import Path

from lsprotocol import types
from support.editor import OLD_NEOVIM, VSCODE, Editor, Page, start_editor
from support.kernels import CONFLICT


def opened(editor: Editor, folder: Path) -> Page:
    folder.mkdir(exist_ok=True)
    (folder / "a.cu").write_text(CONFLICT, encoding="utf-8")
    return editor.open("", CONFLICT, uri=(folder / "a.cu").as_uri())


def change_folders(editor: Editor, added: list[Path], removed: list[Path]) -> None:
    event = types.WorkspaceFoldersChangeEvent(
        added=[types.WorkspaceFolder(uri=each.as_uri(), name=each.name) for each in added],
        removed=[types.WorkspaceFolder(uri=each.as_uri(), name=each.name) for each in removed],
    )
    asked, count = editor.asked_for_settings, editor.client.diagnostic_refresh_count
    editor.notify("workspace/didChangeWorkspaceFolders", types.DidChangeWorkspaceFoldersParams(event))
    editor.wait(lambda: editor.asked_for_settings > asked, "a question for the folders' settings")
    editor.wait(lambda: editor.client.diagnostic_refresh_count > count, "workspace/diagnostic/refresh")


def test_each_folder_has_settings_of_its_own(tmp_path: Path) -> None:
    with start_editor(VSCODE, tmp_path) as editor:
        pages = {name: opened(editor, tmp_path / name) for name in ("strict", "lax", "other")}
        assert [len(page.diagnostics()) for page in pages.values()] == [1, 1, 1]
        client = editor.client
        client.set_configuration({"compile": "off"}, section="warpwright")
        client.set_configuration({"ignore": ["memory"]}, section="warpwright", scope_uri=(tmp_path / "lax").as_uri())
        strict = {"severities": {"bank-conflict": "error"}}
        client.set_configuration(strict, section="warpwright", scope_uri=(tmp_path / "strict").as_uri())
        change_folders(editor, [tmp_path / "lax", tmp_path / "strict"], [])
        assert pages["lax"].diagnostics() == []
        assert [d.severity for d in pages["strict"].diagnostics()] == [types.DiagnosticSeverity.Error]
        assert [d.severity for d in pages["other"].diagnostics()] == [types.DiagnosticSeverity.Warning]
        change_folders(editor, [], [tmp_path / "lax"])
        assert len(pages["lax"].diagnostics()) == 1
        assert not editor.messages


def test_a_projects_file_holds_over_the_editor_and_is_taken_up_at_once(tmp_path: Path) -> None:
    with start_editor(VSCODE, tmp_path, options={"severities": {"memory": "hint"}}) as editor:
        page = opened(editor, tmp_path / "project")
        assert [d.severity for d in page.diagnostics()] == [types.DiagnosticSeverity.Hint]
        settings = tmp_path / "project" / "warpwright.toml"
        settings.write_text('[severities]\nbank-conflict = "error"\n')
        editor.tell_of(settings, types.FileChangeType.Created)
        assert [d.severity for d in page.diagnostics()] == [types.DiagnosticSeverity.Error]
        settings.unlink()
        editor.tell_of(settings, types.FileChangeType.Deleted)
        assert [d.severity for d in page.diagnostics()] == [types.DiagnosticSeverity.Hint]


def test_what_is_wrong_in_it_is_shown_in_it_and_said_once(tmp_path: Path) -> None:
    with start_editor(OLD_NEOVIM, tmp_path) as editor:
        settings = tmp_path / "project" / "pyproject.toml"
        settings.parent.mkdir()
        settings.write_text("[tool.warpwright]\nblock = [32, 8]\ncolour = 1\n")
        page = opened(editor, tmp_path / "project")
        editor.wait(lambda: editor.messages, "a message")
        assert editor.messages == [f"{settings}:3: warpwright.colour: there is no such setting."]
        shown = [p for p in editor.published if p.uri == settings.as_uri()]
        assert [(d.range.start.line, d.message) for d in shown[-1].diagnostics] == [
            (2, "warpwright.colour: there is no such setting.")
        ]
        editor.tell_of(settings)
        settings.write_text("[tool.warpwright]\nblock = [32, 8]\n")
        editor.tell_of(settings)
        published = editor.wait(
            lambda: [p for p in editor.published if p.uri == settings.as_uri() and not p.diagnostics], "an empty report"
        )
        assert published
        assert len(editor.messages) == 1
        assert len(page.diagnostics()) == 1


def test_what_a_message_quotes_of_a_file_is_no_link(tmp_path: Path) -> None:
    with start_editor(VSCODE, tmp_path) as editor:
        settings = tmp_path / "project" / "warpwright.toml"
        settings.parent.mkdir()
        settings.write_text('"[Repair it](command:workbench.action.quit)" = 1\n')
        opened(editor, tmp_path / "project")
        (message,) = editor.wait(lambda: editor.messages, "a message")
        assert "warpwright.[Repair it] (command:workbench.action.quit): there is no such setting." in message
