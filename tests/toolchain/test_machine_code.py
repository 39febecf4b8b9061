"""Memory instructions of machine code, with lines and widths, of what nvcc makes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from warpwright.missing import Missing
from warpwright.syntax.source import Source
from warpwright.toolchain.compile import compile_cubin
from warpwright.toolchain.machine_code import (
    DisassemblyError,
    MemoryInstruction,
    memory_instructions,
    parse_machine_code,
)

TEXT = """\
#include <cuda_pipeline.h>
__device__ __forceinline__ float both(const float* a, int i) {
    return a[i] * a[i + 64];
}
__device__ __forceinline__ float outer(const float* a, int i) {
    return both(a, i);
}
__global__ void k(const float* __restrict__ a, float* b, int n, unsigned char* c) {
    __shared__ __align__(16) float t[1024];
    float local[64];
    int i = threadIdx.x * 4;
    for (int j = 0; j < 4; j++)
        t[i + j] = a[i + j];
    __syncthreads();
    for (int j = 0; j < 64; j++) local[j] = t[(i * j) & 1023];
    b[threadIdx.x] = t[i] + t[i + 1] + t[i + 2] + t[i + 3] + outer(a, n);
    b[0] = local[n & 63];
    atomicAdd(c + 4 * n == nullptr ? (int*)nullptr : (int*)b, n);
    c[n] = c[n + 1];
    *(double2*)(b + 4 * n) = *(const double2*)(a + 4 * i);
    __pipeline_memcpy_async(t + i, a + i, 16);
}
extern "C" __global__ void other(int* a) { a[threadIdx.x] = 1; }
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("machine code") / "k.cu"


@pytest.fixture(scope="module")
def instructions(path: Path) -> dict[str, tuple[MemoryInstruction, ...]]:
    compiled = compile_cubin(Source(str(path), TEXT.encode()), arch="sm_90")
    assert compiled.cubin is not None, compiled.reason
    found = memory_instructions(compiled.cubin)
    assert not isinstance(found, Missing)
    return found


def at(instructions: dict[str, tuple[MemoryInstruction, ...]], line: int) -> Counter[tuple[str, str, int]]:
    (kernel,) = (found for name, found in instructions.items() if name != "other")
    return Counter((str(i.space), str(i.kind), i.width) for i in kernel if i.line == line and i.space != "constant")


@pytest.mark.sass
@pytest.mark.parametrize(
    ("line", "meant"),
    [
        (3, {("global", "load", 4): 2}),
        (13, {("global", "load", 4): 4, ("shared", "store", 16): 1}),
        (15, {("shared", "load", 4): 64, ("local", "store", 16): 16}),
        (16, {("shared", "load", 16): 1, ("global", "store", 4): 1}),
        (17, {("local", "load", 4): 1, ("global", "store", 4): 1}),
        (19, {("global", "load", 1): 1, ("global", "store", 1): 1}),
        (20, {("global", "load", 16): 1, ("global", "store", 16): 1}),
    ],
)
def test_each_line_has_the_accesses_and_widths_that_ptxas_chose(
    line: int, meant: dict[tuple[str, str, int], int], instructions: dict[str, tuple[MemoryInstruction, ...]]
) -> None:
    assert at(instructions, line) == meant


@pytest.mark.sass
def test_an_inlined_access_stands_at_its_own_line_and_names_its_callers(
    instructions: dict[str, tuple[MemoryInstruction, ...]], path: Path
) -> None:
    inlined = [i for found in instructions.values() for i in found if i.line == 3 and i.space == "global"]
    assert {i.file for i in inlined} == {str(path)}
    assert {i.callers for i in inlined} == {((str(path), 6), (str(path), 16))}


@pytest.mark.sass
def test_an_asynchronous_copy_reads_global_and_writes_shared_memory(
    instructions: dict[str, tuple[MemoryInstruction, ...]],
) -> None:
    copies = [i for found in instructions.values() for i in found if i.opcode.startswith("LDGSTS")]
    assert [(i.space, i.kind, i.width) for i in copies] == [("global", "load", 16), ("shared", "store", 16)]
    assert copies[0].callers[-1][1] == 21


@pytest.mark.sass
def test_kernels_are_apart_and_in_the_order_of_their_code(
    instructions: dict[str, tuple[MemoryInstruction, ...]],
) -> None:
    assert len(instructions) == 2
    assert [(i.space, i.kind, i.line) for i in instructions["other"] if i.space == "global"] == [
        ("global", "store", 23)
    ]
    for found in instructions.values():
        assert [i.offset for i in found] == sorted(i.offset for i in found)


@pytest.mark.sass
def test_a_cubin_is_disassembled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = compile_cubin(Source(str(tmp_path / "k.cu"), b"__global__ void k(int* a) { a[0] = 1; }"))
    assert compiled.cubin is not None, compiled.reason
    first = memory_instructions(compiled.cubin)
    monkeypatch.setattr("warpwright.toolchain.machine_code.run_limited", None)
    assert memory_instructions(compiled.cubin) == first


@pytest.mark.sass
def test_a_file_that_is_no_cubin_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.cubin").write_text("not a cubin")
    with pytest.raises(DisassemblyError) as caught:
        memory_instructions(tmp_path / "a.cubin")
    assert "cannot read a.cubin" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.sass
def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DisassemblyError, match=r"a\.cubin cannot be read"):
        memory_instructions(tmp_path / "a.cubin")


def test_no_compiler_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPWRIGHT_NVCC", "/nowhere/nvcc")
    found = memory_instructions(tmp_path / "a.cubin")
    assert isinstance(found, Missing)
    assert "/nowhere/nvcc" in str(found)


@pytest.mark.parametrize("text", ["", "no section\n/*0010*/ LDG.E R1 ;", ".text.k:\n", '//## File "a", line x'])
def test_what_nvdisasm_does_not_print_is_no_kernel(text: str) -> None:
    assert not any(parse_machine_code(text).values())
