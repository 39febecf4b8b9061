"""Findings reach the editor: where they are, how they look, for the text that the editor has, and no other."""

from __future__ import annotations

import pytest
from lsprotocol import types
from support.editor import Editor, Page
from support.kernels import CLEAN, CONFLICT


def rules(page: Page) -> list[object]:
    return [diagnostic.code for diagnostic in page.diagnostics()]


def test_a_finding_stands_at_its_text_in_the_clients_units(any_editor: Editor) -> None:
    page = any_editor.open("a.cu", CONFLICT)
    (diagnostic,) = page.diagnostics()
    assert page.words(diagnostic.range) == "tile[x][y]"
    assert diagnostic.code == "bank-conflict"
    assert diagnostic.source == "warpwright"
    assert diagnostic.severity == types.DiagnosticSeverity.Warning
    assert "32 wavefronts" in diagnostic.message
    assert diagnostic.code_description is not None
    assert diagnostic.code_description.href.endswith("/docs/rules/bank-conflict.md")
    assert diagnostic.data["evidence"]["wavefronts_per_request"] == 32


def test_units_are_those_that_were_agreed(vscode: Editor, neovim: Editor, old_neovim: Editor) -> None:
    assert (vscode.encoding, neovim.encoding, old_neovim.encoding) == ("utf-16", "utf-8", "utf-16")
    columns = [editor.open("a.cu", CONFLICT).diagnostics()[0].range.start.character for editor in (vscode, neovim)]
    before = CONFLICT.splitlines()[4].split("tile")[0]
    assert columns == [len(before.encode("utf-16-le")) // 2, len(before.encode())]


def test_the_launch_that_fixes_the_shape_is_related(any_editor: Editor) -> None:
    page = any_editor.open("a.cu", CONFLICT)
    (diagnostic,) = page.diagnostics()
    (related,) = diagnostic.related_information or ()
    assert related.location.uri == page.uri
    assert page.words(related.location.range).startswith("transpose<<<")


def test_an_edit_makes_the_finding_go_and_come_back(any_editor: Editor) -> None:
    page = any_editor.open("a.cu", CONFLICT)
    assert rules(page) == ["bank-conflict"]
    page.replace("tile[32][32]", "tile[32][33]")
    assert rules(page) == []
    page.replace("tile[32][33]", "tile[32][32]")
    page.replace("größe", "größte 😀 Größe\f")
    (diagnostic,) = page.diagnostics()
    assert page.words(diagnostic.range) == "tile[x][y]"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("line_end", ["\r\n", "\r"])
def test_other_line_ends(any_editor: Editor, line_end: str) -> None:
    page = any_editor.open("a.cu", CONFLICT.replace("/* größe", "/* \f\u2028größe").replace("\n", line_end))
    (diagnostic,) = page.diagnostics()
    assert page.words(diagnostic.range) == "tile[x][y]"
    page.replace("void run(", f"// a line{line_end}void run(")
    (diagnostic,) = page.diagnostics()
    assert page.words(diagnostic.range) == "tile[x][y]"


def test_a_suppression_comment_silences(any_editor: Editor) -> None:
    page = any_editor.open("a.cu", CONFLICT)
    page.replace("    /* é😀 */", "    // warpwright: ignore[bank-conflict]\n    /* é😀 */")
    assert rules(page) == []


def test_pushes_only_to_clients_that_cannot_pull_and_with_the_version(vscode: Editor, old_neovim: Editor) -> None:
    for editor in (vscode, old_neovim):
        page = editor.open("a.cu", CONFLICT)
        page.replace("tile[32][32]", "tile[32][33]")
        page.replace("tile[32][33]", "tile[32][32]")
        page.diagnostics()
    assert vscode.published == []
    assert {p.version for p in old_neovim.published if p.uri == page.uri} <= {1, 2, 3}
    last = [p for p in old_neovim.published if p.uri == page.uri][-1]
    assert (last.version, len(last.diagnostics)) == (3, 1)


def test_closing_takes_the_pushed_findings_away(old_neovim: Editor) -> None:
    page = old_neovim.open("a.cu", CONFLICT)
    page.diagnostics()
    page.close()
    old_neovim.wait(
        lambda: [p for p in old_neovim.published if p.uri == page.uri and not p.diagnostics and p.version is None],
        "an empty report",
    )


def test_an_unchanged_document_is_reported_as_unchanged(vscode: Editor) -> None:
    page = vscode.open("a.cu", CONFLICT)
    first = page.pull()
    assert page.pull(first.result_id).kind == "unchanged"
    page.replace("tile[32][32]", "tile[32][33]")
    again = page.pull(first.result_id)
    assert again.kind == "full"
    assert again.items == ()


def test_a_reopened_document_is_not_mistaken_for_its_earlier_self(vscode: Editor) -> None:
    page = vscode.open("a.cu", CONFLICT)
    first = page.pull()
    page.close()
    again = vscode.open("a.cu", CLEAN, uri=page.uri)
    report = again.pull(first.result_id)
    assert report.kind == "full"
    assert report.items == ()


def test_an_include_is_read_from_its_open_document(any_editor: Editor) -> None:
    page = any_editor.open("a.cu", '#include "tile.cuh"\n' + CONFLICT.replace("[32][32]", "[32][PITCH]"))
    header_path = any_editor.folder / page.uri.split("/")[-2] / "tile.cuh"
    header_path.write_text("#define PITCH 33\n")
    page.replace("größe", "groesse")  # the header was not there when the document was opened
    assert rules(page) == []
    header = any_editor.open("tile.cuh", "#define PITCH 33\n", uri=header_path.as_uri())
    header.replace("33", "32")
    any_editor.wait(lambda: _newest(page) == ["bank-conflict"], "the finding that the open header makes")
    header.close()  # what is on disk holds again
    any_editor.wait(lambda: _newest(page) == [], "the header on disk")


def test_a_client_that_pulls_is_told_when_an_include_changed(vscode: Editor) -> None:
    page = vscode.open("a.cu", '#include "tile.cuh"\n' + CONFLICT.replace("[32][32]", "[32][PITCH]"))
    header_path = vscode.folder / page.uri.split("/")[-2] / "tile.cuh"
    header_path.write_text("#define PITCH 32\n")
    page.replace("größe", "groesse")
    assert rules(page) == ["bank-conflict"]
    count = vscode.client.diagnostic_refresh_count
    header_path.write_text("#define PITCH 33\n")
    vscode.tell_of(header_path)
    vscode.wait(lambda: vscode.client.diagnostic_refresh_count > count, "workspace/diagnostic/refresh")
    assert rules(page) == []


def test_an_include_that_was_looked_for_in_vain_is_found_when_it_comes(vscode: Editor) -> None:
    page = vscode.open("a.cu", '#include "tile.cuh"\n' + CONFLICT.replace("[32][32]", "[32][PITCH]"))
    before = rules(page)
    header_path = vscode.folder / page.uri.split("/")[-2] / "tile.cuh"
    header_path.write_text("#define PITCH 32\n")
    vscode.tell_of(header_path, types.FileChangeType.Created)
    assert before == []
    assert rules(page) == ["bank-conflict"]


def test_a_burst_of_edits_ends_in_the_findings_of_the_last_text(any_editor: Editor) -> None:
    page = any_editor.open("a.cu", CLEAN)
    for character in "int extra_name = 0; ":
        page.replace("__syncthreads();", character + "__syncthreads();")
    page.replace("[32][33]", "[32][32]")
    (diagnostic,) = page.diagnostics()
    assert page.words(diagnostic.range) == "tile[x][y]"


def _newest(page: Page) -> list[object]:
    if page.editor.profile.pulls:
        return rules(page)
    published = [p for p in page.editor.published if p.uri == page.uri]
    return [d.code for d in published[-1].diagnostics] if published else []


def test_a_header_is_judged_by_the_launches_of_who_includes_it(any_editor: Editor) -> None:
    kernel, host = CONFLICT.split("\nvoid run", 1)
    page = any_editor.open("kernel.cuh", "#pragma once\n" + kernel)
    folder = any_editor.folder / page.uri.split("/")[-2]
    unit = folder / "main.cu"
    unit.write_text('#include "kernel.cuh"\nvoid run' + host, encoding="utf-8")
    page.replace("größe", "groesse")
    (diagnostic,) = page.diagnostics()
    assert "32 wavefronts" in diagnostic.message
    (related,) = diagnostic.related_information or ()
    assert related.location.uri == unit.as_uri()
    main = any_editor.open("main.cu", unit.read_text(encoding="utf-8"), uri=unit.as_uri())
    assert main.diagnostics() == []
    main.replace("dim3(32, 32)>>>", "dim3(32, 16)>>>")
    any_editor.wait(lambda: "32 x 16" in page.hover_text("transpose"), "the other launch")
    page.close()
    main.close()
