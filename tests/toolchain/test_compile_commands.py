"""What a project says of how its files are compiled, as analysis and nvcc use it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from shutil import which

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warpwright.cli.inputs import Compiled
from warpwright.editor.analysis import analyse
from warpwright.editor.includes import open_first
from warpwright.editor.settings import Settings
from warpwright.syntax.flags import parse_flags, read_options
from warpwright.syntax.source import read_source
from warpwright.toolchain.compile import compile_cubin
from warpwright.toolchain.compile_commands import CompileFlags, compile_flags
from warpwright.toolchain.nvcc_options import nvcc_options, shell_words, with_option_files

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
    flags = compile_flags(str(file)).flags
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
    header = compile_flags(str(file.parent / "other.cuh"))
    assert header.flags.arch == "sm_80"
    assert header.flags.defines == {"TEXT": "a b"}
    assert header.flags == compile_flags(str(file)).flags
    assert header.origin.endswith("build/compile_commands.json, as for a.cu, beside it")


CMAKE = (
    "/usr/local/cuda/bin/nvcc -forward-unknown-to-host-compiler "
    '"-DNAME=\\"a b\\"" --options-file rules.rsp -isystem=/lib1 '
    "-O3 -DNDEBUG -std=c++17 --generate-code=arch=compute_80,code=[compute_80,sm_80] "
    '"--generate-code=arch=compute_90a,code=[sm_90a]" -Xcompiler=-fPIC,-DHOST=1 -Xptxas -dlcm=ca -maxrregcount 64 '
    "--expt-relaxed-constexpr --expt-extended-lambda -use_fast_math -Xptxas -v -Xcudafe --diag_suppress=177 -rdc=true "
    "-MD -MT x.o -MF x.o.d -x cu -c /src/a.cu -o CMakeFiles/a.dir/a.cu.o -Wall -ffast-math -I inc -I inc"
)


def test_what_cmake_writes_becomes_options_for_nvcc_in_any_folder(tmp_path: Path) -> None:
    file = project(tmp_path, command=CMAKE)
    build = tmp_path / "build"
    (build / "rules.rsp").write_text("-Igenerated -DRULE")
    found = compile_flags(str(file))
    assert found.flags.architectures == ("sm_80", "sm_90a")
    assert found.flags.arch == "sm_90a"
    assert found.flags.folders == (f"{build}/generated", "/lib1", f"{build}/inc")
    assert found.options == (
        '-DNAME="a b"', f"-I{build}/generated", "-DRULE", "-isystem=/lib1", "-O3", "-DNDEBUG", "-std=c++17", "-DHOST=1",
        "-Xptxas=-dlcm=ca", "-maxrregcount=64", "--expt-relaxed-constexpr", "--extended-lambda", "--use_fast_math",
        f"-I{build}/inc",
    )  # fmt: skip
    assert found.left_out == ("-rdc=true",)
    assert found.words == f"{found.origin}, without its -rdc=true"
    assert found.trouble == ""


def test_what_clang_is_told_becomes_options_for_nvcc() -> None:
    command = (
        "clang++-18 -x cuda --cuda-gpu-arch=sm_75 --offload-arch=sm_80 -std=gnu++20 -iquote q -ffast-math "
        "-fcuda-flush-denormals-to-zero -ffp-contract=off -Xcuda-ptxas -O2 -fcuda-rdc -Wall -include pre.h -c a.cu"
    )
    words = command.split()
    assert parse_flags(words, Path("/b")).architectures == ("sm_75", "sm_80")
    made = nvcc_options(read_options(words), Path("/b"))
    assert made.taken == (
        "-std=c++20", "-I/b/q", "--use_fast_math", "-ftz=true", "-fmad=false", "-Xptxas=-O2", "-include=pre.h",
    )  # fmt: skip
    assert made.left_out == ("-fgpu-rdc",)


def test_an_entry_written_on_windows_is_read(tmp_path: Path) -> None:
    command = (
        r"C:\PROGRA~1\NVIDIA~2\CUDA\v13.0\bin\nvcc.exe -forward-unknown-to-host-compiler -DNAME=\"x\" "
        r'"-IC:\my inc" -Xcompiler="-EHsc -Ob2 /DHOST" "--generate-code=arch=compute_89,code=[sm_89]" -c a.cu'
    )
    words = shell_words(command, windows=True)
    options = read_options(words)
    assert options[:3] == [("-D", 'NAME="x"'), ("-I", "C:\\my inc"), ("-D", "HOST")]
    assert parse_flags(words, tmp_path).arch == "sm_89"


def test_of_several_entries_the_first_or_that_for_the_architecture(tmp_path: Path) -> None:
    file = tmp_path / "a.cu"
    entries = [
        {"directory": str(tmp_path), "file": "a.cu", "arguments": ["nvcc", "-arch=sm_80", "-DFIRST"]},
        {"directory": str(tmp_path), "file": "a.cu", "arguments": ["nvcc", "-arch=sm_90", "-DSECOND"]},
    ]
    (tmp_path / "compile_commands.json").write_text(json.dumps(entries))
    assert compile_flags(str(file)).options == ("-DFIRST",)
    assert compile_flags(str(file), arch="sm_90").options == ("-DSECOND",)
    assert compile_flags(str(file), arch="sm_70").options == ("-DFIRST",)


def test_a_header_takes_the_flags_of_a_file_that_includes_it(tmp_path: Path) -> None:
    for folder in ("include", "src", "tests"):
        (tmp_path / folder).mkdir()
    (tmp_path / "src" / "a.cu").write_text("#include <other.cuh>\n")
    (tmp_path / "tests" / "b.cu").write_text('// prose\n  #  include "deep/tile.cuh"\n')
    entries = [
        {"directory": str(tmp_path), "file": name, "command": f"nvcc -DFROM={name[-4]}"}
        for name in ("src/a.cu", "tests/b.cu")
    ]
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "compile_commands.json").write_text(json.dumps(entries))
    found = compile_flags(str(tmp_path / "include" / "tile.cuh"))
    assert found.options == ("-DFROM=b",)
    assert found.origin.endswith("as for b.cu, which includes it")
    assert compile_flags(str(tmp_path / "include" / "none.cuh")).origin.endswith("as for a.cu, the nearest file")


def test_the_file_is_found_under_another_name_of_its_folder(tmp_path: Path) -> None:
    file = project(tmp_path, command="nvcc -DN=1")
    (tmp_path / "link").symlink_to(file.parent, target_is_directory=True)
    assert compile_flags(str(tmp_path / "link" / "a.cu")).options == ("-DN=1",)


def test_databases_are_found_in_build_folders_the_workspace_and_where_one_is_named(tmp_path: Path) -> None:
    source = tmp_path / "project" / "a.cu"
    elsewhere = tmp_path / "elsewhere" / "cmake-build-debug"
    elsewhere.mkdir(parents=True)
    entry = {"directory": "/", "file": str(source), "arguments": ["nvcc", "-DN=1"]}
    (elsewhere / "compile_commands.json").write_text(json.dumps([entry]))
    assert compile_flags(str(source)) == CompileFlags()
    assert compile_flags(str(source), workspace=[str(elsewhere.parent)]).options == ("-DN=1",)
    assert compile_flags(str(source), database=str(elsewhere)).options == ("-DN=1",)
    missing = compile_flags(str(source), database=str(tmp_path / "nowhere" / "x.json"))
    assert missing == CompileFlags(
        trouble=f"{tmp_path}/nowhere/x.json is not there; it is to say how files are compiled."
    )


def test_a_change_of_the_database_is_noticed(tmp_path: Path) -> None:
    file = project(tmp_path, command="nvcc -DN=1")
    assert compile_flags(str(file)).options == ("-DN=1",)
    database = tmp_path / "build" / "compile_commands.json"
    database.write_text(database.read_text().replace("-DN=1", "-DN=22"))
    assert compile_flags(str(file)).options == ("-DN=22",)


@pytest.mark.parametrize("text", ["", "[", "{}", "3", '[1, {}, {"file": 3}]', "[" * 100_000, "\0\xff"])
def test_a_broken_database_is_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "compile_commands.json").write_text(text)
    found = compile_flags(str(tmp_path / "b.cu"))
    assert found == CompileFlags(trouble=found.trouble)
    assert found.trouble.startswith(f"{tmp_path}/compile_commands.json is not used: ")
    assert found.trouble.endswith(".")


def test_a_database_of_hundreds_of_megabytes_is_one_sentence(tmp_path: Path) -> None:
    with (tmp_path / "compile_commands.json").open("wb") as file:
        file.truncate(300 << 20)
    assert "larger than 256 MB" in compile_flags(str(tmp_path / "b.cu")).trouble


def test_folders_that_are_not_there_and_names_that_cannot_be(tmp_path: Path) -> None:
    assert compile_flags("/nowhere/at/all.cu") == CompileFlags()
    assert compile_flags("a\0b.cu") == CompileFlags()
    (tmp_path / "compile_commands.json").mkdir()
    assert "cannot be read" in compile_flags(str(tmp_path / "a.cu")).trouble


def test_a_file_of_options_that_names_itself_or_is_missing(tmp_path: Path) -> None:
    file = project(tmp_path, command="nvcc -DN=1 @loop.rsp -DM -optf gone.rsp")
    (tmp_path / "build" / "loop.rsp").write_text("-DL @loop.rsp @loop.rsp")
    found = compile_flags(str(file))
    assert set(found.options) == {"-DN=1", "-DL", "-DM"}
    assert found.trouble.startswith("The file of options ")


WORDS = st.lists(
    st.one_of(
        st.text(max_size=8),
        st.sampled_from(["-D", "-U", "-I", "-Xcompiler", "-gencode", "-arch", "-std", "-o", "@x", "-optf", "-include"]),
        st.sampled_from(
            ["-DN=1", "-UN", "-Iinc", "-O3", "-arch=sm_90a", "-isystem=/a", "-fmad=false", "nvcc", "clang++"]
        ),
    ),
    max_size=12,
)


@given(WORDS)
def test_any_words_are_read_and_what_is_given_on_reads_the_same(words: list[str]) -> None:
    options = read_options(words)
    taken = nvcc_options(options, Path("/build")).taken
    assert nvcc_options(read_options(taken), Path("/other")).taken == taken
    assert with_option_files(words, lambda _: None, Path("/"), windows=False)[0] is not None


@given(st.lists(st.text(alphabet=st.characters(exclude_characters="\r\n"), max_size=8)))
def test_a_quoted_command_line_on_windows_gives_its_words(words: list[str]) -> None:
    assert shell_words(subprocess.list2cmdline(words), windows=True) == words


@given(st.text(max_size=40), st.booleans())
def test_any_text_is_taken_apart(text: str, windows: bool) -> None:
    assert all(isinstance(word, str) for word in shell_words(text, windows=windows))


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["file", "directory", "command", "arguments"]), inner, max_size=4)
        ),
        max_leaves=12,
    )
)
def test_any_json_is_read(tmp_path_factory: pytest.TempPathFactory, value: object) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / "compile_commands.json").write_text(json.dumps([value]))
    assert isinstance(compile_flags(str(folder / "a.cu")), CompileFlags)


@pytest.mark.nvcc
def test_a_file_compiles_with_what_cmake_wrote(tmp_path: Path) -> None:
    """A real project: CMake configures it, and its kernel compiles here with the options that were read."""
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "tile.h").write_text("#define TILE (WIDTH * 2)\n")
    file = tmp_path / "kernel.cu"
    file.write_text(
        '#include "tile.h"\n'
        "__global__ void k(float* a) {\n"
        "    __shared__ float t[TILE];\n"
        "    t[threadIdx.x] = *a;\n"
        "    __syncthreads();\n"
        "    *a = t[0];\n"
        "}\n"
    )
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\nproject(p LANGUAGES CUDA)\nadd_library(p OBJECT kernel.cu)\n"
        "target_include_directories(p PRIVATE inc)\ntarget_compile_definitions(p PRIVATE WIDTH=64)\n"
        "target_compile_options(p PRIVATE --use_fast_math -Xcompiler=-Wall)\n"
        'set_target_properties(p PROPERTIES CUDA_ARCHITECTURES "80;90" CUDA_STANDARD 17)\n'
    )
    if not which("cmake"):
        pytest.skip("cmake is not on PATH")
    configure = [
        "cmake",
        "-S",
        str(tmp_path),
        "-B",
        str(tmp_path / "build"),
        "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
        "-DCMAKE_BUILD_TYPE=Release",
    ]
    done = subprocess.run(configure, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    found = compile_flags(str(file))
    assert found.flags.architectures == ("sm_80", "sm_90")
    assert "--use_fast_math" in found.options
    compiled = compile_cubin(read_source(file), arch="sm_80", flags=found.options)
    assert compiled.ok, compiled.reason
    assert compiled.instances("k")[0].shared_bytes == 512
