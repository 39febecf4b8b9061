"""How far a kernel reaches: bounds as the text shows them, checked against what threads really touch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warpwright.facts.lower import Lowerer
from warpwright.facts.model import Assumptions
from warpwright.facts.unit import collect
from warpwright.problems.expressions import evaluate, show
from warpwright.problems.reach import KernelReach, kernel_reach
from warpwright.syntax.source import Source

GLOBAL_ID = "int i = blockIdx.x * blockDim.x + threadIdx.x;"


def reach(body: str, parameters: str = "float* a, const int* idx, int n, int m", before: str = "") -> KernelReach:
    text = f"{before}\n__global__ void k({parameters}) {{ {body} }}"
    unit = collect(Source("a.cu", text.encode()), lambda _path, _name: None, Assumptions())
    (kernel,) = unit.kernels()
    return kernel_reach(unit, Lowerer(unit, kernel.source, {}).function(kernel), {})


def extent(found: KernelReach, name: str = "a") -> str | None:
    end = found.arrays[name].extent
    return show(end) if end is not None else None


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"{GLOBAL_ID} if (i < n) a[i] = 1;", "n"),
        (f"{GLOBAL_ID} if (i >= n) return; a[i] = 1;", "n"),
        (f"{GLOBAL_ID} a[i] = 1;", "blockDim.x * gridDim.x"),
        ("if (threadIdx.x < n) a[threadIdx.x] = 1;", "n"),
        ("if (blockIdx.x * m + threadIdx.x < n) a[blockIdx.x * m + threadIdx.x] = 1;", "n"),
        (f"{GLOBAL_ID} if (i + 1 < n) a[i + 1] = a[i - 1];", "n"),
        (f"{GLOBAL_ID} if (i < n * m) {{ int y = i / m, x = i % m; a[y * m + x] = 1; }}", "m * n"),
        (f"{GLOBAL_ID} for (; i < n; i += gridDim.x * blockDim.x) a[i] = 1;", "n"),
        (f"{GLOBAL_ID} while (i < n) {{ a[i] = 1; i += 32; }}", "n"),
        ("for (int j = 0; j != n; ++j) a[j] = 1;", "n"),
        ("for (int j = n - 1; j >= 0; --j) a[j] = 1;", "n"),
        ("for (int j = 0, at = 0; j < n; j++, at += m) a[at] = 1;", "m * n - m + 1"),
        ("for (int s = blockDim.x / 2; s > 0; s >>= 1) if (threadIdx.x < s) a[threadIdx.x] += a[threadIdx.x + s];",
         "2 * (blockDim.x / 2)"),
        ("a[min(n, m) - 1] = a[max(0, n - 5)];", "max(max(0, n - 5) + 1, min(n, m))"),
        ("a[threadIdx.x & 31] = a[threadIdx.x % 8] + a[threadIdx.x >> 2];", None),
        ("float* row = a + n * m; row += 3; row[2] = *(row + 1);", "m * n + 6"),
        ("reinterpret_cast<float4*>(a)[n] = make_float4(0, 0, 0, 0);", "4 * n + 4"),
        ("float2 v = *(float2*)(a + n);", "n + 2"),
        ("atomicAdd(&a[n], 1.0f);", "n + 1"),
        ("__shared__ float s[32]; __pipeline_memcpy_async(&s[threadIdx.x], &a[n + m], sizeof(float));", "n + m + 1"),
        ("a[threadIdx.x < n ? threadIdx.x : 0] = 1;", "n"),
        ("int k = n; if (m > 3) k = 2 * n; a[k] = 1;", "2 * n + 1"),
        ("int v[4]; for (int j = 0; j < 4; ++j) v[j] = n + j; a[v[m & 3]] = 1;", "n + 4"),
        ("__shared__ int s[64]; s[threadIdx.x] = n; __syncthreads(); a[s[0]] = 1;", "n + 1"),
        ("a[idx[0]] = 1;", "#idx"),
        ("for (int j = idx[0]; j < idx[1]; ++j) a[j] = 1;", "#idx - 1"),
        ("switch (m) { case 0: a[n] = 1; break; default: a[2] = 1; }", "max(n + 1, 3)"),
    ],
)  # fmt: skip
def test_each_index_has_its_bound(body: str, expected: str | None) -> None:
    found = extent(reach(body))
    if expected is None:
        assert found is not None
        assert evaluate(found, {"blockDim.x": 256, "gridDim.x": 9}) == 64
    else:
        assert found == expected


def test_a_copy_of_more_than_an_element_has_no_bound() -> None:
    body = "__shared__ float s[32]; __pipeline_memcpy_async(&s[4 * threadIdx.x], &a[4 * n], 16);"
    assert extent(reach(body)) is None


@pytest.mark.parametrize(
    "body",
    [
        "a[(int)a[0]] = 1;",
        "int j = 0; while (a[j] > 0) j++; a[j] = 1;",
        "a[atomicAdd((int*)idx, 1)] = 1;",
        "int j = n; for (int k = 0; k < m; k++) j = j * 2; a[j] = 1;",
    ],
)
def test_an_index_without_a_bound_has_none(body: str) -> None:
    assert extent(reach(body)) is None


def test_device_functions_are_followed() -> None:
    helpers = """
    struct View { float* p; int width; __device__ float& at(int y, int x) { return p[y * width + x]; } };
    __device__ int flat(int y, int x, int w) { if (y < 2) return x; return y * w + x; }
    __device__ void advance(int& j, int by) { j += by; }
    template <typename T> __device__ T get(const T* p, int k) { return p[k]; }
    """
    assert extent(reach("a[flat(n, m, 7)] = 1;", before=helpers)) == "7 * n + m + 1"
    assert extent(reach("int j = n; advance(j, 5); a[j] = get(a, m);", before=helpers)) == "max(m + 1, n + 6)"
    assert extent(reach("View v{a, m}; v.at(n, 3) = 1;", before=helpers)) == "m * n + 4"


@pytest.mark.parametrize(
    "body",
    [
        "elsewhere(a);",
        'asm volatile("st.global.f32 [%0], %1;" :: "l"(a + n), "f"(1.0f));',
        "auto put = [&](int j) { a[j] = 1; }; put(n);",
        "*(a + (int)a[0]) = 1;",
    ],
)
def test_what_is_not_followed_gives_no_bound(body: str) -> None:
    assert extent(reach(body)) is None


def test_either_side_of_a_choice_may_be_reached() -> None:
    assert extent(reach("(m > 3 ? a[n] : a[2 * n]) = 1;")) == "2 * n + 1"


def test_what_is_done_with_an_array_is_its_role() -> None:
    found = reach("a[0] = idx[0]; b[0] += 1; atomicAdd(c, 1); out(d);", "int* a, int* idx, int* b, int* c, int* d")
    assert {name: array.role for name, array in found.arrays.items()} == {
        "a": "out", "idx": "in", "b": "in-out", "c": "in-out", "d": "in-out",
    }  # fmt: skip
    assert found.arrays["d"].extent is None


def test_guards_say_how_large_the_grid_is() -> None:
    found = reach(
        f"{GLOBAL_ID} int y = blockIdx.y; if (i < n && y < m) for (int j = i; j < n; j += 4) a[y * n + j] = 1;"
    )
    assert {axis: show(end) for axis, end in found.coverage.threads.items()} == {"x": "n"}
    assert {axis: show(end) for axis, end in found.coverage.blocks.items()} == {"y": "m"}
    assert extent(found) == "m * n"


@given(
    n=st.integers(1, 40), m=st.integers(1, 12), add=st.integers(0, 5), step=st.integers(1, 7), block=st.integers(1, 33),
    grid=st.integers(1, 4), shape=st.sampled_from(["row", "column", "stride", "walk"]),
)  # fmt: skip
def test_no_thread_reaches_past_the_bound(
    n: int, m: int, add: int, step: int, block: int, grid: int, shape: str
) -> None:
    """The same loops in Python, thread by thread: what they touch lies below the bound."""
    bodies = {
        "row": f"if (i < n) for (int j = 0; j < m; j += {step}) a[i * m + j + {add}] = 1;",
        "column": f"if (i < n) for (int j = 0; j < m; j++) a[j * n + i + {add}] = 1;",
        "stride": f"for (int j = i; j < n; j += {step}) a[j + {add}] = 1;",
        "walk": f"int at = i; for (int j = 0; j < m; j++, at += {step}) a[at + {add}] = 1;",
    }
    touched = [0]
    for i in range(block * grid):
        if shape in ("row", "column"):
            columns = range(0, m, step if shape == "row" else 1)
            touched += [(i * m + j if shape == "row" else j * n + i) + add for j in columns if i < n]
        elif shape == "stride":
            touched += [j + add for j in range(i, n, step)]
        else:
            touched += [i + j * step + add for j in range(m)]
    bound = extent(reach(f"{GLOBAL_ID} {bodies[shape]}"))
    assert bound is not None
    assert max(touched) < evaluate(bound, {"n": n, "m": m, "blockDim.x": block, "gridDim.x": grid})
