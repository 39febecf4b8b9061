"""A header is read as a part of the file that includes it: its kernels are launched there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from warpwright.editor.analysis import analyse
from warpwright.editor.includers import includer_of
from warpwright.editor.includes import open_first
from warpwright.editor.settings import Settings
from warpwright.syntax.source import Source

KERNEL = b"#pragma once\n__global__ void k(float* a) { a[threadIdx.x] = 0; }\n"
LAUNCH = b'#include "%s"\nvoid run(float* a) { k<<<1, 96>>>(a); }\n'


@pytest.mark.parametrize(
    ("header", "file"), [("k.cuh", "main.cu"), ("k.h", "k.cu"), ("include/k.hpp", "src/main.cu"), ("lib/k.inl", "a.cu")]
)
def test_the_file_near_it_that_includes_it(tmp_path: Path, header: str, file: str) -> None:
    path, unit = tmp_path / header, tmp_path / file
    for each in (path, unit):
        each.parent.mkdir(exist_ok=True)
    path.write_bytes(KERNEL)
    unit.write_bytes(LAUNCH % f"../{header}".encode())
    (tmp_path / "other.cu").write_bytes(LAUNCH % b"notk.cuh")
    found = includer_of(Source(str(path), KERNEL), {})
    assert found is not None
    assert found.path == str(unit)
    opened = Source(str(tmp_path / "open.cu"), LAUNCH % path.name.encode())
    assert includer_of(Source(str(path), KERNEL), {opened.path: opened}) is opened
    changed = Source(str(unit), b"// not any more\n")
    assert includer_of(Source(str(path), KERNEL), {changed.path: changed}) is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_beside_it_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.cu")
    assert includer_of(Source(str(tmp_path / "k.cuh"), KERNEL), {}) is None


def test_what_has_none(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_bytes(LAUNCH % b"k.cuh")
    assert includer_of(Source(str(tmp_path / "k.cuh"), b"#define N 4\n"), {}) is None
    assert includer_of(Source(str(tmp_path / "b.cu"), KERNEL), {}) is None
    assert includer_of(Source("k.cuh", KERNEL), {}) is None


def test_a_file_that_another_file_includes(tmp_path: Path) -> None:
    part, unit = tmp_path / "kernels.cu", tmp_path / "main.cu"
    part.write_bytes(KERNEL)
    unit.write_bytes(LAUNCH % b"kernels.cu")
    found = includer_of(Source(str(part), KERNEL), {})
    assert found is not None and found.path == str(unit)
    assert includer_of(Source(str(unit), LAUNCH % b"kernels.cu" + KERNEL), {}) is None
    unit.write_bytes(LAUNCH % b"other/kernels.cu")
    assert includer_of(Source(str(part), KERNEL), {}) is None


def test_one_that_includes_another_header_of_that_name_is_not_taken(tmp_path: Path) -> None:
    header = Source(str(tmp_path / "k.cuh"), KERNEL)
    for folder, is_read in (("deep", False), (".", True)):
        unit = Source(str(tmp_path / folder / "a.cu"), LAUNCH % b"k.cuh")
        analysis = analyse(header, open_first({header.path: header}), Settings(), unit=unit)
        assert (analysis.program.source is unit) == is_read
        assert analysis.kernels_here()[0].launches[0].block[0] == (96 if is_read else 256)
