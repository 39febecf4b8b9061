"""A hover says what is known of the thing under the cursor, with the launch that it holds for."""

from __future__ import annotations

import pytest
from support.editor import Editor
from support.kernels import CONFLICT


@pytest.mark.parametrize(
    ("words", "occurrence", "says", "marks"),
    [
        (
            "tile[x][y]",
            0,
            ["Shared load", "**32 wavefronts/request** (ideal 1)", "bank", "a.cu:9"],
            "tile[x][y]",
        ),
        ("in[(block", 0, ["Global load", "4 sectors/request** (ideal)"], None),
        ("__syncthreads", 0, ["Barrier"], "__syncthreads()"),
        ("transpose", 1, ["Launch", "block 32 x 32", "1024 threads", "32 warps"], None),
        ("tile[32]", 0, ["Shared array", "4,096 bytes", "same bank"], None),
        ("transpose", 0, ["Kernel", "1 finding", "32 times"], "transpose"),
    ],
)
def test_says_what_is_known(
    any_editor: Editor, words: str, occurrence: int, says: list[str], marks: str | None
) -> None:
    page = any_editor.open("a.cu", CONFLICT)
    answer = page.hover(words, occurrence)
    assert answer is not None
    for phrase in says:
        assert phrase in answer.contents.value  # type: ignore[union-attr]
    assert answer.range is not None
    assert marks is None or page.words(answer.range) == marks


def test_says_nothing_where_there_is_nothing_to_say(vscode: Editor) -> None:
    page = vscode.open("a.cu", CONFLICT)
    assert page.hover("if (cuda") is None
    assert page.hover("größe") is None


def test_follows_the_text(any_editor: Editor) -> None:
    page = any_editor.open("a.cu", CONFLICT)
    page.replace("größe 😀", "é")
    page.replace("[32][32]", "[32][33]")
    page.diagnostics()
    assert "**1 wavefront/request** (ideal)" in page.hover_text("tile[x][y]")


@pytest.mark.slow
def test_is_answered_while_a_large_document_is_analysed(vscode: Editor) -> None:
    """The loop is not held up: another document's hover is answered though thousands of lines are being analysed."""
    small = vscode.open("small.cu", CONFLICT)
    small.diagnostics()
    kernels = "\n".join(CONFLICT.replace("transpose", f"transpose_{n}").replace("run", f"run_{n}") for n in range(400))
    large = vscode.open("large.cu", "#define PITCH 32\n" + kernels.replace("[32][32]", "[32][PITCH]"))
    answer = small.hover("tile[x][y]")
    assert answer is not None
    assert len(large.diagnostics()) == 400
    large.replace("PITCH 32", "PITCH 33")  # every kernel is followed anew
    said = large.hover_text("tile[x][y]")
    assert "1 wavefront/request" in said or ("32 wavefronts" in said and "before the last edit" in said)


def test_draws_a_request_as_the_client_can_show_it(any_editor: Editor) -> None:
    page = any_editor.open("a.cu", CONFLICT)
    page.diagnostics()
    text = page.hover_text("tile[x][y]")
    is_vscode = any_editor.profile.name == "Visual Studio Code"
    assert ("](data:image/svg+xml;base64," in text) == is_vscode
    assert ("```text\nbank  words  lanes\n0        32  0-31\n```" in text) != is_vscode
