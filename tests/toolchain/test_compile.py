from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.processes import gone, running
from toolchain.conftest import FakeNvcc
from warpwright.progress import CancelledError
from warpwright.syntax.source import Source
from warpwright.toolchain.compilation import Ending
from warpwright.toolchain.compile import compile_cubin, compile_ptx

KERNELS = b"""
__global__ void plain(float* a) {
    __shared__ float tile[64];
    tile[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    a[threadIdx.x] = tile[63 - threadIdx.x];
}
template <typename T, int N> __global__ void scale(T* a) { a[threadIdx.x] *= N; }
__global__ void stacked(float* a, int k) {
    float local[100];
    for (int i = 0; i < 100; i++) local[i] = a[i] * a[i + k];
    a[0] = local[k];
}
int main() { scale<float, 3><<<1, 32>>>(nullptr); scale<double, -2><<<1, 32>>>(nullptr); return 0; }
"""


@pytest.mark.nvcc
def test_resources_of_each_kernel_and_instance(tmp_path: Path) -> None:
    compiled = compile_cubin(Source(str(tmp_path / "a.cu"), KERNELS))
    assert compiled.ok, compiled.reason
    assert set(compiled.kernels) == {"plain", "scale<float, 3>", "scale<double, -2>", "stacked"}
    plain = compiled.kernels["plain"]
    assert (plain.mangled_name, plain.shared_bytes, plain.barriers, plain.spill_store_bytes) == (
        "_Z5plainPf",
        256,
        1,
        0,
    )
    assert plain.registers >= 4
    assert compiled.kernels["stacked"].stack_bytes == 400
    assert len(compiled.instances("scale")) == 2
    assert compiled.cubin is not None
    assert compiled.cubin.read_bytes()[:4] == b"\x7fELF"
    assert compiled.compiler.startswith("nvcc ")


@pytest.mark.nvcc
def test_spills_are_counted(tmp_path: Path) -> None:
    body = " ".join(f"float v{i} = a[{i} * n];" for i in range(80))
    total = " + ".join(f"v{i} * v{(i * 7 + 3) % 80}" for i in range(80))
    text = (
        f"__global__ void __launch_bounds__(1024, 2) k(float* a, int n) {{ {body} __syncthreads(); a[0] = {total}; }}"
    )
    compiled = compile_cubin(Source(str(tmp_path / "a.cu"), text.encode()))
    assert compiled.ok, compiled.reason
    assert compiled.kernels["k"].registers <= 32
    assert compiled.kernels["k"].spill_store_bytes > 0
    assert compiled.kernels["k"].spill_load_bytes > 0


@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (b"// one\n__global__ void k(float* a) { a[0] = missing; }\n", 2, 'identifier "missing" is undefined'),
        (b"\n\n#include \"nowhere.h\"\n", 3, "nowhere.h: No such file"),
        (b"int host() {\n  return undeclared(3);\n}\n", 2, 'identifier "undeclared" is undefined'),
        (b"#error stop\n", 1, "#error stop"),
        (b"__global__ void k(float* a) { __shared__ float t[20000]; t[0] = *a; *a = t[threadIdx.x]; }", 0, "too much"),
        (b'__global__ void k() { asm("bogus.f32 a;"); }', 1, "Not a name of any known instruction"),
    ],
    ids=["device", "include", "host", "directive", "shared", "ptx"],
)  # fmt: skip
def test_errors_stand_at_their_place(text: bytes, line: int, words: str, tmp_path: Path) -> None:
    path = str(tmp_path / "with space é.cu")
    compiled = compile_cubin(Source(path, text))
    assert compiled.ending is Ending.ERRORS
    error = next(m for m in compiled.messages if m.severity == "error")
    assert (error.path, error.line) == (path, line)
    assert words in error.text
    assert compiled.reason.startswith("nvcc found ")
    assert compiled.cubin is None


@pytest.mark.nvcc
def test_an_unsaved_buffer_is_compiled_with_the_includes_beside_its_path(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text("this on the disk is not CUDA")
    (tmp_path / "b.h").write_text('#include "c.h"\n')
    (tmp_path / "c.h").write_text("#define SIZE 4\n")
    kernel = b"__global__ void k(int* a) { __shared__ int t[SIZE]; t[0] = a[0]; a[1] = t[a[2]]; int unused; }\n"
    source = Source(str(tmp_path / "a.cu"), b'\xef\xbb\xbf#include "b.h"\n' + kernel)
    first = compile_cubin(source)
    assert first.ok, first.reason
    assert first.kernels["k"].shared_bytes == 16
    assert [(m.path, m.line, m.severity) for m in first.messages] == [(source.path, 2, "warning")]

    (tmp_path / "c.h").write_text("#define SIZE 8\n")
    second = compile_cubin(source)
    assert second.kernels["k"].shared_bytes == 32


@pytest.mark.nvcc
@pytest.mark.parametrize("name", ['quo"te.cu', "back\\slash.cu", "new\nline.cu", "sp ace's.cu", "-dash.cu"])
def test_any_file_name_compiles(name: str, tmp_path: Path) -> None:
    compiled = compile_cubin(Source(str(tmp_path / name), b"__global__ void k(float* a) { a[threadIdx.x] = 0; }"))
    assert compiled.ok, compiled.reason


@pytest.mark.nvcc
def test_a_kernel_in_a_header_compiles(tmp_path: Path) -> None:
    assert compile_cubin(Source(str(tmp_path / "k.cuh"), b"#pragma once\n__global__ void k(int* a) { a[0] = 1; }")).ok


@pytest.mark.nvcc
def test_flags_and_architecture_decide_and_a_bad_one_is_one_sentence(tmp_path: Path) -> None:
    source = Source(str(tmp_path / "a.cu"), b"__global__ void k(int* a) { a[0] = __CUDA_ARCH__ + EXTRA; }")
    assert compile_cubin(source, arch="sm_80", flags=("-DEXTRA=1",)).ok
    assert not compile_cubin(source, arch="sm_80").ok
    wrong = compile_cubin(source, arch="sm_12345")
    assert wrong.ending is Ending.ERRORS
    assert "Unsupported gpu architecture" in wrong.reason


@pytest.mark.nvcc
def test_ptx_of_each_kernel_and_instance_with_source_lines(tmp_path: Path) -> None:
    path = str(tmp_path / "a.cu")
    compiled = compile_ptx(Source(path, KERNELS), arch="sm_80")
    assert compiled.ok, compiled.reason
    assert compiled.kernels == {
        "plain": "_Z5plainPf",
        "scale<float, 3>": "_Z5scaleIfLi3EEvPT_",
        "scale<double, -2>": "_Z5scaleIdLin2EEvPT_",
        "stacked": "_Z7stackedPfi",
    }
    assert compiled.instances("scale") == ("_Z5scaleIfLi3EEvPT_", "_Z5scaleIdLin2EEvPT_")
    assert ".target sm_80" in compiled.text
    assert f'"{path}"' in compiled.text
    assert "\t.loc\t" in compiled.text


@pytest.mark.nvcc
def test_ptx_and_cubin_of_one_text_are_kept_apart_and_both_refuse_an_error(tmp_path: Path) -> None:
    source = Source(str(tmp_path / "a.cu"), KERNELS)
    assert compile_cubin(source).ok
    assert compile_ptx(source).text == compile_ptx(source).text != ""
    wrong = Source(source.path, b"__global__ void k(float* a) { a[0] = missing; }")
    refused = compile_ptx(wrong)
    assert (refused.ending, refused.text, refused.kernels) == (Ending.ERRORS, "", {})
    assert refused.messages == compile_cubin(wrong).messages


MAKES_ONE = 'touch kernel.cubin; echo "source.o : source.cu" > dependencies.d'


def test_a_second_compilation_of_the_same_text_runs_no_compiler(fake_nvcc: FakeNvcc, tmp_path: Path) -> None:
    fake_nvcc(MAKES_ONE)
    source = Source(str(tmp_path / "a.cu"), b"int x;")
    first = compile_cubin(source)
    fake_nvcc("exit 1")
    assert compile_cubin(source) == first
    others = [
        compile_cubin(source, flags=("-O1",)),
        compile_cubin(source, arch="sm_80"),
        compile_cubin(source, reads=(str(tmp_path), str(tmp_path / "other"))),
        compile_cubin(Source(source.path, b"int y;")),
    ]
    assert {each.ending for each in others} == {Ending.BROKEN}


def test_a_text_that_is_rejected_runs_no_compiler_again(fake_nvcc: FakeNvcc, tmp_path: Path) -> None:
    header = tmp_path / "a.h"
    header.write_text("int y;\n")
    source = Source(str(tmp_path / "a.cu"), b'#include "a.h"\nint x = y;')
    rejects = f"echo 'source.o : source.cu {header}' > dependencies.d; echo '{source.path}(2): error: no'; exit 2"
    fake_nvcc(rejects)
    first = compile_cubin(source)
    assert (first.ending, [m.line for m in first.messages], first.included) == (Ending.ERRORS, [2], (str(header),))
    fake_nvcc(MAKES_ONE)
    assert compile_cubin(source) == first
    header.write_text("const int y = 2;\n")
    assert compile_cubin(source).ok, "a file that it includes is another"


@pytest.mark.parametrize(
    "body",
    [
        "echo '{path}(1): error: no'; exit 2",
        "echo 'source.o : source.cu {header}' > dependencies.d; echo 'nvcc fatal   : no'; exit 2",
        "echo 'source.o : source.cu {header}' > dependencies.d; echo '{path}(1): error: out of memory'; exit 2",
        "echo 'source.o : source.cu {header}' > dependencies.d; exit 2",
        "echo '{path}(1): fatal error: b.h: No such file or directory'; echo '{path}(2): error: no'; exit 2",
    ],
    ids=["its-includes-are-not-known", "of-nvcc-itself", "of-the-machine", "without-a-reason", "a-file-is-not-there"],
)
def test_another_failure_is_not_kept(body: str, fake_nvcc: FakeNvcc, tmp_path: Path) -> None:
    source = Source(str(tmp_path / "a.cu"), b"int x;")
    header = tmp_path / "a.h"
    header.touch()
    fake_nvcc(body.format(path=source.path, header=header))
    assert not compile_cubin(source).ok
    fake_nvcc(MAKES_ONE)
    assert compile_cubin(source).ok


def test_a_hanging_compiler_is_stopped_with_all_that_it_started(fake_nvcc: FakeNvcc, tmp_path: Path) -> None:
    script = fake_nvcc("sleep 600.125 & sleep 600.125")
    seen: set[int] = set()

    def watch() -> bool:
        seen.update(running("600.125"))
        return False

    compiled = compile_cubin(Source(str(tmp_path / "a.cu"), b"int x;"), timeout=1.0, is_cancelled=watch)
    assert compiled.ending is Ending.TIMEOUT
    assert compiled.reason == f"{script} did not finish in 1 seconds and was stopped."
    assert len(seen) == 2
    assert gone("600.125")


def test_a_hanging_compiler_ends_with_the_process_that_started_it(fake_nvcc: FakeNvcc, tmp_path: Path) -> None:
    fake_nvcc("sleep 600.25 & sleep 600.25")
    source = tmp_path / "a.cu"
    source.write_bytes(KERNELS)
    text = (
        "import sys; from warpwright.syntax.source import read_source; "
        "from warpwright.toolchain.compile import compile_cubin; compile_cubin(read_source(sys.argv[1]))"
    )
    with subprocess.Popen([sys.executable, "-c", text, str(source)]) as starter:
        until = time.monotonic() + 60
        while len(running("600.25")) < 2 and time.monotonic() < until:
            time.sleep(0.02)
        assert len(running("600.25")) == 2
        starter.kill()
    assert gone("600.25")


def test_a_cancel_stops_the_compiler(fake_nvcc: FakeNvcc, tmp_path: Path) -> None:
    fake_nvcc("sleep 600.5 & sleep 600.5")
    with pytest.raises(CancelledError):
        compile_cubin(
            Source(str(tmp_path / "a.cu"), b"int x;"), timeout=60.0, is_cancelled=lambda: len(running("600.5")) == 2
        )
    assert gone("600.5")
    assert not list((tmp_path / "cache" / "compilations" / "building").iterdir())


@pytest.mark.parametrize(
    ("body", "ending", "words"),
    [
        ("exit 1", Ending.BROKEN, "failed with exit status 1 and named no error; it printed nothing."),
        ("head -c 3000 /dev/urandom; exit 3", Ending.BROKEN, "failed with exit status 3 and named no error"),
        ("echo 'Killed by someone'; exit 9", Ending.BROKEN, 'its last words were "Killed by someone".'),
        ("exit 0", Ending.BROKEN, "ended without an error and without writing a cubin."),
        (
            "while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done",
            Ending.BROKEN,
            "printed more than",
        ),
        (
            "echo 'nvcc error   : cicc died due to signal 9'; exit 1",
            Ending.BROKEN,
            "was killed twice, probably for lack of memory",
        ),
        ("echo 'nvcc error   : cicc died due to signal 11'; exit 1", Ending.ERRORS, "cicc died due to signal 11"),
    ],
    ids=["silent", "garbage", "unknown", "no-cubin", "flood", "killed", "crashed"],
)
def test_a_compiler_that_misbehaves_ends_in_one_sentence(
    body: str, ending: Ending, words: str, fake_nvcc: FakeNvcc, tmp_path: Path
) -> None:
    fake_nvcc(body)
    compiled = compile_cubin(Source(str(tmp_path / "a.cu"), b"int x;"))
    assert compiled.ending is ending
    assert words in compiled.reason
    assert "\n" not in compiled.reason
    assert compiled.reason.isprintable()


def test_a_cache_that_cannot_be_written_is_said(
    fake_nvcc: FakeNvcc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_nvcc("exit 0")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WARPWRIGHT_CACHE_DIR", str(tmp_path / "file"))
    compiled = compile_cubin(Source(str(tmp_path / "a.cu"), b"int x;"))
    assert compiled.ending is Ending.BROKEN
    assert "cannot be written" in compiled.reason


def test_no_compiler_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPWRIGHT_NVCC", "/nowhere/nvcc")
    compiled = compile_cubin(Source(str(tmp_path / "a.cu"), b"int x;"))
    assert compiled.ending is Ending.MISSING
    assert "/nowhere/nvcc" in compiled.reason
