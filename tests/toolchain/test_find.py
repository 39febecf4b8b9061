from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from toolchain.conftest import FakeNvcc
from warpwright.missing import Missing
from warpwright.syntax.source import Source
from warpwright.toolchain import find
from warpwright.toolchain.compile import compile_cubin
from warpwright.toolchain.find import Toolchain, find_toolchain, wheel_directories

COOPERATIVE_GROUPS = b"""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__global__ void sum(float* a) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    a[threadIdx.x] = cg::reduce(warp, a[threadIdx.x], cg::plus<float>());
}
"""
CUB = b"""
#include <cub/block/block_reduce.cuh>
__global__ void sum(float* a) {
    using Reduce = cub::BlockReduce<float, 128>;
    __shared__ typename Reduce::TempStorage storage;
    float total = Reduce(storage).Sum(a[threadIdx.x]);
    if (threadIdx.x == 0) a[0] = total;
}
"""
THRUST = b"""
#include <thrust/device_vector.h>
#include <thrust/transform.h>
struct twice { __host__ __device__ float operator()(float x) const { return 2 * x; } };
void host(thrust::device_vector<float>& v) { thrust::transform(v.begin(), v.end(), v.begin(), twice()); }
"""


def compilers() -> list[str]:
    """The compiler that is found here, and the wheels' own where they are installed."""
    wheels = [d / "bin" / "nvcc" for d in wheel_directories() if (d / "bin" / "nvcc").is_file()]
    return ["", *map(str, wheels[:1])]


@pytest.mark.sampled(3)
@pytest.mark.nvcc
@pytest.mark.parametrize("nvcc", compilers(), ids=lambda path: "wheels" if path else "found")
@pytest.mark.parametrize("text", [COOPERATIVE_GROUPS, CUB, THRUST], ids=["cooperative_groups", "cub", "thrust"])
def test_nvidias_own_headers_compile(nvcc: str, text: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if nvcc:
        monkeypatch.setenv("WARPWRIGHT_NVCC", nvcc)
    compiled = compile_cubin(Source(str(tmp_path / "a.cu"), text))
    assert compiled.ok, compiled.reason
    assert compiled.kernels


@pytest.mark.nvcc
def test_what_is_found_says_where_it_is() -> None:
    toolchain = find_toolchain()
    assert isinstance(toolchain, Toolchain)
    assert toolchain.nvcc.is_file()
    assert int(toolchain.version.split(".")[0]) >= 12
    assert any((d / "cuda_runtime.h").is_file() for d in toolchain.include_dirs)
    assert any((d / "cub").is_dir() for d in toolchain.include_dirs)


def test_the_override_wins_over_path(fake_nvcc: FakeNvcc) -> None:
    script = fake_nvcc("exit 0")
    toolchain = find_toolchain()
    assert isinstance(toolchain, Toolchain)
    assert (toolchain.nvcc, toolchain.version, toolchain.origin) == (script, "13.0.88", "WARPWRIGHT_NVCC")


def test_an_override_that_is_not_there_is_said_and_nothing_else_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPWRIGHT_NVCC", "/nowhere/nvcc")
    missing = find_toolchain()
    assert isinstance(missing, Missing)
    assert "WARPWRIGHT_NVCC names /nowhere/nvcc, which does not exist." in str(missing)


def test_a_program_that_is_no_compiler_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "nvcc"
    script.write_text("#!/bin/sh\necho hello\n")
    script.chmod(0o755)
    monkeypatch.setenv("WARPWRIGHT_NVCC", str(script))
    missing = find_toolchain()
    assert isinstance(missing, Missing)
    assert "does not answer `--version`" in str(missing)


def test_cuda_home_is_used_where_path_has_none(
    fake_nvcc: FakeNvcc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = fake_nvcc("exit 0")
    (tmp_path / "home" / "bin").mkdir(parents=True)
    script.rename(tmp_path / "home" / "bin" / "nvcc")
    monkeypatch.delenv("WARPWRIGHT_NVCC")
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    toolchain = find_toolchain()
    assert isinstance(toolchain, Toolchain)
    assert toolchain.origin == "CUDA_HOME"


@pytest.mark.skipif(Path("/usr/local/cuda/bin/nvcc").exists(), reason="/usr/local/cuda is here and would be found")
def test_no_compiler_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("WARPWRIGHT_NVCC", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(sys, "path", [])
    missing = find_toolchain()
    assert isinstance(missing, Missing)
    assert "pip install 'warpwright[cuda]'" in missing.advice


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
def test_a_compiler_that_never_stops_printing_costs_neither_memory_nor_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = tmp_path / "pid"
    script = tmp_path / "nvcc"
    script.write_text(f"#!/bin/sh\nyes V13.0.88 &\necho $! > {pid}\nwait\n")
    script.chmod(0o755)
    monkeypatch.setenv("WARPWRIGHT_NVCC", str(script))
    found = find_toolchain()
    assert isinstance(found, Missing)
    assert "does not answer `--version`" in found.reason
    with pytest.raises(ProcessLookupError):
        for _ in range(50):  # the group was killed; whoever adopts the child may take a moment to reap it
            os.kill(int(pid.read_text()), 0)
            stat = Path(f"/proc/{int(pid.read_text())}/stat")
            if stat.is_file() and stat.read_text().rpartition(")")[2].split()[0] == "Z":
                raise ProcessLookupError
            time.sleep(0.1)


def test_macos_is_told_what_works_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WARPWRIGHT_NVCC", raising=False)
    monkeypatch.setattr(find, "_candidates", lambda: iter(()))
    monkeypatch.setattr(sys, "platform", "darwin")
    missing = find_toolchain()
    assert isinstance(missing, Missing)
    assert missing.reason == "NVIDIA has no CUDA compiler for macOS."
    assert missing.advice.startswith("Analysis works here;")
    assert "pip install" not in missing.advice
