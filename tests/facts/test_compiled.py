"""A kernel carries what the compiler says of its own instances, and its launches the occupancy that follows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from warpwright.facts.analyze import analyze
from warpwright.facts.compiled import LaunchOccupancy, instances_of, occupancies, with_compiled
from warpwright.facts.document import facts_document
from warpwright.facts.model import Basis, Kernel
from warpwright.facts.resources import KernelResources
from warpwright.syntax.source import Source
from warpwright.toolchain.compile import compile_cubin

TEXT = """\
namespace a {
template <typename T, int N> __global__ void k(T* x) {
    extern __shared__ float s[];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = s[N];
}
}
namespace b {
__global__ void k(float* x) { x[0] = 1; }
}
__global__ void same(float* x) { x[0] = 1; }
__global__ void same(int* x) { x[0] = 1; }
__global__ void alone(float* x) { x[0] = 1; }
void f(float* x, int n) {
    a::k<float, 3><<<1, 128, 4096>>>(x);
    a::k<double, 4><<<1, 256, 1024>>>((double*)x);
    b::k<<<1, 32>>>(x);
    same<<<1, 32>>>(x);
    alone<<<1, 64, n>>>(x);
}
"""
SOURCE = Source("a.cu", TEXT.encode())


def _resources(name: str, registers: int = 32, shared: int = 0, arch: str = "sm_90") -> KernelResources:
    return KernelResources(name, f"_Z{name}", registers, 0, 0, 0, shared, 0, 1, arch)


def _kernels(*resources: KernelResources) -> tuple[Kernel, ...]:
    return with_compiled(analyze(SOURCE), resources).defined_kernels


def _of(kernel: Kernel) -> list[LaunchOccupancy]:
    return list(occupancies(kernel))


def test_instances_go_to_the_kernel_of_their_namespace() -> None:
    kernels = _kernels(_resources("a::k<double, 4>"), _resources("a::k<float, 3>"), _resources("b::k"))
    assert [[r.name for r in kernel.compiled] for kernel in kernels[:2]] == [
        ["a::k<double, 4>", "a::k<float, 3>"],
        ["b::k"],
    ]


def test_overloads_carry_none_because_their_name_does_not_tell_them_apart() -> None:
    kernels = _kernels(_resources("same [_Z4samePf]"), _resources("same [_Z4samePi]"))
    assert [kernel.compiled for kernel in kernels if kernel.name == "same"] == [(), ()]


def test_a_launch_means_the_instance_whose_arguments_it_writes() -> None:
    kernel = _kernels(_resources("a::k<double, 4>"), _resources("a::k<float, 3>"))[0]
    assert [[r.name for r in instances_of(kernel, launch)] for launch in kernel.launches] == [
        ["a::k<float, 3>"],
        ["a::k<double, 4>"],
    ]


def test_occupancy_counts_static_and_dynamic_shared_memory() -> None:
    kernel = _kernels(_resources("a::k<float, 3>", shared=60 << 10))[0]
    first, second = _of(kernel)
    assert (first.footprint.shared_bytes, first.occupancy.blocks, first.basis) == (64 << 10, 3, Basis.EXACT)
    assert (second.footprint.shared_bytes, second.occupancy.blocks) == (61 << 10, 3)


def test_dynamic_shared_memory_that_is_not_known_gives_no_occupancy() -> None:
    alone = next(kernel for kernel in _kernels(_resources("alone")) if kernel.name == "alone")
    assert alone.compiled
    assert _of(alone) == []


def test_an_assumed_block_gives_an_assumed_occupancy() -> None:
    source = Source("a.cu", b"__global__ void k(float* x) { x[0] = 1; }\n")
    kernel = with_compiled(analyze(source), [_resources("k", registers=255)]).defined_kernels[0]
    (found,) = _of(kernel)
    assert found.basis is Basis.ASSUMED
    assert found.occupancy.limiter == "registers"


def test_an_architecture_that_is_not_known_gives_no_occupancy() -> None:
    kernel = _kernels(_resources("a::k<float, 3>"))[0]
    assert _of(replace(kernel, compiled=(_resources("a::k<float, 3>", arch="sm_999"),))) == []


def test_the_document_has_the_part_only_where_it_is_known() -> None:
    plain = facts_document([analyze(SOURCE)])
    assert all("compiled" not in kernel for kernel in plain["kernels"])
    document = facts_document([with_compiled(analyze(SOURCE), [_resources("b::k", registers=40)])])
    (compiled,) = [kernel["compiled"] for kernel in document["kernels"] if "compiled" in kernel]
    assert (compiled[0]["name"], compiled[0]["registers"], compiled[0]["occupancy"][0]["blocks"]) == ("b::k", 40, 32)


@pytest.mark.nvcc
def test_the_compilers_names_are_those_that_are_looked_for() -> None:
    compiled = compile_cubin(SOURCE)
    assert compiled.ok, compiled.reason
    kernels = with_compiled(analyze(SOURCE), compiled.kernels.values()).defined_kernels
    assert [len(kernel.compiled) for kernel in kernels] == [2, 1, 0, 0, 1]
    assert {each.arch for kernel in kernels for each in kernel.compiled} == {"sm_90"}
