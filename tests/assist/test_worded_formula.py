"""Comments in words: what is read of them is what they say, and where a word is not understood nothing is read."""

from __future__ import annotations

import pytest
from warpwright.assist.readings import by_wordings
from warpwright.formulas.equality import same
from warpwright.formulas.resolve import formula_of

READ = [
    ("add two vectors", "y[i] = a[i] + b[i]"),
    ("elementwise relu of x", "y[i] = relu(x[i])"),
    ("TODO: copy x into out", "out[i] = x[i]"),
    ("y = gelu(x)", "y[i] = gelu(x[i])"),
    ("add a and b and store the result in c, half precision", "a: f16, b: f16, c[i] = a[i] + b[i]"),
    ("sum of a vector", "y = sum[i] x[i]"),
    ("row sums of x, then relu", "y[r] = relu(sum[c] x[r, c])"),
    ("sum of squares of each row of x", "y[r] = sum[c] x[r, c] ** 2"),
    ("max of the absolute values of x", "y = max[i] abs(x[i])"),
    ("column-wise mean of x[R][C]", "y[c] = mean[r] x[r, c]"),
    ("sum over all elements of a matrix", "y = sum[r, c] x[r, c]"),
    ("argmax of each row", "y[r] = argmax[c] x[r, c]"),
    ("prefix sum of x", "y[i] = sum[j <= i] x[j]"),
    ("relu of the sum of a and b", "y[i] = relu(a[i] + b[i])"),
    ("x + y", "y_[i] = x[i] + y[i]"),
    ("C = A + B", "C[i] = A[i] + B[i]"),
    ("matrix multiplication C = A B", None),
    ("tiled matrix multiplication of A and B using shared memory", "C[i, j] = sum[k] A[i, k] * B[k, j]"),
    ("matmul, then add bias, then gelu", "C[i, j] = gelu((sum[k] A[i, k] * B[k, j]) + bias[j])"),
    ("matrix-vector product", "y[i] = sum[k] A[i, k] * x[k]"),
    ("dot product of two vectors", "y = sum[i] a[i] * b[i]"),
    ("transpose of x[rows][cols]", "y[i, j] = x[j, i]"),
    ("relu of x in place", "x'[i] = relu(x[i])"),
    ("row-wise max of x[N][512]", "x: f32[R, 512], y[r] = max[c] x[r, c]"),
    ("saxpy", "y'[i] = a * x[i] + y[i]"),
    ("add bias[cols] to every row of x[rows][cols]", "y[r, c] = x[r, c] + bias[c]"),
    ("divide each row of x[R][C] by s[R]", "y[r, c] = x[r, c] / s[r]"),
    ("subtract b[n] from all rows of A[m][n], in place", "A'[m, n] = A[m, n] - b[n]"),
    ("mean squared error between pred[n] and target[n]", "loss = mean[i] (pred[i] - target[i]) ** 2"),
    ("sum of x[rows][cols]", "y = sum[r, c] x[r, c]"),
    ("histogram of bins", "h: i32[B], bins: i32, h[bins[i]] = sum[i] 1"),
]
NOTHING = [
    "",
    "the kernel below is slow",
    "the softmax above is wrong",
    "max of a over b",  # the article of nothing: an array
    "relu of a over b",
    "softmax over rows",  # along them, or of each one
    "sum of the neighbours of x",
    "softmax of x without the maximum",
    "masked softmax of x",
    "somme des lignes de x",
    "行ごとのソフトマックス",
    "relu and sigmoid of x",
    "divide each row of x by s",  # one for each row, or one for each column
    "add alpha to each row of x",  # a number, or an array
    "add x[cols] to each row of x[rows][cols]",
    "argmax of a matrix",
    "relu of x plus y",
    "FFT of x",
    "matmul of A, B and C",
    "x",
    "we should not add a and b",
    "add three vectors",
    "mean of row",
    "softmax of x, 3",
    "u_n + c0",  # an array and a number, or two arrays
    "swish of a vector and return the negative of that",
]


@pytest.mark.parametrize(("comment", "text"), READ)
def test_words_are_read_as_what_they_say(comment: str, text: str | None) -> None:
    found = by_wordings(comment)
    if text is None:
        assert not found
        return
    assert found, comment
    assert same(found[0].formula, formula_of(text)), found[0].formula.text


@pytest.mark.parametrize("comment", NOTHING)
def test_a_word_that_is_not_understood_leaves_nothing(comment: str) -> None:
    assert by_wordings(comment) == []


def test_what_is_left_open_gives_alternatives_of_different_meanings() -> None:
    rows, one = by_wordings("softmax of x")
    assert rows.formula.sizes == ("R", "C") and one.formula.sizes == ("I",)
    plain, *others = (each.formula for each in by_wordings("layer norm of each row"))
    assert set(plain.tensors) == {"x", "y"}
    assert any(set(each.tensors) == {"x", "y", "gamma", "beta"} for each in others)


CODE = [
    ("torch.softmax(x, dim=-1)",
     "y[r, c] = exp(x[r, c] - m[r]) / sum[c] exp(x[r, c] - m[r]) where m[r] = max[c] x[r, c]"),
    ("F.layer_norm(x, (D,), w, b)",
     "y[r, c] = (x[r, c] - mean[c] x[r, c]) * rsqrt(v[r] + 1e-5) * w[c] + b[c] where v[r] = var[c] x[r, c]"),
    ("y = F.gelu(x @ w + b)", "y[i, j] = gelu((sum[k] x[i, k] * w[k, j]) + b[j])"),
    ("out = x / x.sum(dim=-1, keepdim=True)", "out[r, c] = x[r, c] / sum[c] x[r, c]"),
    ("x.mean(-1, keepdim=True)", "y[r] = mean[c] x[r, c]"),
    ("F.linear(x, w, b)", "y[i, j] = (sum[k] x[i, k] * w[j, k]) + b[j]"),
    ("np.maximum(a, b)", "y[i] = max(a[i], b[i])"),
    ("x * torch.sigmoid(alpha * x)", "y[i] = x[i] * sigmoid(alpha * x[i])"),
    ("torch.cumsum(x, 1)", "y[r, c] = sum[j <= c] x[r, j]"),
    ("x - x.mean(-1)", None),  # torch would add a row to the columns
    ("torch.max(x, dim=1)", None),  # two results
    ("torch.var(x, -1)", None),  # torch divides by one less
    ("F.dropout(x, 0.5)", None),
    ("__import__('os').system('x')", None),
    ("print(x)", None),
    ("sizeof(x)", None),
    ("x.relu(", None),
    ("torch.clamp(x, 0, 1)", "y[i] = clamp(x[i], 0, 1)"),
    ("x @ A", None),  # a vector and a matrix, or two matrices
]  # fmt: skip


@pytest.mark.parametrize(("comment", "text"), CODE)
def test_an_expression_of_torch_is_read_and_nothing_is_run(comment: str, text: str | None) -> None:
    found = by_wordings(comment)
    if text is None:
        assert not found, found[0].formula.text
    else:
        assert found and same(found[0].formula, formula_of(text)), [each.formula.text for each in found]


SIGNED = [
    ("add two vectors", "const float* a, const float* b, float* c, int n", "c[i] = a[i] + b[i]"),
    ("subtract b from a", "const float* a, const float* b, float* c, int n", None),
    ("row-wise softmax", "const half* in, half* out, int rows, int cols",
     "in: f16, out[r, c] = exp(in[r, c] - m[r]) / sum[c] exp(in[r, c] - m[r]) where m[r] = max[c] in[r, c]"),
    ("layer norm, eps 1e-5", "const float* x, const float* gamma, const float* beta, float* y, int rows, int cols",
     "y[r, c] = (x[r, c] - (mean[c] x[r, c])) * rsqrt(v[r] + 1e-5) * gamma[c] + beta[c] where v[r] = var[c] x[r, c]"),
    ("relu", "const float* x, const float* w, float* y, int n", None),  # what w is for, nothing says
    ("relu of x", "const float* input, float* y, int n", None),
    ("relu in place", "float* x, int n", "x'[i] = relu(x[i])"),
    ("argmax of each row", "const float* x, int* best, int rows, int cols", "best: i32, best[r] = argmax[c] x[r, c]"),
    ("relu", "const float* x, const float* y, int n", None),  # nothing may be written
    ("sum of x", "const float* x, float* y, int rows, int cols", None),  # of each row, or of all
    ("plain SGD step, w -= lr * g", "float* w, const float* g, float lr, int n", "w'[i] = w[i] - lr * g[i]"),
    ("exponential moving average: e = d * e + (1 - d) * x", "float* e, const float* x, float d, int n",
     "e'[i] = d * e[i] + (1 - d) * x[i]"),
    ("y = x * s", "const float* x, const float* s, float* y, int rows, int cols", None),  # s of each row, or column
    ("y = x * w", "const float* x, float* y, int n", None),  # w is nobody's
    ("y = x / 2", "const int* x, int* y, int n", None),  # of whole numbers, or of their values
    ("add bias to each row of x", "const half* x, const half* bias, half* y, int rows, int cols",
     "x: f16, bias: f16, y[r, c] = x[r, c] + bias[c]"),
    ("scaled by alpha", "const float* x, float* y, float alpha, int n", None),
]  # fmt: skip


@pytest.mark.parametrize(("comment", "given", "text"), SIGNED)
def test_a_signature_gives_names_and_types_or_refuses(comment: str, given: str, text: str | None) -> None:
    found = by_wordings(comment, given)
    if text is None:
        assert not found
    else:
        assert found and same(found[0].formula, formula_of(text)), [each.formula.text for each in found]
