"""Neovim of each kind, set up by the page's own lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.editors import LINE, PAGE, Project, programs, seen_by, version
from support.pages import blocks

LOOK = Path(__file__).with_name("neovim.lua")
SET_UPS = dict(zip(("0.11 and newer", "0.8 to 0.11", "0.7"), blocks(PAGE["Neovim"], "lua"), strict=True))
RANGES = {"0.11 and newer": ((0, 11), (1, 99)), "0.8 to 0.11": ((0, 8), (0, 11)), "0.7": ((0, 7), (0, 7))}


@pytest.mark.parametrize("versions", SET_UPS)
def test_a_kernel_in_neovim(versions: str, project: Project) -> None:
    oldest, newest = RANGES[versions]
    fitting = [program for program in programs("nvim") if oldest <= version(program) <= newest]
    if not fitting:
        pytest.skip(
            f"tier editor: no Neovim {versions}: on Debian `python tools/editors.py .build/editors` unpacks newer ones"
        )
    program = fitting[-1]
    config = project.home / ".config" / "nvim" / "init.lua"
    config.parent.mkdir(parents=True)
    config.write_text(SET_UPS[versions], encoding="utf-8")
    seen = seen_by(project, [program, "--headless", "-n", "-i", "NONE", project.kernel.name, "-c", f"luafile {LOOK}"])
    assert (seen["filetype"], seen["root"]) == ("cuda", str(project.folder))
    assert seen["finding"] == {"code": "bank-conflict", "line": LINE}
    assert "32 wavefronts/request" in seen["hover"]
    assert seen["actions"][:3] == [
        "Pad the rows of tile by 1 element",
        "XOR-swizzle tile",
        "Suppress bank-conflict on this line",
    ]
    assert "Optimize kernel transpose" in seen["actions"]
    if version(program) >= (0, 8):
        assert {"Optimize", "Verify", "Profile (emulated)", "Show SASS"} < set(seen["lenses"])
        assert any("1 finding" in lens for lens in seen["lenses"])
    if version(program) >= (0, 10):
        assert seen["hints"] and all("wavefronts" in hint for hint in seen["hints"])
