"""Worked examples of the task *formula*, for a model that has not learned its form."""

from __future__ import annotations

from warpwright.assist.formula_task import FormulaRequest, formula_answer, formula_prompt

SHOTS = (
    ("scale a vector by alpha", "float* x, float alpha, int n", "x'[i] = alpha * x[i]"),
    ("sum of every row", "", "s[r] = sum[c] x[r, c]"),
    ("C = A B + bias, all in half precision", "const half* A, const half* B, const half* bias, half* C, int m, int n",
     "A: f16, B: f16, bias: f16, C: f16, C[i, j] = (sum[k] A[i, k] * B[k, j]) + bias[j]"),
    ("softmax along the last dimension", "const float* logits, float* probs, int rows, int cols",
     "probs[r, c] = exp(logits[r, c] - m[r]) / s[r] where m[r] = max[c] logits[r, c], "
     "s[r] = sum[c] exp(logits[r, c] - m[r])"),
    ("3-point average, zeros outside", "", "y[i] = (x[i - 1; zero] + x[i] + x[i + 1; zero]) / 3"),
    ("count how often each bin occurs", "const int* bin, int* h, int n, int bins",
     "h: i32[B], bin: i32, h[bin[i]] = sum[i] 1"),
)  # fmt: skip


def worked_examples() -> str:
    """The worked examples, each as the task renders it, with an empty line behind it."""
    return "".join(
        f"{formula_prompt(FormulaRequest(comment, given))}{formula_answer(formula)}\n\n"
        for comment, given, formula in SHOTS
    )
