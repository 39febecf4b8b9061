from __future__ import annotations

from warpwright.facts.analyze import analyze
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
