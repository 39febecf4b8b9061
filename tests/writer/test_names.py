"""Names in a formula that C++, CUDA, its headers and the written text use for something else."""

from __future__ import annotations

import pytest
from support.written import computes_plainly_and_by_schedules
from warpwright.formulas.resolve import formula_of
from warpwright.writer.names import function_name

FORMULAS = (
    "int[i] = class[i] * template",
    "y[i] = y_kernel[i] + is_aligned[i] + y_kernel_plain",
    "_x[_i] = __y[_i] + _0[_i] + ___",
    "expf[i] = exp(__expf[i]) + _A[i]",
    "linux[i] = unix[i] + major[i] * minor[i]",
    "NULL[i] = INT_MAX[i] + EOF + RAND_MAX[i] + stdin",
    "gamma[t, c] = x[t, c] * T + y1[c] * rand",
    "y[t, c] = x[t, c] * gamma[c] / T",
    "p: f32[N]{x, y}\np.x'[i] = p.y[i]",
    "p: f32[N]{x, y} q: f32[N]{x, y}\nq.x[i] = sum[j <= i] p.x[j]\nq.y[i] = sum[j <= i] p.y[j]",
    "A'[i, j] = sum[k] A[i, k] * B[k, j]",
    "y[i, j] = B_slices[j] + A_depth[i] * sum[k] A[i, k] * B[k, j]",
    "out[i] = aligned_bytes[i] * sum[j] s[j]\ns[j] = sum[k] w[j, k] * stdout[k]",
)


@pytest.mark.sampled(6)
@pytest.mark.nvcc
@pytest.mark.parametrize("text", FORMULAS)
def test_a_name_that_is_taken_gets_another(text: str) -> None:
    formula = formula_of(text)
    name = function_name(formula.outputs[0].name)
    computes_plainly_and_by_schedules(formula, name)
