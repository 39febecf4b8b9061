"""Files that are not open: reported piece by piece, kept where nothing changed, up to the limit of the settings."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import Any

from lsprotocol import types
from support.editor import NEOVIM, VSCODE, Editor, start_editor
from support.kernels import CLEAN, CONFLICT


def pulled(editor: Editor, known: list[types.PreviousResultId], number: str, token: str | None = None) -> Future[Any]:
    params = types.WorkspaceDiagnosticParams(previous_result_ids=known, partial_result_token=token)
    return editor.start_request("workspace/diagnostic", params, number)


def results(reports: list[Any]) -> list[types.PreviousResultId]:
    return [types.PreviousResultId(uri=report.uri, value=report.result_id) for report in reports]


def test_files_that_are_not_open_are_reported_and_only_what_changed_again(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / ".hidden").mkdir()
    one, two, header = tmp_path / "deep" / "one.cu", tmp_path / "two.cu", tmp_path / "two.cuh"
    one.write_text(CONFLICT, encoding="utf-8")
    two.write_text('#include "two.cuh"\n' + CLEAN.replace("[33]", "[PITCH]"), encoding="utf-8")
    header.write_text("#define PITCH 33\n")
    (tmp_path / ".hidden" / "three.cu").write_text(CONFLICT, encoding="utf-8")
    with start_editor(NEOVIM, tmp_path, options={"workspaceFiles": 10}) as editor:
        reports = pulled(editor, [], "first").result(60).items
        assert {report.uri: len(report.items) for report in reports} == {one.as_uri(): 1, two.as_uri(): 0}
        (found,) = (d for report in reports for d in report.items)
        line = CONFLICT.splitlines()[found.range.start.line].encode()
        assert line[found.range.start.character : found.range.end.character] == b"tile[x][y]"
        assert found.related_information[0].location.uri == one.as_uri()

        waiting = pulled(editor, results(reports), "second")
        page = editor.open("other.cu", CLEAN)  # is answered while the second question waits
        assert page.diagnostics() == []
        again = waiting.result(60).items  # a document that was opened may be one of those
        assert {report.kind for report in again} == {"unchanged"}

        waiting = pulled(editor, results(reports), "third")
        header.write_text("#define PITCH 32\n")
        editor.tell_of(header)
        assert {report.uri: len(report.items) for report in waiting.result(60).items}[two.as_uri()] == 1

        waiting = pulled(editor, results(reports), "fourth")
        one.unlink()
        editor.tell_of(one, types.FileChangeType.Deleted)
        gone = next(report for report in waiting.result(60).items if report.uri == one.as_uri())
        assert (gone.kind, list(gone.items)) == ("full", [])


def test_many_files_come_piece_by_piece_up_to_the_limit_which_is_said_once(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number:02}.cu").write_text(CONFLICT, encoding="utf-8")
    parts: list[Any] = []
    with start_editor(VSCODE, tmp_path, options={"workspaceFiles": 17}) as editor:
        features = editor.client.protocol.fm.features
        others = features[types.PROGRESS]
        features[types.PROGRESS] = lambda p: parts.append(p.value) if p.token == "parts" else others(p)
        assert list(pulled(editor, [], "first", token="parts").result(60).items) == []
        sent = [report["uri"] for part in parts for report in part["items"]]
        assert sent == [(tmp_path / f"{number:02}.cu").as_uri() for number in range(17)]
        assert len(parts) == 3
        editor.tell_of(tmp_path / "00.cu")
        pulled(editor, [], "second").result(60)
        (said,) = (each.message for each in editor.client.log_messages)
        assert said == f"{tmp_path} has more files than are analysed unopened: the first 17 .cu files are."
        assert not editor.messages


def test_with_0_nothing_is_looked_at_and_a_cancel_ends_the_wait(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(CONFLICT, encoding="utf-8")
    with start_editor(VSCODE, tmp_path, options={"workspaceFiles": 0}) as editor:
        assert list(pulled(editor, [], "first").result(60).items) == []
        waiting = pulled(editor, [], "second")
        editor.notify("$/cancelRequest", types.CancelParams(id="second"))
        error = waiting.exception(60)
        assert error is not None
        editor.set_settings({})
        assert len(pulled(editor, [], "third").result(60).items) == 1  # files are looked at unless told otherwise
