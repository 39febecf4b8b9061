"""What the host asks to have of the L1 cache as shared memory."""

from __future__ import annotations

import pytest
from warpwright.facts.analyze import analyze
from warpwright.facts.carveout import EVERY_KERNEL, carveouts
from warpwright.facts.compiled import occupancies, with_compiled
from warpwright.facts.resources import KernelResources
from warpwright.syntax.source import Source

KERNEL = "template <typename T> __global__ void k(T* x) { x[0] = 1; }\n"


def _carveouts(*calls: str) -> dict[str, int | None]:
    body = "".join(f"  {call};\n" for call in calls)
    host = f"void f(float* x) {{\n{body}  k<<<9999, 256>>>(x);\n}}\n"
    return carveouts([Source("a.cu", (KERNEL + host).encode())])


@pytest.mark.parametrize(
    ("call", "asked"),
    [
        ("cudaFuncSetCacheConfig(k<float>, cudaFuncCachePreferL1)", {"k": 0}),
        ("cudaFuncSetCacheConfig(&k<float>, cudaFuncCachePreferEqual)", {"k": 50}),
        ("cudaDeviceSetCacheConfig(cudaFuncCachePreferShared)", {EVERY_KERNEL: 100}),
        ("cudaFuncSetAttribute((const void*)k<float>, cudaFuncAttributePreferredSharedMemoryCarveout, 25)", {"k": 25}),
        ("cudaFuncSetAttribute(k<float>, cudaFuncAttributePreferredSharedMemoryCarveout, share)", {"k": None}),
        ("cudaFuncSetAttribute(k<float>, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536)", {}),
        ("other(k<float>, cudaFuncCachePreferL1)", {}),
    ],
)
def test_what_is_asked(call: str, asked: dict[str, int | None]) -> None:
    assert _carveouts(call) == asked


def test_two_that_differ_are_not_known() -> None:
    calls = [f"cudaFuncSetCacheConfig(k<float>, cudaFuncCachePrefer{which})" for which in ("L1", "Shared")]
    assert _carveouts(*calls) == {"k": None}
    assert _carveouts(calls[0], calls[0]) == {"k": 0}


@pytest.mark.parametrize(("call", "found"), [("", [1.0]), ("L1", [0.125]), ("Equal", [1.0]), ("share", [])])
def test_the_occupancy_follows(call: str, found: list[float]) -> None:
    asked = (
        f"cudaFuncSetCacheConfig(k<float>, {'cudaFuncCachePrefer' if call != 'share' else ''}{call});" if call else ""
    )
    source = Source("a.cu", f"{KERNEL}void f(float* x) {{ {asked} k<<<9999, 256>>>(x); }}\n".encode())
    resources = KernelResources("k<float>", "_Z1k", 32, 0, 0, 0, 6144, 0, 0, "sm_90")
    kernel = with_compiled(analyze(source), [resources]).defined_kernels[0]
    assert [each.occupancy.fraction for each in occupancies(kernel)] == found
