"""Spills and arrays in local memory, told apart in what nvcc makes, against the bytes that ptxas gives."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from warpwright.facts.resources import KernelResources
from warpwright.missing import Missing
from warpwright.syntax.source import Source
from warpwright.toolchain.compile import compile_cubin
from warpwright.toolchain.local_traffic import LocalAccess, LocalPurpose, local_traffic
from warpwright.toolchain.machine_code import MachineInstruction, machine_code

BODY = """\
    float r[48];
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    #pragma unroll
    for (int j = 0; j < 48; j++) r[j] = a[i + j * n];
    for (int q = 0; q < n; q++)
        #pragma unroll
        for (int j = 0; j < 48; j++) r[j] = r[j] * r[(j + 7) % 48] + b[q];
    float s = 0;
    #pragma unroll
    for (int j = 0; j < 48; j++) s += r[j] * j;
"""
TEXT = f"""\
#include <cstdio>
__global__ void spills(const float* a, float* b, int n) {{
{BODY}
    b[i] = s;
}}
__global__ void both(const float* a, float* b, int n) {{
    float local[32];
    for (int j = 0; j < 32; j++) local[j] = a[j * n];
{BODY}
    b[i] = s + local[n & 31];
    if (i == 3) printf("%d", n);
}}
__global__ void array(const float* a, float* b, int n) {{
    float local[32];
    for (int j = 0; j < 32; j++) local[(j * n) & 31] = a[j];
    b[n] = local[n & 31];
}}
"""


@pytest.fixture(scope="module", params=["sm_75", "sm_90", "sm_120"])
def traffic(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[KernelResources, tuple[LocalAccess, ...]]]:
    path = tmp_path_factory.mktemp("local") / "k.cu"
    compiled = compile_cubin(Source(str(path), TEXT.encode()), arch=request.param, flags=("-maxrregcount=32",))
    assert compiled.cubin is not None, compiled.reason
    code = machine_code(compiled.cubin)
    assert not isinstance(code, Missing)
    return {name: (r, local_traffic(code[r.mangled_name], r)) for name, r in compiled.kernels.items()}


def total(accesses: tuple[LocalAccess, ...], kind: str, use: LocalPurpose) -> int:
    return sum(access.width for access in accesses if access.kind == kind and access.use is use)


@pytest.mark.sass
@pytest.mark.parametrize("name", ["spills", "both"])
def test_the_spills_add_up_to_what_ptxas_says(
    name: str, traffic: dict[str, tuple[KernelResources, tuple[LocalAccess, ...]]]
) -> None:
    resources, accesses = traffic[name]
    assert resources.spill_store_bytes > 0
    assert total(accesses, "store", LocalPurpose.SPILL) == resources.spill_store_bytes
    assert total(accesses, "load", LocalPurpose.SPILL) == resources.spill_load_bytes
    assert not [access for access in accesses if access.use is LocalPurpose.UNKNOWN]


@pytest.mark.sass
def test_an_array_and_an_argument_of_printf_are_no_spills(
    traffic: dict[str, tuple[KernelResources, tuple[LocalAccess, ...]]],
) -> None:
    _, accesses = traffic["both"]
    assert total(accesses, "store", LocalPurpose.ARRAY) == 4 * 33
    resources, accesses = traffic["array"]
    assert resources.spill_store_bytes == 0
    assert {access.use for access in accesses} == {LocalPurpose.ARRAY}
    assert Counter(access.kind.value for access in accesses)["load"] == 1
    assert {Path(access.file).name for access in accesses} == {"k.cu"}


def test_sums_that_no_offset_explains_are_unknown() -> None:
    code = [MachineInstruction(0, "STL", "[R1], R4"), MachineInstruction(16, "LDL", "R4, [R1]")]
    resources = KernelResources("k", "k", 32, 12, 12, 64, 0, 0, 0)
    assert {access.use for access in local_traffic(code, resources)} == {LocalPurpose.UNKNOWN}


def test_what_a_called_function_does_in_a_kernel_that_spills_is_unknown() -> None:
    code = [MachineInstruction(0, "STL", "[R1], R4"), MachineInstruction(16, "STL", "[R1], R4", function="f")]
    resources = KernelResources("k", "k", 32, 4, 0, 64, 0, 0, 0)
    assert [access.use for access in local_traffic(code, resources)] == [LocalPurpose.SPILL, LocalPurpose.UNKNOWN]


def test_a_load_that_never_runs_is_no_traffic() -> None:
    code = [MachineInstruction(0, "LDL", "RZ, [R1]", "@!PT")]
    assert not local_traffic(code, KernelResources("k", "k", 32, 0, 0, 0, 0, 0, 0))
