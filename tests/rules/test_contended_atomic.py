"""What the rule takes to be combined within a warp, against the code that nvcc makes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.findings import findings
from support.machine_code import machine_code

ATOMICS = {
    "int": "atomicAdd(i, h[at]); atomicSub(i, h[at]); atomicMin(i, h[at]); atomicMax(i + blockIdx.x, h[at]);"
    " atomicAnd(i, h[at]); atomicOr(i, h[at]); atomicXor(i, h[at]); atomicAdd(i + n, 1); i[n + atomicAdd(i, 1)] = at;"
    " atomicAdd(i + threadIdx.x / 32, h[at]); i[at] = atomicMax(i, h[at]); atomicAdd_block(i, h[at])",
    "float": "atomicAdd(f, x); atomicAdd(f + blockIdx.x, 1.0f)",
    "wide": "atomicAdd(u, 1ULL); atomicAdd(u, (unsigned long long)h[at]); atomicMax(u, (unsigned long long)h[at]);"
    " atomicAdd(d, (double)x)",
}


@pytest.mark.sass
def test_what_is_said_not_to_be_combined_is_not(tmp_path: Path) -> None:
    calls = [call.strip() for group in ATOMICS.values() for call in group.split(";")]
    signature = "(float *f, double *d, unsigned long long *u, int *i, const int *h, const float *in, int n)"
    text = "".join(
        f"__global__ void k{number}_{signature} {{\n"
        f"  int at = blockIdx.x * blockDim.x + threadIdx.x;\n  float x = in[at];\n  {call};\n}}\n"
        for number, call in enumerate(calls)
    )
    launches = "".join(f"  k{number}_<<<n / 256, 256>>>(f, d, u, i, h, in, n);\n" for number in range(len(calls)))
    said = {f.kernel for f in findings(f"{text}void run{signature} {{\n{launches}}}\n", "contended-atomic")}

    found = machine_code(text, tmp_path)
    code = {re.sub(r"^_Z\d+", "", name).split("_")[0] + "_": "\n".join(part) for name, part in found.items()}
    assert len(code) == len(calls)
    combined = {name for name, part in code.items() if re.search(r"\b(VOTEU?|REDUX)\b", part)}
    assert said == code.keys() - combined, [calls[int(name[1:-1])] for name in said ^ (code.keys() - combined)]
