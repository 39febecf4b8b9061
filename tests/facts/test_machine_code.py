"""What the facts say that the compiler makes of accesses and conditions, against the code that nvcc makes of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.findings import program
from support.machine_code import machine_code
from warpwright.facts.model import AccessKind, Kernel, Space

MERGED = {
    "four": "o[t] = s[4 * t] * s[4 * t + 1] + s[4 * t + 2] * s[4 * t + 3];",
    "two": "o[t] = s[2 * t] + s[2 * t + 1];",
    "three_apart": "o[t] = s[3 * t] + s[3 * t + 1] * s[3 * t + 2];",
    "two_off": "o[t] = s[2 * t + 1] + s[2 * t + 2];",
    "three_of_four": "o[t] = s[4 * t] * s[4 * t + 1] + s[4 * t + 2];",
    "row": "float x = 0; for (int k = 0; k < 32; k++) x += m[threadIdx.y][k]; o[t] = x;",
    "padded_row": "float x = 0; for (int k = 0; k < 32; k++) x += q[threadIdx.y][k]; o[t] = x;",
    "stores": "float x = o[t]; s[4 * t] = x; s[4 * t + 1] = x * 2; s[4 * t + 2] = x * 3; s[4 * t + 3] = x * 4;",
    "store_between": "float x = s[2 * t]; r[t] = x; float y = s[2 * t + 1]; r[t + 9] = y;",
    "global_store_between": "float x = s[2 * t]; o[t] = x; float y = s[2 * t + 1]; o[t + 9] = y;",
    "even_start": "o[t] = s[n * 2 + 2 * t] + s[n * 2 + 2 * t + 1];",
    "any_start": "o[t] = s[blockDim.x + 2 * t] + s[blockDim.x + 2 * t + 1];",
    "vector": "o[t] = v[t].x * v[t].y + v[t].z * v[t].w;",
    "vector_half": "o[t] = v[t].x * v[t].y;",
    "vector_middle": "o[t] = v[t].y * v[t].z;",
    "floats": "o[t] = a[4 * t] * a[4 * t + 1] + a[4 * t + 2] * a[4 * t + 3];",
    "halves": "h[t] = g[2 * t] + g[2 * t + 1];",
}
"""Bodies of kernels by name: accesses that nvcc makes one of, and some that it leaves apart."""

FIRST = """\
#include <cuda_fp16.h>
extern "C" __global__ void {name}(float *o, const float *a, float4 *v, __half *h, const __half *g, int n) {{
  __shared__ float s[2048], r[2048], m[32][32], q[32][33];
  int t = threadIdx.x;
  s[t] = o[t]; r[t] = o[t + 1]; m[threadIdx.y][t] = o[t + 2]; q[threadIdx.y][t] = o[t + 3];
  __syncthreads();
  {body}
  __syncthreads();
  o[t + 4096] = s[t ^ 5] + r[t ^ 3];
}}
"""

BODIES = {
    "store": "o[i] = 1;",
    "copy": "o[i] = a[i];",
    "copy_two": "o[i] = a[i]; p[i] = b[i];",
    "copy_three": "o[i] = a[i]; p[i] = b[i]; q[i] = c[i];",
    "copy_four": "o[i] = a[i]; p[i] = b[i]; q[i] = c[i]; w[i] = d[i];",
    "stores_three": "o[i] = 0; p[i] = 1; q[i] = 2;",
    "reduce": "s[t] += s[t + 32];",
    "reduce_two": "s[t] += s[t + 32]; r[t] += r[t + 32];",
    "reduce_four": "s[t] += s[t + 32]; r[t] += r[t + 32]; s[t + 300] += s[t + 332]; r[t + 300] += r[t + 332];",
    "polynomial": "float x = a[i]; o[i] = x * x * x + 2 * x * x + 3 * x + 4;",
    "divide": "o[i] = a[i] / b[i];",
    "root": "o[i] = sqrtf(a[i]);",
    "atomic": "atomicAdd(o, 1.0f);",
    "loop": "for (int k = 0; k < n; k++) o[i + k] = a[i + k];",
    "to_shared": "s[t] = a[blockIdx.x * 128 + t];",
    "to_shared_two": "s[t] = a[i]; s[t + 99] = b[i];",
    "constant": "s[t] = 1;",
    "one_of_two": "o[i] = i > 5 ? a[i] : 0.0f;",
}
"""Sides of conditions, short and long."""

CONDITIONS = {"bound": "i < n", "one_lane": "threadIdx.x == 0", "half": "threadIdx.x < 128"}

SECOND = """\
extern "C" __global__ void {name}(float *o, float *p, float *q, float *w, const float *a, const float *b,
    const float *c, const float *d, int n) {{
  __shared__ float s[2048], r[2048];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t] = n; r[t] = n + 1;
  __syncthreads();
  if ({condition}) {{ {body} }}
  __syncthreads();
  o[i + 4096] = s[t ^ 1] + r[t ^ 2];
}}
"""

AGREEMENT = 0.9
"""Share of the conditions on which the facts and nvcc have to agree: its heuristic is not published."""


def _widths(kernel: Kernel, first: int, last: int) -> set[str]:
    """The accesses in lines first to last as mnemonics with their bytes, such as LDS16."""
    found = set()
    for access in kernel.accesses:
        if first <= access.span.line <= last and not access.joined and access.space is not Space.LOCAL:
            what = "LD" if access.kind is AccessKind.LOAD else "ST"
            found.add(f"{what}{'S' if access.space is Space.SHARED else 'G'}{access.bytes}")
    return found


def _machine_widths(code: list[str]) -> set[str]:
    found = set()
    for instruction in code:
        match = re.match(r"(?:@!?U?P\d+ )?(LDG|STG|LDS|STS)(\S*)", instruction)
        if match:
            size = next((bits for bits in ("128", "64", "16", "8") if re.search(rf"\.U?{bits}\b", match[2])), "32")
            found.add(f"{match[1]}{int(size) // 8}")
    return found


def _between_barriers(code: list[str]) -> list[str]:
    barriers = [at for at, instruction in enumerate(code) if "BAR.SYNC" in instruction]
    return code[barriers[0] + 1 : barriers[1]]


@pytest.mark.sass
def test_neighbouring_accesses_are_merged_as_nvcc_merges_them(tmp_path: Path) -> None:
    code = machine_code("".join(FIRST.format(name=name, body=body) for name, body in MERGED.items()), tmp_path)
    said, made = {}, {}
    for name, body in MERGED.items():
        text = FIRST.format(name=name, body=body) + f"void f() {{ {name}<<<100, dim3(32, 8)>>>(0, 0, 0, 0, 0, 7); }}"
        (kernel,) = program(text).defined_kernels
        line = next(at for at, row in enumerate(text.splitlines(), 1) if row.strip() == body)
        said[name] = {width for width in _widths(kernel, line, line) if width[2] == "S" or name in ("vector", "floats")}
        made[name] = {
            width
            for width in _machine_widths(_between_barriers(code[name]))
            if width[2] == "S" or name in ("vector", "floats")
        }
    assert said == made


@pytest.mark.sass
def test_short_conditions_are_predicated_as_nvcc_predicates_them(tmp_path: Path) -> None:
    cases = {f"{b}_{c}": (body, test) for b, body in BODIES.items() for c, test in CONDITIONS.items()}
    kernels = {name: SECOND.format(name=name, body=body, condition=test) for name, (body, test) in cases.items()}
    code = machine_code("".join(kernels.values()), tmp_path)
    differing = []
    for name, text in kernels.items():
        (kernel,) = program(
            text + f"void f() {{ {name}<<<100, 256>>>(0, 0, 0, 0, 0, 0, 0, 0, 25000); }}"
        ).defined_kernels
        said = next(branch.predicated for branch in kernel.branches if branch.kind == "if")
        branches = [i for i in _between_barriers(code[name]) if "BRA" in i]
        if said != (not branches):
            differing.append(name)
    assert len(differing) <= (1 - AGREEMENT) * len(cases), differing
