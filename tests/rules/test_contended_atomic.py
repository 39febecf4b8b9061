"""What the rule takes to be combined within a warp, against the code that nvcc makes."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from support.findings import findings
from warpwright.toolchain.find import Toolchain, find_toolchain

ATOMICS = {
    "int": "atomicAdd(i, h[at]); atomicSub(i, h[at]); atomicMin(i, h[at]); atomicMax(i + blockIdx.x, h[at]);"
    " atomicAnd(i, h[at]); atomicOr(i, h[at]); atomicXor(i, h[at]); atomicAdd(i + n, 1); i[n + atomicAdd(i, 1)] = at;"
    " atomicAdd(i + threadIdx.x / 32, h[at]); i[at] = atomicMax(i, h[at]); atomicAdd_block(i, h[at])",
    "float": "atomicAdd(f, x); atomicAdd(f + blockIdx.x, 1.0f)",
    "wide": "atomicAdd(u, 1ULL); atomicAdd(u, (unsigned long long)h[at]); atomicMax(u, (unsigned long long)h[at]);"
    " atomicAdd(d, (double)x)",
}


@pytest.mark.nvcc
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

    toolchain = find_toolchain()
    assert isinstance(toolchain, Toolchain)
    assert toolchain.cuobjdump is not None
    (tmp_path / "k.cu").write_text(text)
    command = [toolchain.nvcc, "-w", "-O3", "-arch=sm_90", "-cubin", "-o", tmp_path / "k.cubin", tmp_path / "k.cu"]
    subprocess.run(command, check=True)
    dump = [toolchain.cuobjdump, "-sass", tmp_path / "k.cubin"]
    sass = subprocess.run(dump, check=True, capture_output=True, text=True).stdout
    code = {part.split("_")[0] + "_": part for part in re.split(r"Function : _Z\d+", sass)[1:]}
    assert len(code) == len(calls)
    combined = {name for name, part in code.items() if re.search(r"\b(VOTEU?|REDUX)\b", part)}
    assert said == code.keys() - combined, [calls[int(name[1:-1])] for name in said ^ (code.keys() - combined)]
