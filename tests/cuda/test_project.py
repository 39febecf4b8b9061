"""The files of a project that launch a kernel of another file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from warpwright.cuda.project import files_that_launch
from warpwright.syntax.source import Source
from warpwright.verify.report import Status
from warpwright.verify.verify import verify

KERNEL = """__global__ void scale(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2.0f;
}
"""
OWN = "void run(float* x, int n) { scale<<<(n + 127) / 128, 128>>>(x, n); }\n"
DECLARES = "extern __global__ void scale(float* x, int n);\n"
OTHER = "void other(float* x, int n) { scale<<<(n + 255) / 256, 256>>>(x, n); }\n"


def written(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({".git/HEAD": "", "src/k.cu": KERNEL + OWN, "app/b.cu": DECLARES + OTHER}, ["b.cu"]),
        ({".git/HEAD": "", "src/k.cu": KERNEL + OWN, "app/b.cu": OTHER}, []),
        ({".git/HEAD": "", "src/k.cu": KERNEL + OWN, "app/b.cu": KERNEL + OTHER}, []),
        ({".git/HEAD": "", "src/k.cuh": KERNEL, "app/b.cu": '#include "../src/k.cuh"\n' + OTHER}, ["b.cu"]),
        ({".git/HEAD": "", "src/k.cu": KERNEL, "build/b.cu": DECLARES + OTHER, ".b/b.cu": DECLARES + OTHER}, []),
        ({".git/HEAD": "", "src/k.cu": KERNEL, "b.cu": DECLARES + "// scale<<<1, 1>>>(x, n)\n"}, []),
    ],
)
def test_who_launches_a_kernel_of_another_file(tmp_path: Path, files: dict[str, str], expected: list[str]) -> None:
    written(tmp_path, files)
    (own,) = (tmp_path / "src").iterdir()
    assert [Path(source.path).name for source in files_that_launch(str(own), "scale")] == expected


def test_pipes_and_links_to_folders_are_passed_over(tmp_path: Path) -> None:
    written(tmp_path, {".git/HEAD": "", "k.cu": KERNEL, "b.cu": DECLARES + OTHER})
    os.mkfifo(tmp_path / "pipe.cu")
    (tmp_path / "round").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "endless.cu").symlink_to("/dev/zero")
    assert [Path(source.path).name for source in files_that_launch(str(tmp_path / "k.cu"), "scale")] == ["b.cu"]


@pytest.mark.nvcc
def test_a_launch_of_another_file_is_run(tmp_path: Path) -> None:
    written(tmp_path, {".git/HEAD": "", "k.cu": KERNEL + OWN, "b.cu": DECLARES + OTHER})
    original = Source(str(tmp_path / "k.cu"), (KERNEL + OWN).encode())
    fixed_block = Source(original.path, original.data.replace(b"blockDim.x", b"128"))
    assert verify(original, original, backend="emulator").launches == ("k.cu:5", "b.cu:2")
    report = verify(original, fixed_block, backend="emulator")
    assert (report.status, report.reason[-28:]) == (Status.UNSAFE, "as it is launched at b.cu:2.")
