"""Element by element: what is read and stored at once, and functions that are as accurate as the result holds."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from warpwright.emulator.formula_memory import in_memory, outputs_of
from warpwright.emulator.formulas import compiled, run_code
from warpwright.formulas.model import Formula
from warpwright.formulas.numpy_agreement import agreements, reference
from warpwright.formulas.numpy_reference import evaluate
from warpwright.formulas.resolve import formula_of
from warpwright.missing import Missing
from warpwright.writer.code import Code
from warpwright.writer.write import file_text, plain, written

pytestmark = pytest.mark.sampled(4)

FAST = ("gelu", "gelu_tanh", "sigmoid", "silu", "softplus")


def ran(formula: Formula, code: Code, x: np.ndarray) -> np.ndarray:
    """The one output, of the one input."""
    made = compiled(file_text(code))
    assert not isinstance(made, Missing), made
    sizes = {"I": x.size}
    done = run_code(code, made, in_memory(formula, {"x": x}, sizes), {}, sizes)
    assert not isinstance(done, Missing), done
    assert not done.faults
    return outputs_of(formula, done.arrays, sizes)["y"]


@pytest.mark.nvcc
@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("name", FAST)
def test_every_number_of_16_bits_has_a_result_within_the_tolerance(name: str, kind: str) -> None:
    formula = formula_of(f"x: {kind} y: {kind}\ny[i] = {name}(x[i])")
    bits = np.arange(1 << 16, dtype=np.uint32)
    x = bits.astype("<u2").view("<f2") if kind == "f16" else (bits << 16).astype("<u4").view("<f4")
    with np.errstate(invalid="ignore"):
        x = x.astype(np.float64)
    code = written(formula, "tried")
    assert f"fast_{name}(" in file_text(code)
    (found,) = agreements(formula, {"y": ran(formula, code, x)}, reference(formula, {"x": x}, {}, {"I": x.size}))
    assert found.agrees, found


@pytest.mark.nvcc
@pytest.mark.parametrize("name", FAST)
def test_what_16_bits_hold_is_16_times_coarser_than_a_fast_function(name: str) -> None:
    formula = formula_of(f"y[i] = {name}(x[i])")
    code = plain(formula, "tried")
    (kernel,) = code.kernels
    text = kernel.text.replace(f"{name}(", f"fast_{name}(")
    code = replace(code, kernels=(replace(kernel, text=text, helpers=frozenset({f"fast_{name}"})),))
    x = np.linspace(-17, 17, 20001).astype(np.float32).astype(np.float64)
    exact = evaluate(formula, {"x": x}, {}, {"I": x.size})["y"]
    error = np.abs(ran(formula, code, x) - exact)
    assert np.all(error <= 2.0**-20 * np.maximum(np.abs(x), 1))
    least = 2.0**-24  # of f16
    assert np.all((error <= 2.0**-15 * np.abs(exact)) | (np.abs(exact) < least))


@pytest.mark.parametrize(
    ("text", "is_fast"),
    [
        ("x: bf16 y: bf16\ny[i] = gelu(x[i])", True),
        ("x: bf16 g: bf16 y: f16\ny[i] = -silu(g[i]) * x[i] / 3", True),
        ("x: bf16 y: bf16\ny[i] = gelu(x[i]) if x[i] > 1 else 0.5 * sigmoid(x[i])", True),
        ("y[i] = gelu(x[i])", False),
        ("x: bf16 y: f32\ny[i] = gelu(x[i])", False),
        ("x: bf16 y: bf16\ny[i] = gelu(x[i]) - 0.5 * x[i]", False),
        ("x: bf16 y: bf16\ny[i] = x[i] if gelu(x[i]) > 1 else 0", False),
        ("x: bf16 y: bf16\ny[i] = gelu(x[i]) * (1 - gelu(x[i]))", False),
        ("x: bf16 y: bf16\ny[i] = exp(sigmoid(x[i]))", False),
        ("x: f64 y: bf16\ny[i] = gelu(x[i])", False),
    ],
)
def test_fast_functions_stand_where_nothing_makes_their_errors_larger(text: str, is_fast: bool) -> None:
    assert ("fast_" in file_text(written(formula_of(text), "tried"))) == is_fast


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        ("y[i] = 2 * x[i]", "256, 4, 1"),
        ("x: bf16 y: bf16\ny[i] = 2 * x[i]", "256, 8, 1"),
        ("x: i8\ny[i] = 0.5 * x[i]", "256, 4, 1"),  # a pack of results has 16 bytes,
        ("y: i8\ny[i] = x[i]", "256, 8, 1"),  # and one that is read up to 32
        ("y[t, d] = table[ids[t], d]", "256, 4, 4"),
    ],
)
def test_a_pack_is_as_wide_as_memory_moves_at_once(text: str, schedule: str) -> None:
    code = written(formula_of(text), "tried")
    assert f"int, {schedule}>" in file_text(code)
    assert code.steps[0].paths[-1].launches[0].template == ("long long", "256", "1", "8")


def test_products_of_sizes_that_64_bits_do_not_hold_are_refused() -> None:
    text = file_text(written(formula_of("y[i, j] = sum[k] x[i, k] + w[j]"), "tried"))
    assert "if (!are_countable({I, J}) || !are_countable({I, K})) return cudaErrorInvalidValue;" in text
    assert "are_countable" not in file_text(written(formula_of("y[i] = 2 * x[i]"), "tried"))


@pytest.mark.parametrize("kind", ["bf16", "u8", "f32"])
def test_a_copy_is_not_converted(kind: str) -> None:
    text = file_text(plain(formula_of(f"x: {kind} y: {kind}\ny[i] = x[i]"), "tried"))
    assert "y[i] = x[i];" in text


@pytest.mark.nvcc
@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_small_powers_are_products(kind: str) -> None:
    formula = formula_of(f"x: {kind} y: {kind}\ny[i] = x[i] ** 3 + x[i] ** 4.0")
    code = written(formula, "tried")
    assert "square(square(" in file_text(code)
    assert "pow(" not in file_text(code)
    x = np.array([0.0, -0.5, 1.25, 7.0, -9.0, np.inf, np.nan])
    (found,) = agreements(formula, {"y": ran(formula, code, x)}, reference(formula, {"x": x}, {}, {"I": x.size}))
    assert found.agrees, found


def test_the_negative_of_a_negative_is_no_decrement() -> None:
    text = file_text(written(formula_of("y[i] = -(-x[i] * w[i]) + -(-x[i])"), "f"))
    assert "-(-x" in text
    assert not re.search(r"--\s*[\w(]", text)
