"""How much dynamic shared memory the host code asks for."""

from __future__ import annotations

import pytest
from warpwright.facts.analyze import analyze
from warpwright.missing import Missing
from warpwright.problems.infer import find_problem
from warpwright.syntax.source import Source

TEXT = """#define LET_HAVE(k, n) cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, n)
__global__ void other(float* out) {{ out[threadIdx.x] = 1.0f; }}
__global__ void turn(const float* in, float* out, int n) {{
    extern __shared__ float tile[];
    int i = blockIdx.x * 128 + threadIdx.x;
    tile[threadIdx.x] = i < n ? in[i] : 0.0f;
    __syncthreads();
    if (i < n) out[i] = tile[127 - threadIdx.x];
}}
{before}
void run(const float* in, float* out, int n) {{
    {inside}
    turn<<<(n + 127) / 128, 128, 60000>>>(in, out, n);
}}
"""
ASKS = "cudaFuncSetAttribute({}, cudaFuncAttributeMaxDynamicSharedMemorySize, {});"


@pytest.mark.parametrize(
    ("before", "inside", "asked"),
    [
        ("", "", "0"),
        ("", ASKS.format("turn", "60000"), "60000"),
        ("", f"CHECK({ASKS.format('(const void*)&turn', '1024 * 64')[:-1]});", "65536"),
        ("", ASKS.format("other", "60000"), "0"),
        ("", "// " + ASKS.format("turn", "60000"), "0"),
        ("", 'puts("cudaFuncAttributeMaxDynamicSharedMemorySize");', "0"),
        ("", ASKS.format("turn", "properties.sharedMemPerBlockOptin"), None),
        ("", "auto chosen = turn; " + ASKS.format("chosen", "50000"), "50000"),
        ("", "LET_HAVE(turn, 60000);", None),
        ("void prepare(int bytes) { " + ASKS.format("turn", "bytes") + " }", "prepare(60000);", None),
        ("", "cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000, k, 0);", None),
    ],
    ids=[
        "nothing", "a-number", "checked-and-cast", "another-kernel", "a-comment", "a-string", "the-device's-most",
        "through-a-variable", "a-macro", "another-function", "the-driver's",
    ],
)  # fmt: skip
def test_what_the_host_code_asks_for(before: str, inside: str, asked: str | None) -> None:
    text = TEXT.format(before=before, inside=inside)
    if "LET_HAVE" not in inside:
        text = text.split("\n", 1)[1]
    program = analyze(Source("/nowhere/a.cu", text.encode()))
    kernel = program.kernel("turn")
    assert kernel is not None
    problem = find_problem(program, kernel)
    assert not isinstance(problem, Missing), problem
    assert problem.shared_opt_in == asked
