"""What a value depends on, as far as names tell: in short kernels, and soon in very long ones."""

from __future__ import annotations

import time

import pytest
from support.findings import program
from warpwright.facts.model import Kernel
from warpwright.rewrites._code import body
from warpwright.rewrites._names import reached_names
from warpwright.rewrites.registry import proposals
from warpwright.syntax.nodes import descendants

SHORT = """
#define WIDTH (8 * scale)
__device__ int twice(int v) { return v + v * bias; }
__global__ void f(float *a, int n, int m, int k) {
    int i = threadIdx.x;
    if (m > 3) return;
    int j = 0;
    for (int s = 0; s < k; s++) j += WIDTH;
    int late = twice(i);
    a[late] = a[j];
}
"""


@pytest.mark.parametrize(
    ("value", "reached", "not_reached"),
    [
        ("j", {"j", "s", "k", "WIDTH", "scale", "m"}, {"i", "late", "n"}),
        ("late", {"late", "twice", "bias", "i", "threadIdx", "m"}, {"j", "n"}),
        ("i", {"i", "threadIdx"}, {"m", "k", "n"}),
    ],
)
def test_values_loops_jumps_macros_and_functions_are_followed(
    value: str, reached: set[str], not_reached: set[str]
) -> None:
    kernel = only_kernel(SHORT)
    block = body(kernel)
    assert block is not None
    use = next(n for n in descendants(block, "identifier") if kernel.source.node_text(n) == value)
    found = reached_names(block, kernel.source, use)
    assert reached <= found
    assert not found & not_reached


def test_the_rewrites_of_a_long_kernel_with_many_conditions_are_found_soon() -> None:
    """Each variable is made of the one before it behind a jump: what each depends on is all before it."""
    lines = "\n".join(
        f"""    if (n == {i}) return;
    float v{i} = a[v{i - 1} > 0.f ? i * n + {i} : {i}];
    for (int k = i * n; k < i * n + n; k++) {{ if (a[k] > v{i}) break; b[k] = v{i} + a[k * n]; }}"""
        for i in range(1, 50)
    )
    text = f"""__global__ void f(const float *a, float *b, int n) {{
    int i = threadIdx.x;
    float v0 = 0.f;
{lines}
}}
void go(float *a, float *b, int n) {{ f<<<1, 256>>>(a, b, n); }}
"""
    kernel = only_kernel(text)
    began = time.process_time()
    made, declined = proposals(kernel, "speed")
    assert made or declined
    assert time.process_time() - began < 8


def only_kernel(text: str) -> Kernel:
    (kernel,) = program(text).defined_kernels
    return kernel
