"""Writing a file in one step."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from warpwright.cli.files import write_atomically


def test_content_and_permissions(tmp_path: Path) -> None:
    path = tmp_path / "a.cu"
    path.write_bytes(b"old")
    path.chmod(0o640)
    write_atomically(path, b"caf\xe9\r\n")
    assert path.read_bytes() == b"caf\xe9\r\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target = tmp_path / "target.cu"
    target.write_bytes(b"old")
    link = tmp_path / "link.cu"
    link.symlink_to("target.cu")
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_a_failure_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    """A directory cannot be replaced by a file, so the last step fails."""
    path = tmp_path / "a.cu"
    (path / "inside").mkdir(parents=True)
    with pytest.raises(OSError, match=r"a\.cu"):
        write_atomically(path, b"new")
    assert (path / "inside").is_dir()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write a read-only file")
def test_a_read_only_file_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.cu"
    path.write_bytes(b"old")
    path.chmod(0o444)
    with pytest.raises(PermissionError):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.cu"]
