"""Answers to prompts are judged by what they compute, and bad ones cost nothing but themselves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from warpwright_upskill.evaluation.judge import Verdict, judge, judged
from warpwright_upskill.evaluation.prompt_inputs import input_of
from warpwright_upskill.evaluation.references import prepare
from warpwright_upskill.evaluation.worker import Worker
from warpwright_upskill.prompts import Prompt

pytestmark = pytest.mark.upskill


def prompt(body: str, given: str = "", comment: str = "what is wanted", **inputs: str) -> Prompt:
    made = tuple(input_of(name, text) for name, text in inputs.items())
    reference = f"def reference({', '.join(inputs)}):\n    return {body}\n"
    return Prompt(f"{body} {given} {comment}", "some", comment, given, made, reference)


def verdict(asked: Prompt, answer: str) -> Verdict:
    return judged(asked, answer)


ROWS = prompt("torch.softmax(x, -1)", "const float* x, float* y, int rows, int cols", x="f32[R, C]")
SOFTMAX = "y[r, c] = exp(x[r, c]) / sum[c] exp(x[r, c])"
HALF = prompt("x.sum(1)", "const __half* x, __half* y, int n", x="f16[R, C]")
BATCHED = prompt("torch.nn.functional.layer_norm(x, x.shape[-1:])", x="f32[B, T, H]")
WEIGHTED = prompt("a @ b + c", comment="a product and a matrix more", a="f32[M, K]", b="f32[K, N]", c="f32[M, N]")
HISTOGRAM = prompt("h.index_add(0, bin, torch.ones(len(bin)).double())", h="f32[B]", bin="i32[N] < B")
TENSORS = prompt("x.sum(1)", "x: Tensor[R, C] float16, y: Tensor[R] float32", x="f16[R, C]")
GIVEN_INPUTS = prompt("2 * x", "torch.Tensor x [N] float16", x="f16[N]")
FILL = prompt("torch.zeros(bins).index_add(0, b, torch.ones(len(b))).int()", b="i32[N] < bins", bins="i32")
BOTH = prompt("(x.min(), x.max())", "const float* x, float* lo, float* hi, int n", x="f32[N]")
IN_PLACE = prompt("2 * x", "float* x, int n", x="f32[N]")
POINTS = prompt("torch.linalg.norm(p, dim=1)", "const float3* p, float* d, int n", p="f32[N, 3]")


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (ROWS, SOFTMAX),
        (ROWS, "out[r, c] = exp(x[r, c]) / sum[c] exp(x[r, c])"),
        (HALF, "x: f16 y: f16 y[r] = sum[c] x[r, c]"),
        (BATCHED, "y[r, c] = (x[r, c] - m[r]) / sqrt(v[r] + 1e-5) where m[r] = mean[c] x[r, c], v[r] = var[c] x[r, c]"),
        (WEIGHTED, "y[i, j] = (sum[k] a[i, k] * b[k, j]) + c[i, j]"),
        (WEIGHTED, "out[i, j] = (sum[k] p[i, k] * q[k, j]) + bias[i, j]"),
        (HISTOGRAM, "h: f32 h[bin[i]] += 1"),
        (TENSORS, "x: f16, y: f32, y[r] = sum[c] x[r, c]"),
        (GIVEN_INPUTS, "x: f16, y[i] = 2 * x[i]"),
        (FILL, "counts: i32[K] b: i32 counts[b[i]] = sum[i] 1"),
        (BOTH, "hi = max[i] x[i], lo = min[i] x[i]"),
        (IN_PLACE, "x'[i] = 2 * x[i]"),
        (IN_PLACE, "x[i] *= 2"),
        (POINTS, "p: f32[N]{x, y, z} d[i] = sqrt(p.x[i] ** 2 + p.y[i] ** 2 + p.z[i] ** 2)"),
        (POINTS, "d[i] = sqrt(sum[k < 3] p[i, k] ** 2)"),
    ],
)
def test_right(asked: Prompt, answer: str) -> None:
    assert verdict(asked, answer) == Verdict("right")


@pytest.mark.parametrize(
    ("asked", "answer", "kind", "sentence"),
    [
        (ROWS, "y[r, c] = exp(x[r, c", "no formula", "expected"),
        (ROWS, "", "no formula", ""),
        (ROWS, "y[r, c] = exp(x[r, c]) / sum[r] exp(x[r, c])", "values", "is asked for"),
        (ROWS, "y[r] = sum[c] exp(x[r, c])", "shapes", "not [15, 11]"),
        (ROWS, "y[r, c] = exp(x[r, c]) / w[r]", "inputs", ""),
        (ROWS, "y[r, c] = exp(x[r, c] * rows)", "types", "rows is f32"),
        (ROWS, "y: f64 y[r, c] = exp(x[r, c]) / sum[c] exp(x[r, c])", "types", "y is f64"),
        (HALF, "y[r] = sum[c] x[r, c]", "types", "y is f32, and y of the signature is f16."),
        (HALF, "y: f16 y[r] = sum[c] x[r, c]", "types", "x is f32, and f16 is asked for."),
        (WEIGHTED, "y[i, j] = (sum[k] b[i, k] * a[k, j]) + c[i, j]", "shapes", ""),
        (BOTH, "lo = max[i] x[i], hi = min[i] x[i]", "values", "lo is"),
        (BOTH, "lo = min[i] x[i]", "inputs", "1 results where 2 are asked for"),
        (TENSORS, "x: f16, y[r] = sum[c] x[r, c]", "types", "y is f16, and y of the signature is f32."),
        (GIVEN_INPUTS, "y[i] = 2 * x[i]", "types", "x is f32, and f16 is asked for."),
        (IN_PLACE, "y[i] = 2 * x[i]", "inputs", "no array that y may be written to"),
        (HISTOGRAM, "h: f32 h[bin[i]] = sum[i] 1", "values", ""),
        (POINTS, "p: f32[N]{x, y} d[i] = sqrt(p.x[i] ** 2 + p.y[i] ** 2)", "shapes", "p has 2 fields, not 3."),
        (prompt("x / missing", x="f32[N]"), "y[i] = x[i]", "reference", "NameError"),
    ],
)
def test_wrong(asked: Prompt, answer: str, kind: str, sentence: str) -> None:
    found = verdict(asked, answer)
    assert found.kind == kind, found
    assert sentence in found.reason, found


def test_a_tolerance_without_a_bound_hides_nothing() -> None:
    """exp(1e4 ...) overflows in f32 and leaves nothing to compare; what is finite in double precision is compared."""
    asked = prompt("x * 3", x="f32[N]")
    assert not verdict(asked, "y[i] = x[i] * log(exp(500 * x[i])) / (500 * x[i]) * 2").right


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(prepare) as made:
        yield made


@pytest.mark.parametrize(
    "answer",
    [
        "(" * 100_000,
        "y[r, c] = " + "-" * 3000 + "x[r, c]",
        "y[r, c] = " + "(" * 900 + "x[r, c]" + ")" * 900,
        "y[r, c] = x[r, c] " + "".join(f"+ x[r, c] ** {n}" for n in range(300)),
        "y[r, c] = sum[a < 100000, b < 100000, d < 100000] x[r, c] * exp(a * b) * d",
        "y[r, c] = z[r, c, 0] where z[r, c, k] = x[r, c] * 2, z: f32[R, C, 1000000000000]",
        "y[r, c] = x[r, c] * 9" + "9" * 3000,
        "y[r, c] = x[r, c] ** 10 ** 10 ** 10 ** 10",
        "__import__('os').system('true')",
        "\x00\udcff",
    ],
)
def test_bad_answers_end(worker: Worker, answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpwright_upskill.evaluation.judge.SECONDS", 3.0)
    assert not judge(worker, ROWS, answer).right
    assert judge(worker, ROWS, SOFTMAX).right
