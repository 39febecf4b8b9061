from __future__ import annotations

import pytest
from warpwright.facts.analyze import analyze
from warpwright.facts.model import AccessKind, Space
from warpwright.syntax.source import Source


def blocks(text: str) -> list[list[tuple[int | None, ...]]]:
    """The blocks of each kernel's launches, by the kernels' places; none for an assumed launch."""
    kernels = analyze(Source("a.cu", text.encode())).kernels
    return [[launch.block for launch in kernel.launches if launch.span is not None] for kernel in kernels]


def test_overloads_are_told_apart_by_their_arguments() -> None:
    kernels = "__global__ void k(float *a) { *a = 0; } __global__ void k(float *a, int n, int m = 0) { *a = n; }"
    text = kernels + "void run(float *a) { k<<<1, 32>>>(a); k<<<1, 64>>>(a, 1); k<<<1, 96>>>(a, 1, 2); }"
    assert blocks(text) == [[(32, 1, 1)], [(64, 1, 1), (96, 1, 1)]]


def test_namespaces_tell_kernels_of_one_name_apart() -> None:
    kernels = "".join(f"namespace {name} {{ __global__ void k(float *a) {{ *a = 0; }} }}\n" for name in "ab")
    text = kernels + (
        "void run(float *x) { a::k<<<1, 32>>>(x); b::k<<<1, 64>>>(x); }\n"
        "namespace b { void run(float *x) { k<<<1, 96>>>(x); } }\n"
    )
    assert blocks(text) == [[(32, 1, 1)], [(64, 1, 1), (96, 1, 1)]]


def test_a_launch_that_may_mean_several_counts_for_each() -> None:
    kernels = "__global__ void k(float *a) { *a = 0; } __global__ void k(double *a) { *a = 0; }"
    text = kernels + "void run(float *a) { k<<<1, 32>>>(a); }"
    assert blocks(text) == [[(32, 1, 1)], [(32, 1, 1)]]


DECLARED = """
template <unsigned N> __device__ void load(float *to, const float *from);
template <> __device__ void load<1u>(float *to, const float *from) { *to = *from; }
template <> __device__ void load<2u>(float *to, const float *from) { *(float2 *)to = *(const float2 *)from; }
template <> __device__ void load<4u>(float *to, const float *from) { *(float4 *)to = *(const float4 *)from; }
template <int MOST> __global__ void k(float *out, const float *in) {
  static const unsigned PER = MOST / 32;
  float mine[PER];
  load<PER>(mine, &in[threadIdx.x * PER]);
  out[threadIdx.x] = mine[0];
}
"""


def loaded(text: str) -> set[int]:
    """The widths of the loads of global memory."""
    (kernel,) = analyze(Source("a.cu", text.encode())).kernels
    found = {
        access.bytes for access in kernel.accesses if access.space is Space.GLOBAL and access.kind is AccessKind.LOAD
    }
    return {each for each in found if each is not None}


@pytest.mark.parametrize(("most", "widths"), [(32, {4}), (64, {8}), (128, {16}), (256, set())])
def test_a_template_that_is_only_declared_means_the_specialization_that_is_asked_for(
    most: int, widths: set[int]
) -> None:
    assert loaded(f"{DECLARED} void run(float *a) {{ k<{most}><<<1, 32>>>(a, a); }}") == widths


def test_specializations_of_types_are_told_apart_by_the_arguments() -> None:
    text = (
        "template <typename T> __device__ T read(const T *from);\n"
        "template <> __device__ float read(const float *from) { return *from; }\n"
        "template <> __device__ double read<double>(const double *from) { return *from; }\n"
        "__global__ void k(float *out, const float *in) { out[threadIdx.x] = read(&in[threadIdx.x]); }\n"
        "void run(float *a) { k<<<1, 32>>>(a, a); }\n"
    )
    assert loaded(text) == {4}
