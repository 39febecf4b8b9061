"""Which files of a folder are looked at that are not open."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from warpwright.editor import check_job
from warpwright.editor.check_job import cuda_files


def make(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def test_the_first_by_name_and_whether_there_are_more(tmp_path: Path) -> None:
    make(tmp_path, "b.cu", "a.cu", "sub/deep/c.cu", "sub/d.cu", ".hidden/e.cu", "f.txt", "folder.cu/g.cu")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "loop.cu").symlink_to("loop.cu")
    expected = [tmp_path / name for name in ("a.cu", "b.cu", "folder.cu/g.cu", "sub/d.cu", "sub/deep/c.cu")]
    assert cuda_files(tmp_path, 5) == (expected, False)
    assert cuda_files(tmp_path, 4) == (expected[:4], True)
    assert cuda_files(tmp_path, 1) == (expected[:1], True)


def test_a_folder_of_any_size_is_listed_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "a.cu", "b.txt", "sub/c.cu", "sub/d.cu")
    monkeypatch.setattr(check_job, "MOST_ENTRIES", 5)
    assert cuda_files(tmp_path, 100) == ([tmp_path / name for name in ("a.cu", "sub/c.cu", "sub/d.cu")], True)
    monkeypatch.setattr(check_job, "MOST_ENTRIES", 3)
    assert cuda_files(tmp_path, 100) == ([tmp_path / "a.cu"], True)


@pytest.mark.skipif(os.name == "nt", reason="a path of any length can be made with folders' descriptors only")
def test_what_cannot_be_looked_up_hides_nothing_else(tmp_path: Path) -> None:
    make(tmp_path, "z.cu")
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(30):  # 30 names of 200 characters are no path
        os.mkdir("d" * 200, dir_fd=folder)
        inner = os.open("d" * 200, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
        os.close(os.open("k.cu", os.O_CREAT, dir_fd=folder))
    os.close(folder)
    found, has_more = cuda_files(tmp_path, 100)
    assert found[0] == tmp_path / "z.cu"
    assert 1 < len(found) < 30
    assert not has_more
