"""Facts about arithmetic and local arrays, against the code that nvcc makes of the same text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.findings import program
from support.machine_code import machine_code

FLOATS = """
x * 0.5; x * 0.1; x + 1.0; x / 2.0; 1.0 / x; x > 0.0 ? y : x; x > 0.1 ? y : x; fmaxf(x, 0.0); max(x, 0.0)
x > y ? 1.0 : 0.0; x > y ? x : 0.0; sqrt(2.0) * x; x * (float)0.1; sqrt(x); sqrt(x + 1.0); exp(-x * 0.5); x * y + 0.5
x * -1.0; 0.5 * x * y; 2.0 * x + y; 1.0 - x; i * 0.5; i * 0.5f; max(x, 0.5); x > 0.5 ? y : x; floor(x * 0.5)
(double)x * y; (x + y) / 2.0; (x + y) / 3.0; x + y * 2.0; x / 3.0; sin(x * 3.14159); 0.5; fmaf(x, y, 0.5); -(x * 0.5)
x * (1.0 / 3.0); 1.0 / (1.0 + exp(-x)); 1.0f / (1.0f + exp(-x)); (int)(x + 0.5); (int)(x + 0.5f); x == 1.0 ? y : x
x < 2 ? y : x; x > y ? x * 0.5 : y; x * 1e300 > y ? x : y; fabs(x * 2.0); __expf(x * 0.1); make_float2(x * 0.1, y).x
x > 1e-5f ? x : y; half_of(x); wide(x); x * TENTH; x * HALF; x * M_PI; x - (float)(y * 0.1); (x += 0.25); (x *= 0.1)
"""
"""Values for a float, each computed in double by nvcc or not."""

HEAD = """\
#include <cmath>
#define TENTH 0.1
const float HALF = 0.3;
__device__ float half_of(float v) { return v * 0.5; }
__device__ double wide(double v) { return v; }
"""

ARRAYS = {
    "known_indices": "float t[16]; for (int k = 0; k < 16; k++) t[k] = a[k + i]; o[i] = t[3] * t[9];",
    "outer_loop": "float t[64]; for (int k = 0; k < 64; k++) t[k] = 0; for (int r = 0; r < n; r++)"
    " for (int k = 0; k < 64; k++) t[k] += a[r * 64 + k] * i; for (int k = 0; k < 64; k++) o[i * 64 + k] = t[k];",
    "one_select": "float t[32]; for (int k = 0; k < 32; k++) t[k] = a[i * 32 + k]; o[i] = t[n];",
    "run_time_loop": "float t[32]; for (int k = 0; k < 32; k++) t[k] = a[i * 32 + k]; float s = 0;"
    " for (int k = 0; k < n; k++) s += t[k]; o[i] = s;",
    "histogram": "int t[32]; for (int k = 0; k < 32; k++) t[k] = 0; for (int r = 0; r < n; r++) t[h[r * n + i]]++;"
    " for (int k = 0; k < 32; k++) o[i * 32 + k] = t[k];",
    "too_large": "float t[512]; for (int k = 0; k < 512; k++) t[k] = a[i * 512 + k]; float s = 0;"
    " for (int k = 0; k < 512; k++) s += t[k] * t[511 - k]; o[i] = s;",
    "doubles": "double t[4]; for (int k = 0; k < 4; k++) t[k] = a[i * 4 + k]; o[i] = t[n];",
    "bytes": "char t[16]; for (int k = 0; k < 16; k++) t[k] = h[i * 16 + k]; o[i] = t[n];",
    "stack": "int t[32]; int top = 0; t[top++] = 0; float s = 0; while (top) { int q = t[--top]; s += a[q];"
    " int c = h[q]; if (c > 0 && top < 31) t[top++] = c; } o[i] = s;",
    "chosen": "int t[32]; for (int k = 0; k < 32; k++) t[k] = n; for (int r = 0; r < n; r++) {"
    " int at = (h[r] > i) * 16 + (h[r + 1] > i) * 8; if (t[at] < r) t[at] = h[r + 2]; } o[i] = t[8] + t[24];",
    "helper": "float t[32]; for (int k = 0; k < 32; k++) t[k] = a[i * 32 + k]; o[i] = pick(t, n) + pick(t, h[i]);",
    "helper_known": "float t[32]; for (int k = 0; k < 32; k++) t[k] = a[i * 32 + k]; o[i] = pick(t, 2) + pick(t, 7);",
}
"""Local arrays, each kept in local memory by nvcc or not."""


def _kernel(name: str, body: str) -> str:
    return (
        f"__global__ void {name}(float *o, const float *a, const int *h, int n) {{\n"
        f"  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  {body}\n}}\n"
    )


def _machine_code(text: str, tmp_path: Path) -> dict[str, str]:
    """SASS by kernel."""
    found = machine_code(text, tmp_path)
    return {re.sub(r"^_Z\d+|(Pf|P[a-z]).*", "", name): "\n".join(code) for name, code in found.items()}


@pytest.mark.sass
def test_what_is_said_to_be_double_is(tmp_path: Path) -> None:
    values = [value.strip() for line in FLOATS.strip().splitlines() for value in line.split(";")]
    kernels = {f"v{i}_": value for i, value in enumerate(values)}
    text = HEAD + "".join(
        _kernel(name, f"float x = a[i], y = a[i + n]; float z = {value}; o[i] = z + x;")
        for name, value in kernels.items()
    )
    said = {kernel.name for kernel in program(text).kernels if kernel.promotions}
    code = _machine_code(text, tmp_path)
    assert code.keys() == kernels.keys()
    wanted_double = {"(double)x * y"}
    wrong = {
        kernels[name]: name in said
        for name, sass in code.items()
        if kernels[name] not in wanted_double
        and (name in said) != bool(re.search(r"\b(DADD|DMUL|DFMA|DSETP|DMNMX|F2F\.F64)\b", sass))
    }
    assert not wrong


@pytest.mark.sass
def test_what_is_said_to_be_in_local_memory_is(tmp_path: Path) -> None:
    pick = "__device__ float pick(const float *p, int k) { return p[k]; }\n"
    text = pick + "".join(_kernel(f"{name}_", body) for name, body in ARRAYS.items())
    said = {k.name for k in program(text).kernels if any(access.space == "local" for access in k.accesses)}
    code = _machine_code(text, tmp_path)
    assert code.keys() == {f"{name}_" for name in ARRAYS}
    assert said == {name for name, sass in code.items() if re.search(r"\b(LDL|STL)\b", sass)}


@pytest.mark.sass
def test_no_power_is_simplified_by_the_compiler(tmp_path: Path) -> None:
    """A call that the rule reports comes to dozens of instructions; the product that it asks for to one or two."""
    calls = [
        f"{call}({base}, {exponent})"
        for exponent in ("2", "3", "4", "-1", "-2", "0.5", "-0.5", "1.5")
        for call, base in (("powf", "x"), ("pow", "x"), ("pow", "(double)x"))
    ]
    text = "#include <cmath>\n" + "".join(
        _kernel(f"p{number}_", f"float x = a[i]; o[i] = {call};") for number, call in enumerate(calls)
    )
    assert sum(len(kernel.powers) for kernel in program(text).kernels) == len(calls)
    lengths = {name: len(part.splitlines()) for name, part in _machine_code(text, tmp_path).items()}
    assert len(lengths) == len(calls)
    short = {calls[int(name[1:-1])]: length for name, length in lengths.items() if length < 70}
    assert not short
