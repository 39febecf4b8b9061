"""Emacs with eglot, set up by the page's own lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.editors import LINE, PAGE, SILENCED, Project, seen_by
from support.pages import blocks

pytestmark = pytest.mark.emacs
LOOK = Path(__file__).with_name("emacs.el")


def look(project: Project, action: str) -> dict[str, Any]:
    """Open the kernel, choose a code action at its finding, and return what was seen."""
    (set_up,) = blocks(PAGE["Emacs"], "elisp")
    init = project.home / "init.el"
    init.write_text(set_up, encoding="utf-8")
    variables = {"WW_KERNEL": str(project.kernel), "WW_ACTION": action}
    return seen_by(project, ["emacs", "--batch", "--load", init, "--load", LOOK], **variables)


def test_a_kernel_in_emacs(project: Project) -> None:
    seen = look(project, "Suppress bank-conflict")
    assert seen["mode"] == "cuda-mode"
    assert seen["finding"]["line"] == LINE
    assert "[bank-conflict]" in seen["finding"]["text"]
    assert "32 wavefronts/request" in seen["hover"]
    assert "Pad the rows of tile by 1 element" in seen["actions"]
    assert "Optimize kernel transpose" in seen["actions"]
    assert seen["text"] == SILENCED
