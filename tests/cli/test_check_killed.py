"""Processes of a check that are killed: their files are looked at anew, and a file that ends each is named."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path

import pytest
from warpwright.cli.check_many import check_many
from warpwright.cli.findings import Checked

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows kills in another way")

FILES = [f"{number:02}.cu" for number in range(40)]


def once(folder: Path, path: str) -> Checked:
    """Ends its process at one of the files, the first time."""
    if path == "03.cu" and not (folder / "killed").exists():
        (folder / "killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return Checked(path)


def always(folder: Path, path: str) -> Checked:
    if path == "17.cu":
        os.kill(os.getpid(), signal.SIGKILL)
    return once(folder, path)


def test_a_killed_process_costs_no_file(tmp_path: Path) -> None:
    checked = list(check_many(partial(once, tmp_path), FILES, len(FILES)))
    assert (tmp_path / "killed").exists()
    assert sorted(each.path for each in checked) == FILES
    assert [each.failure for each in checked if each.failure] == []


def test_a_file_that_ends_each_process_is_named_alone(tmp_path: Path) -> None:
    checked = list(check_many(partial(always, tmp_path), FILES, len(FILES)))
    assert sorted(each.path for each in checked) == FILES
    assert [each.failure for each in checked if each.failure] == [
        "17.cu: the process that analysed it ended, again and again"
    ]
