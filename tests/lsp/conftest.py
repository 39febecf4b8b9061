"""Servers that tests share: one of each kind for all that change no settings of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.editor import NEOVIM, OLD_NEOVIM, VSCODE, Editor, Profile, start_editor


@pytest.fixture(scope="session")
def vscode(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    yield from _quiet(VSCODE, tmp_path_factory)


@pytest.fixture(scope="session")
def neovim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    yield from _quiet(NEOVIM, tmp_path_factory)


@pytest.fixture(scope="session")
def old_neovim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    yield from _quiet(OLD_NEOVIM, tmp_path_factory)


@pytest.fixture(params=["vscode", "neovim", "old_neovim"])
def any_editor(request: pytest.FixtureRequest) -> Editor:
    """Each kind of client in turn: UTF-16 with pull, UTF-8 with pull, UTF-16 with push."""
    editor: Editor = request.getfixturevalue(request.param)
    return editor


def _quiet(profile: Profile, factory: pytest.TempPathFactory) -> Iterator[Editor]:
    """No test that shares a server may leave a traceback in its log. Nothing is compiled in the background: what these
    tests open they ask nothing of the compiler about."""
    with start_editor(profile, factory.mktemp("workspace"), options={"compile": "off"}) as editor:
        yield editor
    assert not [line for line in editor.log if "Traceback" in line], editor.log
