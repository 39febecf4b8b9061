"""What a file's entry in compile_commands.json says, as the commands use it."""

from __future__ import annotations

import json
from pathlib import Path

from warpwright.cli.inputs import Compiled
from warpwright.editor.analysis import analyse
from warpwright.editor.includes import open_first
from warpwright.editor.settings import Settings
from warpwright.syntax.flags import Flags, flags_of
from warpwright.syntax.source import read_source

KERNEL = """\
#include "tile.h"
#include <lib/more.h>
#if __CUDA_ARCH__ >= 800 && __cplusplus >= 202002L
__global__ void k(float *a) { a[threadIdx.x * STRIDE] = 0; }
#endif
#ifdef HALF
__global__ void half_kernel(float *a) { *a = 0; }
#endif
void f(float *a) { k<<<1, TILE * MORE>>>(a); }
"""


def project(folder: Path, **entry: object) -> Path:
    (folder / "src").mkdir()
    (folder / "inc" / "lib").mkdir(parents=True)
    (folder / "build").mkdir()
    (folder / "inc" / "tile.h").write_text("#define TILE 32\n")
    (folder / "inc" / "lib" / "more.h").write_text("#define MORE 2\n")
    file = folder / "src" / "a.cu"
    file.write_text(KERNEL)
    described = {"directory": str(folder / "build"), "file": str(file), **entry}
    (folder / "build" / "compile_commands.json").write_text(json.dumps([described]))
    return file


COMMAND = (
    "nvcc -DSTRIDE=4 -UHALF -DHALF -U HALF -I../inc -std=c++20 --generate-code=arch=compute_86,code=[sm_86] -c a.cu"
)


def test_the_nearest_database_is_used(tmp_path: Path) -> None:
    file = project(tmp_path, command=COMMAND)
    flags = flags_of(str(file))
    assert flags.arch == "sm_86"
    assert flags.defines == {"STRIDE": "4", "HALF": None, "__cplusplus": "202002L"}
    program = Compiled().program(read_source(file))
    assert [kernel.name for kernel in program.kernels] == ["k"]
    assert program.kernels[0].launches[0].block == (64, 1, 1)
    assert program.kernels[0].accesses[0].sectors_per_request == 16


def test_the_editor_uses_it_too(tmp_path: Path) -> None:
    file = project(tmp_path, arguments=COMMAND.split())
    analysis = analyse(read_source(file), open_first({}), Settings())
    assert analysis.program.kernels[0].launches[0].block == (64, 1, 1)
    other = analyse(read_source(file), open_first({}), Settings(arch="sm_70", defines={"HALF": "1"}))
    assert [kernel.name for kernel in other.program.defined_kernels] == ["half_kernel"]


def test_the_command_line_holds_over_it(tmp_path: Path) -> None:
    file = project(tmp_path, command=COMMAND)
    program = Compiled(defines=(("STRIDE", "2"), ("HALF", "1"))).program(read_source(file))
    assert {kernel.name for kernel in program.kernels} == {"k", "half_kernel"}
    assert next(k for k in program.kernels if k.name == "k").accesses[0].sectors_per_request == 8


def test_a_header_takes_the_flags_beside_it_and_options_may_stand_in_a_file(tmp_path: Path) -> None:
    file = project(tmp_path, command="nvcc --options-file flags.rsp -c a.cu")
    (tmp_path / "build" / "flags.rsp").write_text('-DTEXT="a b" -I "../inc" -arch=sm_80\n')
    header = flags_of(str(file.parent / "other.cuh"))
    assert header.arch == "sm_80"
    assert header.defines == {"TEXT": "a b"}
    assert header == flags_of(str(file))


def test_a_database_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    for text in ("", "[", "{}", '[1, {}, {"file": 3}]', '[{"file": "a.cu", "command": "nvcc \\"-D"}]'):
        (tmp_path / "compile_commands.json").write_text(text)
        assert flags_of(str(tmp_path / "b.cpp")) in (Flags(), Flags(folders=(), defines={"": "1"}))
        (tmp_path / "compile_commands.json").unlink()
    assert flags_of("/nowhere/at/all.cu") == Flags()
