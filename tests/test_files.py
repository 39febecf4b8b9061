"""Files that a project names: whatever they are, reading ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from warpwright.files import NotAFileError, read_file, read_start

MOST = 1 << 20

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")


def test_a_file_is_read_whole_up_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "a.cu"
    path.write_bytes(b"\xff" * MOST)
    assert read_file(path, MOST) == b"\xff" * MOST
    assert read_start(path, 3) == b"\xff" * 3
    with pytest.raises(OSError, match="larger than 1023 KB"):
        read_file(path, MOST - 1024)


def test_a_large_file_costs_no_more_than_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "huge"
    with path.open("wb") as file:
        file.truncate(10 << 30)
    with pytest.raises(OSError, match="larger than 1 MB"):
        read_file(path, MOST)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/stdin", "/dev/tty", "/dev/random", "/dev/ptmx"])
def test_no_device_is_opened(device: str, tmp_path: Path) -> None:
    """In a process whose standard input is a pipe that nobody writes to."""
    link = tmp_path / "link"
    link.symlink_to(device)
    text = f"from warpwright.files import *\ntry:\n    read_file({str(link)!r}, 9)\nexcept OSError: print('refused')"
    reader, writer = os.pipe()
    try:
        done = subprocess.run(
            [sys.executable, "-c", text], stdin=reader, capture_output=True, text=True, timeout=60, check=False
        )
    finally:
        os.close(reader)
        os.close(writer)
    assert done.stdout == "refused\n", done.stderr


def test_a_pipe_a_socket_a_loop_and_a_folder_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    for name, error in (("pipe", NotAFileError), ("loop", OSError), (".", IsADirectoryError), ("a\0b", OSError)):
        with pytest.raises(error):
            read_file(tmp_path / name, MOST)


def test_a_file_that_becomes_a_pipe_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"text")
    looked = os.stat

    def swapped(*arguments: object, **named: object) -> os.stat_result:
        found = looked(*arguments, **named)  # type: ignore[arg-type]
        path.unlink()
        os.mkfifo(path)
        return found

    monkeypatch.setattr(os, "stat", swapped)
    with pytest.raises(NotAFileError):
        read_file(path, MOST)
