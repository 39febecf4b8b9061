"""A quick fix is made and verified when it is chosen; what did not pass has no edit and says why."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from support.editor import HELIX, OLD_EMACS, VSCODE, Editor, Page, Profile, start_editor
from support.kernels import SEARCHED

pytestmark = pytest.mark.nvcc
FIXED = SEARCHED.replace("tile[32][32]", "tile[32][32 + 1]")


def fix_of(page: Page) -> types.CodeAction:
    return next(a for a in page.actions(page.range("tile[x][y]")) if a.title.startswith("Pad"))


def resolve(page: Page) -> Any:
    return page.editor.request("codeAction/resolve", fix_of(page))


def start_resolve(page: Page, number: str) -> Any:
    return page.editor.start_request("codeAction/resolve", fix_of(page), number)


def progress_of(editor: Editor, known: set[object]) -> str | int:
    """The token of a progress that was not there before, once it has begun."""
    reports = editor.client.progress_reports
    token: str | int = editor.wait(lambda: [t for t in reports if t not in known and reports[t]], "a progress")[0]
    return token


@pytest.mark.parametrize("profile", [OLD_EMACS, HELIX], ids=["resolves nothing", "gives up early"])
def test_a_client_that_cannot_wait_for_a_fix_gets_a_command(profile: Profile, tmp_path: Path) -> None:
    with start_editor(profile, tmp_path, options={"compile": "off"}) as editor:
        page = editor.open("a.cu", SEARCHED)
        # lsprotocol takes an action with a command for a bare command, and keeps the text of the command's object.
        command = ast.literal_eval(str(fix_of(page).command))
        asked = types.ExecuteCommandParams(command=command["command"], arguments=command["arguments"])
        editor.request("workspace/executeCommand", asked)
        assert page.text == FIXED
        assert editor.messages[-1].startswith("Pad the rows of tile by 1 element [")
        editor.request("workspace/executeCommand", asked)  # of a version that is gone
        assert "The document has changed since this was offered" in editor.messages[-1]
        assert page.text == FIXED


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[Page]:
    """A document whose verification takes a while, since the compiler reads large headers; nothing else compiles it."""
    with start_editor(VSCODE, tmp_path, options={"compile": "off"}) as editor:
        yield editor.open("a.cu", "#include <algorithm>\n#include <map>\n#include <regex>\n" + SEARCHED)


def test_the_edit_is_right_versioned_and_wears_its_badge(any_editor: Editor) -> None:
    page = any_editor.open("a.cu", SEARCHED)
    resolved = resolve(page)
    assert resolved.disabled is None
    assert resolved.title.startswith("Pad the rows of tile by 1 element [")
    assert any(word in resolved.title for word in ("compiled", "correct", "faster"))
    (change,) = resolved.edit.document_changes
    assert (change.text_document.uri, change.text_document.version) == (page.uri, 1)
    page.apply(change.edits)
    assert page.text == FIXED
    assert page.diagnostics() == []


def test_a_safe_fix_is_there_at_once_where_it_is_verified_behind(tmp_path: Path) -> None:
    with start_editor(VSCODE, tmp_path, options={"compile": "off", "verifyFixes": "background"}) as editor:
        page = editor.open("a.cu", SEARCHED)
        resolved = resolve(page)
        assert resolved.title == "Pad the rows of tile by 1 element" and editor.messages == []
        page.apply(resolved.edit.document_changes[0].edits)
        assert page.text == FIXED
        editor.wait(lambda: editor.messages, "a message")
        assert editor.messages[-1].startswith("Pad the rows of tile by 1 element: verified [")
        broken = editor.open("b.cu", '#include "not_there.cuh"\n' + SEARCHED)
        assert resolve(broken).edit is not None
        editor.wait(lambda: len(editor.messages) > 1, "a message")
        assert ": did not pass verification; undo it. " in editor.messages[-1]


def test_a_fix_that_cannot_be_verified_is_not_applied_and_says_why(vscode: Editor) -> None:
    page = vscode.open("a.cu", '#include "not_there.cuh"\n' + SEARCHED)
    resolved = resolve(page)
    assert resolved.edit is None
    assert "not_there.cuh" in resolved.disabled.reason
    assert any("not applied" in message and "not_there.cuh" in message for message in vscode.messages)


def test_all_that_is_verified_is_fixed_at_once(vscode: Editor) -> None:
    two = SEARCHED + SEARCHED.replace("transpose", "second").replace("void run", "void again")
    page = vscode.open("a.cu", two)
    (action,) = page.actions(page.range("int n"), ["source.fixAll.warpwright"])
    resolved = vscode.request("codeAction/resolve", action, 120)
    (change,) = resolved.edit.document_changes
    page.apply(change.edits)
    assert page.text == two.replace("tile[32][32]", "tile[32][32 + 1]")
    assert page.diagnostics() == []


def test_an_offer_for_an_older_text_is_refused(vscode: Editor) -> None:
    page = vscode.open("a.cu", SEARCHED)
    offered = fix_of(page)
    page.replace("größe", "groesse")
    resolved = vscode.request("codeAction/resolve", offered)
    assert resolved.edit is None
    assert "changed" in resolved.disabled.reason


def test_a_text_that_changes_during_verification_is_left_alone(busy: Page) -> None:
    request = start_resolve(busy, "changing")
    progress_of(busy.editor, set())
    busy.replace("tile[y][x] =", "tile[y][x + 0] =")
    resolved = request.result(120)
    assert resolved.edit is None
    assert "was edited meanwhile" in resolved.disabled.reason


def test_a_comment_that_changes_during_verification_is_kept(busy: Page) -> None:
    request = start_resolve(busy, "commenting")
    progress_of(busy.editor, set())
    busy.replace("größe", "groesse")
    (change,) = request.result(120).edit.document_changes
    assert change.text_document.version == 2
    mine = busy.text
    busy.apply(change.edits)
    assert busy.text == mine.replace("tile[32][32]", "tile[32][32 + 1]")


def test_an_include_with_unsaved_changes_is_named(vscode: Editor) -> None:
    page = vscode.open("a.cu", '#include "tile.cuh"\n' + SEARCHED.replace("[32][32]", "[32][PITCH]"))
    header_path = vscode.folder / page.uri.split("/")[-2] / "tile.cuh"
    header_path.write_text("#define PITCH 32\n")
    header = vscode.open("tile.cuh", "#define PITCH 32\n", uri=header_path.as_uri())
    header.replace("32", "64")
    page.replace("größe", "groesse")
    resolved = resolve(page)
    assert resolved.edit is None
    assert "tile.cuh has unsaved changes" in resolved.disabled.reason


def test_the_server_answers_meanwhile(busy: Page) -> None:
    editor = busy.editor
    known = set(editor.client.progress_reports)
    request = start_resolve(busy, "meanwhile")
    token = progress_of(editor, known)
    other = editor.open("b.cu", SEARCHED)
    assert other.hover("tile[x][y]") is not None
    assert len(other.diagnostics()) == 1
    assert not request.done()
    assert request.result(120).edit is not None
    kinds = [getattr(report, "kind", None) for report in editor.client.progress_reports[token]]
    assert (kinds[0], kinds[-1]) == ("begin", "end")
    assert "report" in kinds


def test_a_cancelled_request_stops_the_work_and_the_next_one_works(busy: Page) -> None:
    editor = busy.editor
    known = set(editor.client.progress_reports)
    request = start_resolve(busy, "to-cancel")
    progress_of(editor, known)
    editor.wait(lambda: compilers_of(editor), "the compiler")
    editor.notify("$/cancelRequest", types.CancelParams(id="to-cancel"))
    with pytest.raises(Exception, match="cancel"):
        request.result(10)
    editor.wait(lambda: not compilers_of(editor), "the end of the compiler", 10)
    assert resolve(busy).edit is not None


def test_the_users_stop_button_stops_it(busy: Page) -> None:
    editor = busy.editor
    busy.replace("größe", f"groesse{time.time_ns()}")  # a text that no cache knows
    known = set(editor.client.progress_reports)
    request = start_resolve(busy, "to-stop")
    token = progress_of(editor, known)
    editor.notify("window/workDoneProgress/cancel", types.WorkDoneProgressCancelParams(token=token))
    resolved = request.result(20)
    assert resolved.edit is None
    assert "stopped" in resolved.disabled.reason
    editor.wait(lambda: not compilers_of(editor), "the end of the compiler", 10)


def test_a_worker_that_is_killed_costs_one_answer(busy: Page) -> None:
    editor = busy.editor
    busy.replace("größe", f"groesse{time.time_ns()}")
    known = set(editor.client.progress_reports)
    request = start_resolve(busy, "to-kill")
    progress_of(editor, known)
    (worker,) = workers_of(editor)
    os.kill(worker, signal.SIGKILL)
    resolved = request.result(20)
    assert resolved.edit is None
    assert "ended unexpectedly" in resolved.disabled.reason
    assert resolve(busy).edit is not None


def test_the_compiler_is_given_the_users_macros(tmp_path: Path) -> None:
    with start_editor(VSCODE, tmp_path, options={"defines": {"PITCH": 32}}) as editor:
        page = editor.open("a.cu", SEARCHED.replace("[32][32]", "[32][PITCH]"))
        resolved = resolve(page)
        assert resolved.disabled is None
        assert resolved.edit is not None


def test_nothing_outlives_the_server(tmp_path: Path) -> None:
    with start_editor(VSCODE, tmp_path) as editor:
        page = editor.open("a.cu", "#include <regex>\n// " + str(time.time_ns()) + "\n" + SEARCHED)
        start_resolve(page, "at-the-end").add_done_callback(lambda answer: answer.exception())
        progress_of(editor, set())
        children = editor.wait(lambda: workers_of(editor), "the worker")
    for child in children:
        assert not Path(f"/proc/{child}").exists()


def workers_of(editor: Editor) -> list[int]:
    return [pid for pid, command in descendants(editor.process.pid) if "warpwright.editor.worker" in command]


def compilers_of(editor: Editor) -> list[int]:
    return [pid for pid, command in descendants(editor.process.pid) if "nvcc" in command or "cicc" in command]


def descendants(root: int) -> list[tuple[int, str]]:
    rows = subprocess.run(
        ["ps", "-eww", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    found, parents = [], {root}
    listed = [(int(pid), int(parent), command) for pid, parent, command in (row.split(None, 2) for row in rows)]
    for _ in range(10):
        more = [(pid, command) for pid, parent, command in listed if parent in parents and pid not in parents]
        found += more
        parents |= {pid for pid, _ in more}
    return found
