"""Servers that the tests of a module share: starting one takes half a second."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.editor import NEOVIM, OLD_NEOVIM, VSCODE, Editor, start_editor


@pytest.fixture(scope="module")
def vscode(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    yield from _quiet(start_editor(VSCODE, _folder(tmp_path_factory)))


@pytest.fixture(scope="module")
def neovim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    yield from _quiet(start_editor(NEOVIM, _folder(tmp_path_factory)))


@pytest.fixture(scope="module")
def old_neovim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    yield from _quiet(start_editor(OLD_NEOVIM, _folder(tmp_path_factory)))


@pytest.fixture(params=["vscode", "neovim", "old_neovim"])
def any_editor(request: pytest.FixtureRequest) -> Editor:
    """Each kind of client in turn: UTF-16 with pull, UTF-8 with pull, UTF-16 with push."""
    editor: Editor = request.getfixturevalue(request.param)
    return editor


def _folder(factory: pytest.TempPathFactory) -> Path:
    return factory.mktemp("workspace")


def _quiet(started) -> Iterator[Editor]:  # type: ignore[no-untyped-def]
    """No test that shares a server may leave a traceback in its log."""
    with started as editor:
        yield editor
    assert not [line for line in editor.log if "Traceback" in line], editor.log
