"""Helix in a terminal, set up by the page's own lines: keys go in, and the screen is read."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.editors import KERNEL, LINE, PAGE, SILENCED, Project, programs
from support.pages import blocks

pytestmark = pytest.mark.helix


class Terminal:
    """A program in a terminal of 160 columns and 45 rows."""

    def __init__(self, command: list[str], folder: Path, environment: dict[str, str]) -> None:
        self._tmux = ["tmux", "-S", str(folder / "tmux"), "-f", "/dev/null"]
        self._environment = environment
        self._run("new-session", "-d", "-x", "160", "-y", "45", shlex.join(command))

    def press(self, *keys: str) -> None:
        self._run("send-keys", *keys)

    def screen(self) -> str:
        return self._run("capture-pane", "-p")

    def shows(self, words: str, seconds: float = 60) -> str:
        """The screen, once these words are on it."""
        until = time.monotonic() + seconds
        while words not in (screen := self.screen()):
            assert time.monotonic() < until, f"no '{words}' on:\n{screen}"
            time.sleep(0.05)
        return screen

    def close(self) -> None:
        self._run("kill-server")

    def _run(self, *words: str) -> str:
        done = subprocess.run(
            [*self._tmux, *words], env=self._environment, capture_output=True, encoding="utf-8", timeout=30, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def helix(project: Project) -> Iterator[Terminal]:
    languages, highlights = (blocks(PAGE["Helix"], kind)[0] for kind in ("toml", "scheme"))
    config = project.home / ".config" / "helix"
    queries = config / "runtime" / "queries" / "cuda"
    queries.mkdir(parents=True)
    (config / "languages.toml").write_text(languages, encoding="utf-8")
    (queries / "highlights.scm").write_text(highlights, encoding="utf-8")
    (config / "config.toml").write_text("[editor]\nlsp.display-inlay-hints = true\n", encoding="utf-8")
    command = [list(programs("hx"))[-1], str(project.kernel)]
    terminal = Terminal(command, project.home, project.environment(TERM="xterm-256color"))
    yield terminal
    terminal.close()


def test_a_kernel_in_helix(helix: Terminal, project: Project) -> None:
    helix.shows("32 wavefronts/request")  # behind the line of the finding
    helix.press("]", "d")
    helix.shows(f" {LINE}:")
    helix.press("Space", "k")
    helix.shows("Shared load tile[x][y] in transpose")
    helix.press("Escape")
    helix.press(r"\;", "Space", "a")  # the selection is the cursor
    offered = helix.shows("Suppress bank-conflict on this line")
    assert "Pad the rows of tile by 1 element" in offered
    assert "Optimize kernel transpose" in offered
    helix.press("Down", "Down", "Enter")
    helix.shows("// warpwright: ignore[bank-conflict]")
    helix.shows("32 wavefronts/request (ideal 1)")  # the inlay hint, which an edit brings
    assert project.kernel.read_text(encoding="utf-8") == KERNEL
    helix.press(":", "w", "Enter")
    helix.shows("written")
    assert project.kernel.read_text(encoding="utf-8") == SILENCED
