"""Ghost text in the real editors: what Neovim 0.12 asks itself, and the plugins for older ones and for Emacs."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.editors import PAGE, ROOT, Project, programs, seen_by, version
from support.pages import blocks

HERE = Path(__file__).parent
SET_UPS = dict(zip(((0, 12), (0, 10), (0, 7)), blocks(PAGE["Neovim"], "lua"), strict=True))
FIRST = "// read as: y[r, c] = exp(x[r, c] - m[r]) / "


def ghost_set_up(language: str) -> str:
    (found,) = blocks(PAGE["Ghost text"], language)
    return found.replace("/path/to/warpwright", str(ROOT))


@pytest.fixture
def patient(project: Project) -> Project:
    """Whose server may take its time, beside other tests."""
    (project.folder / "warpwright.toml").write_text("ghostTextSeconds = 120\n", encoding="utf-8")
    return project


@pytest.mark.nvcc
@pytest.mark.parametrize("kind", SET_UPS)
def test_ghost_text_in_neovim(kind: tuple[int, int], patient: Project) -> None:
    program = next((each for each in programs("nvim") if version(each) == kind), None)
    if program is None:
        pytest.skip(
            f"tier editor: no Neovim {kind}: on Debian `python tools/editors.py .build/editors` unpacks newer ones"
        )
    config = patient.home / ".config" / "nvim" / "init.lua"
    config.parent.mkdir(parents=True)
    own = kind >= (0, 12)
    config.write_text(SET_UPS[kind] + ("" if own else ghost_set_up("lua")), encoding="utf-8")
    command = [program, "--headless", "-n", "-i", "NONE", patient.kernel.name, "-c", f"luafile {HERE / 'ghost.lua'}"]
    seen = seen_by(patient, command, WARPWRIGHT_NVCC="")
    assert seen["shown"].startswith(FIRST)
    assert seen["lines"] > 20, "the lines below the first are drawn"
    assert seen["whole"]
    if own:
        return
    assert seen["word"] == "//"
    assert seen["line"] == seen["shown"]
    assert not seen.get("left")
    assert seen["after_dismiss"] == 0
    assert seen["nothing"]


@pytest.mark.nvcc
@pytest.mark.emacs
def test_ghost_text_in_emacs(patient: Project) -> None:
    init = patient.home / "init.el"
    (set_up,) = blocks(PAGE["Emacs"], "elisp")
    init.write_text(set_up + ghost_set_up("elisp"), encoding="utf-8")
    command = ["emacs", "--batch", "--load", str(init), "--load", str(HERE / "ghost.el")]
    seen = seen_by(patient, command, WARPWRIGHT_NVCC="", WW_KERNEL=str(patient.kernel))
    assert seen["mode"] is True
    assert seen["shown"].startswith(FIRST)
    assert seen["drawn"] is True
    assert seen["word"] == "//"
    assert seen["line"] == seen["shown"]
    assert seen["whole"] is True
    assert seen["gone"] is True
