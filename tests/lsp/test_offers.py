"""A search that changes nothing until its user says so: offers, selections, wishes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from support.editor import VSCODE, Editor, Page, start_editor
from support.kernels import CLEAN, SEARCHED

NUMBERS = count(1)
GONE = "There is no such offer any more: run it again."
TWO = SEARCHED + SEARCHED.replace("transpose", "second").replace("void run", "void again")


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    folder = tmp_path_factory.mktemp("workspace")
    options = {"model": "/no/such/model.gguf", "compile": "off"}
    with start_editor(VSCODE, folder, options=options) as started:
        yield started
        assert not [line for line in started.log if "Traceback" in line], started.log


def run(page: Page, command: str, **argument: object) -> Any:
    params = types.ExecuteCommandParams(f"warpwright.{command}", [{"uri": page.uri, **argument}])
    return page.editor.start_request("workspace/executeCommand", params, f"offers-{next(NUMBERS)}").result(240)


def selection(page: Page, words: str) -> dict[str, Any]:
    where = page.range(words)
    return {
        side: {"line": at.line, "character": at.character} for side, at in (("start", where.start), ("end", where.end))
    }


@pytest.mark.nvcc
def test_an_offer_is_shown_chosen_from_and_applied_once(editor: Editor) -> None:
    page = editor.open("a.cu", SEARCHED)
    proposed = run(page, "propose", kernel="transpose", goal="speed")
    assert (proposed["status"], page.text) == ("offered", SEARCHED)
    offer = proposed["offer"]
    assert "+    __shared__ float tile[32][32 + 1];" in offer["diff"]
    assert offer["badge"].startswith("correct")
    assert "bank" in offer["explanation"]
    candidates = proposed["outcome"]["candidates"]
    report = Path(proposed["report"]).read_text()
    assert all(", ".join(each["rewrites"]) in report for each in candidates)

    plainer = run(page, "propose", kernel="transpose", wish="keep it readable")
    assert (plainer["status"], plainer["offer"]["diff"]) == ("offered", offer["diff"])
    smaller = run(page, "propose", kernel="transpose", wish="use less memory")
    assert smaller["status"] == "nothing" and smaller["report"] != proposed["report"]
    assert "The offer is unchanged." in smaller["message"]

    page.replace("__syncthreads();", "__syncthreads(); x += 0;")
    stale = run(page, "propose", kernel="transpose", wish="be bolder", offer=offer["id"])
    assert (stale["status"], stale["message"]) == (
        "failed",
        "transpose, or code that it depends on, was edited meanwhile: run it again.",
    )
    page.replace(" x += 0;", "")

    seen = run(page, "preview", offer=offer["id"])
    assert [file["uri"] for file in seen["files"]] == [page.uri]
    assert seen["files"][0]["text"] == page.text.replace("tile[32][32]", "tile[32][32 + 1]")
    page.replace("/* größe", "/* a größe")
    moved = run(page, "preview", offer=offer["id"])
    assert moved["files"][0]["text"] == page.text.replace("tile[32][32]", "tile[32][32 + 1]"), "beside the user's edit"
    assert run(page, "preview", offer="99")["message"] == GONE

    swizzled = next(c for c in offer["choices"] if candidates[c["candidate"]]["rewrites"] == ["swizzle-shared-array"])
    applied = run(page, "apply", offer=offer["id"], candidate=swizzled["candidate"])
    assert applied["status"] == "applied", applied
    assert applied["report"] == proposed["report"], "not that of the search for less memory, which came later"
    assert "tile[y][x ^ y]" in page.text
    (annotation,) = (editor.applied[-1].edit.change_annotations or {}).values()
    assert annotation.label == f"transpose: swizzle-shared-array [{swizzled['badge']}]"
    assert not annotation.needs_confirmation, "it was seen already"
    again = run(page, "apply", offer=offer["id"])
    assert (again["status"], again["message"]) == ("failed", GONE)


@pytest.mark.slow
@pytest.mark.nvcc
def test_a_selection_asks_for_changes_of_it_alone(editor: Editor) -> None:
    page = editor.open("a.cu", SEARCHED)
    found = run(page, "propose", range=selection(page, "tile[x][y]"))
    assert {name for each in found["outcome"]["candidates"] for name in each["rewrites"]} == {
        "pad-shared-array",
        "swizzle-shared-array",
    }, "both cure what is found there"
    nothing = run(page, "propose", range=selection(page, "__syncthreads();"))
    assert nothing["status"] == "nothing"
    assert nothing["message"] == (
        "transpose: Nothing that applies to transpose is about the selected lines: select nothing to have all tried."
    )


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("argument", "says"),
    [
        ({"goal": "beauty"}, 'The goal must be "speed", "memory", "fix", "fixAll" or "generate".'),
        ({"kernel": "transpose", "wish": ""}, "A wish is a text of at most 400 characters."),
        ({"kernel": "transpose", "wish": "x" * 401}, "A wish is a text of at most 400 characters."),
        ({"kernel": "transpose", "offer": "99", "wish": "go on"}, GONE),
        (
            {"kernel": "transpose", "wish": "paint it blue"},
            '"paint it blue" asks for nothing that a search knows. Say some of: more aggressive, exact, readable, '
            "faster, less memory, fix. A larger model, named in the setting `model`, may be asked for more.",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_for_is_said(editor: Editor, argument: dict[str, object], says: str) -> None:
    page = editor.open("a.cu", CLEAN)
    result = run(page, "propose", **argument)
    assert (result["status"], result["message"]) == ("failed", says)


def test_a_selection_over_two_kernels_is_none(editor: Editor) -> None:
    page = editor.open("a.cu", TWO)
    result = run(page, "propose", range=selection(page, TWO))
    assert result["message"] == "The selection spans transpose and second: select within one kernel."


BROKEN = SEARCHED.replace("    __syncthreads();", "    __syncthread()")


@pytest.mark.slow
@pytest.mark.nvcc
def test_a_kernel_that_does_not_compile_is_fixed_step_by_step(editor: Editor) -> None:
    page = editor.open("a.cu", BROKEN)
    result = run(page, "fix", kernel="transpose")
    assert result["status"] == "applied", result
    assert page.text == SEARCHED
    (candidate,) = result["outcome"]["candidates"]
    assert candidate["rewrites"] == ["misspelled-name", "missing-semicolon"]
    assert candidate["report"]["badge"] == "compiled, not run: the original does not compile"
    assert "is meant, in 1 place" in Path(result["report"]).read_text()


@pytest.mark.slow
@pytest.mark.nvcc
def test_nothing_is_searched_for_in_a_text_that_does_not_compile(editor: Editor) -> None:
    page = editor.open("a.cu", BROKEN)
    result = run(page, "optimize", kernel="transpose")
    assert result["status"] == "failed"
    assert result["message"].startswith(
        "transpose cannot be compared with anything until its file compiles: nvcc found"
    )
    assert result["message"].endswith("Run Fix.")
