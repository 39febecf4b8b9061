"""Launches are kept while the host code stays; what is said must be what a fresh look says."""

from __future__ import annotations

import time
from unittest.mock import patch

import pytest
from warpwright.facts.analyze import analyze
from warpwright.facts.cache import KernelCache
from warpwright.facts.document import facts_document
from warpwright.facts.launches import HostReader
from warpwright.syntax.source import Source

HOST = "void f(float* a, int n) {\n    int threads = 64;\n    k<<<n, threads>>>(a, n);\n    cudaGetLastError();\n}\n"
TEXT = (
    "__global__ void k(float* a, int n) {\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) a[i] = 1;\n}\n" + HOST
)
EDITS = {
    "a line in the kernel": ("    if", "    int two = 2;\n    if"),
    "a body that is half written": ("a[i] = 1;", "a[i = "),
    "a body that swallows the rest": ("a[i] = 1;\n}", "a[i] = 1;\n"),
    "another block": ("threads = 64", "threads = 96"),
    "a line before the launch": ("    k<<<", "\n    k<<<"),
    "another parameter": ("float* a, int n) {\n    int i", "float* a, long n) {\n    int i"),
    "a launch in the kernel": ("a[i] = 1;", "k<<<1, 32>>>(a, n);"),
    "a macro between": ("void f", "#define k other\nvoid f"),
}


@pytest.mark.parametrize("old, new", EDITS.values(), ids=EDITS)
def test_kept_launches_are_those_of_a_fresh_look(old: str, new: str) -> None:
    cache = KernelCache()
    analyze(Source("a.cu", TEXT.encode()), cache=cache)
    for text in (TEXT.replace(old, new, 1), TEXT, TEXT.replace(old, new, 1)):
        assert text == TEXT or old in TEXT
        fresh, kept = Source("a.cu", text.encode()), Source("a.cu", text.encode())
        assert facts_document([analyze(kept, cache=cache)]) == facts_document([analyze(fresh)])


def test_launches_of_a_host_template_are_kept() -> None:
    text = (
        "template <int N> __global__ void k(float* a) {\n    a[threadIdx.x * N] = 1;\n}\n"
        "template <int N> void run(float* a) { k<N><<<2, 32>>>(a); }\n"
        "void f(float* a) { run<1>(a); run<8>(a); }\n"
    )
    cache = KernelCache()
    analyze(Source("a.cu", text.encode()), cache=cache)
    edited = Source("a.cu", text.replace("= 1;", "= 2;\n    a[0] = 3;").encode())
    found = facts_document([analyze(edited, cache=cache)])
    assert found == facts_document([analyze(Source("a.cu", edited.data))])
    assert {launch["source"] for launch in found["kernels"][0]["launches"]} == {"a.cu:5"}


def test_host_code_is_not_read_again_for_an_edit_in_a_kernel() -> None:
    cache = KernelCache()
    analyze(Source("a.cu", TEXT.encode()), cache=cache)
    edited = Source("a.cu", TEXT.replace("= 1;", "= 2;").encode())
    with patch.object(HostReader, "sites", side_effect=AssertionError("read again")):
        program = analyze(edited, cache=cache)
    (launch,) = program.kernels[0].launches
    assert (launch.block, launch.source, launch.span and launch.span.source) == ((64, 1, 1), "a.cu:7", edited)


def test_what_is_kept_does_not_hold_the_text() -> None:
    cache = KernelCache()
    analyze(Source("a.cu", TEXT.encode()), cache=cache)
    entries = [entry for versions in cache.kernels.values() for entry in versions.values()]
    assert entries and all(not access.span.source.data for entry in entries for access in entry.kernel.accesses)
    sites = [site for known, _ in cache.launches.entries.values() for _, site in known]
    assert sites and all(site.launch.span is None for site in sites)


def test_a_kernel_under_edits_keeps_few_versions() -> None:
    cache = KernelCache()
    for number in range(20):
        analyze(Source("a.cu", TEXT.replace("= 1;", f"= {number};").encode()), cache=cache)
    assert [len(versions) for versions in cache.kernels.values()] == [4]


def test_the_launches_of_a_long_host_function_with_many_tests_are_read_soon() -> None:
    """What may change in the function is looked for once, not for each test that may leave it."""
    tests = "\n".join(
        f"    int s{i} = {i} * sizeof(float); cudaMalloc(&p, s{i}); if (s{i} == 7) return 1; use(p, s{i});"
        for i in range(400)
    )
    text = f"""__global__ void k(float *p) {{ p[threadIdx.x] = 1; }}
void use(float *, int);
int main() {{
    float *p;
{tests}
    k<<<8, 128>>>(p);
}}"""
    began = time.process_time()
    kernel = analyze(Source("a.cu", text.encode())).kernel("k")
    assert kernel is not None and kernel.launches[0].block == (128, 1, 1)
    assert time.process_time() - began < 4
