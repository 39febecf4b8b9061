"""Fixing all that a rule found, as a command: what is verified is one change, what is not is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from support.editor import Editor, Page
from support.kernels import CLEAN, SEARCHED

TWO = SEARCHED + SEARCHED.replace("transpose", "second").replace("void run", "void again")


def run(page: Page, command: str, **argument: object) -> Any:
    params = types.ExecuteCommandParams(f"warpwright.{command}", [{"uri": page.uri, **argument}])
    return page.editor.request("workspace/executeCommand", params, 120)


@pytest.mark.nvcc
def test_what_a_rule_found_in_two_kernels_is_one_change(vscode: Editor) -> None:
    page = vscode.open("a.cu", TWO)
    result = run(page, "fixAll", rule="bank-conflict")
    assert result["status"] == "applied", result
    assert result["message"].startswith("2 findings of bank-conflict fixed (correct")
    assert page.text == TWO.replace("tile[32][32]", "tile[32][32 + 1]")
    assert len(vscode.applied[-1].edit.document_changes or ()) == 1
    report = Path(result["report"]).read_text(encoding="utf-8")
    assert report.count("pad-shared-array") >= 2


@pytest.mark.nvcc
def test_what_was_edited_meanwhile_keeps_the_offer_from_any_of_its_kernels(vscode: Editor) -> None:
    page = vscode.open("b.cu", TWO)
    offer = run(page, "propose", goal="fixAll", rule="bank-conflict")["offer"]
    page.replace("void again", "// mine\nvoid again")
    moved = run(page, "preview", offer=offer["id"])["files"]
    assert moved[0]["text"] == page.text.replace("tile[32][32]", "tile[32][32 + 1]")
    start = page.text.index("second")
    page.set(page.text[:start] + page.text[start:].replace("__syncthreads();", "__syncthreads(); x += 0;"))
    result = run(page, "apply", offer=offer["id"])
    assert (result["status"], result["message"]) == (
        "not-applied",
        "second, or code that it depends on, was edited meanwhile: run it again.",
    )


@pytest.mark.nvcc
def test_with_nothing_to_fix_it_says_so(vscode: Editor) -> None:
    result = run(vscode.open("c.cu", CLEAN), "fixAll")
    assert result["status"] == "nothing"
    assert result["message"] == "all findings: No finding here has a fix that is safe."
