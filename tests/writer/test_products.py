"""Products that are written from formulas: each path right in the emulator, and what is no product left to others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from warpwright.emulator.formula_memory import STORED
from warpwright.emulator.formulas import Compiled, Ran, compiled, run_code
from warpwright.formulas.extents import at_sizes
from warpwright.formulas.model import Formula
from warpwright.formulas.normal import normal
from warpwright.formulas.numpy_reference import evaluate
from warpwright.formulas.resolve import formula_of
from warpwright.schedules.contraction import CoreProduct, TensorProduct
from warpwright.writer.code import taken
from warpwright.writer.partition import partition
from warpwright.writer.product_shape import shape_of
from warpwright.writer.write import ScheduleError, file_text, written

pytestmark = pytest.mark.sampled(8)

SMALL = ({"I": 1, "J": 1, "K": 1}, {"I": 65, "J": 33, "K": 17}, {"I": 136, "J": 136, "K": 72}, {"I": 9, "J": 7, "K": 0})
LIMITS = {"f64": 1e-14, "f32": 2e-6, "f16": 1e-3, "bf16": 4e-3, "i32": 0, "i64": 0}
"""Relative errors in norm that rounding of the stored type explains; sums are in f32."""


def bits_of(values: Any, kind: str) -> Any:
    """As memory holds them: NumPy has no bf16."""
    if kind != "bf16":
        return values.astype(STORED[kind])
    words = values.astype(np.float32).view(np.uint32)
    return ((words + 0x7FFF + ((words >> 16) & 1)) >> 16).astype(np.uint16)


def numbers_of(data: Any, kind: str) -> Any:
    if kind != "bf16":
        return data.view(STORED[kind]).astype(np.float64)
    return (data.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def run(text: str, sizes: dict[str, int], schedule: Any = None, made: Compiled | None = None) -> Ran:
    """Runs what is written of a formula, and compares it with the formula's own values."""
    formula = formula_of(text)
    code = written(formula, "product", schedule)
    ready = made or compiled(file_text(code))
    assert isinstance(ready, Compiled), ready
    random = np.random.default_rng(3)
    arrays, values = {}, {}
    for each in formula.tensors.values():
        shape = tuple(at_sizes(extent, sizes) for extent in each.extents)
        wide = 5 if each.type.startswith(("i", "u")) else 1
        data = bits_of(wide * random.standard_normal(shape), each.type)
        arrays[each.name] = data
        if each.role != "out":
            values[each.name] = numbers_of(data.copy(), each.type).reshape(shape)
        if "column" in text and each.name == "a":
            arrays[each.name] = data.T
        if "(ld, 1)" in text and each.name == "a":
            arrays[each.name] = np.pad(data, ((0, 0), (0, sizes["ld"] - shape[1])))
    scalars = dict.fromkeys(formula.scalars, 0.75)
    ran = run_code(code, ready, arrays, scalars, sizes)
    assert isinstance(ran, Ran), ran
    assert not ran.faults
    for name, exact in evaluate(formula, values, scalars, sizes).items():
        kind = formula.tensors[name].type
        found = numbers_of(ran.arrays[name], kind).reshape(exact.shape)
        assert np.linalg.norm(found - exact) <= LIMITS[kind] * max(np.linalg.norm(exact), 1e-30)
    return ran


def kernels(ran: Ran) -> list[str]:
    return [launch.kernel for path in ran.paths for launch in path.launches]


def ready(text: str, schedule: Any = None, arch: str = "sm_90") -> Compiled:
    made = compiled(file_text(written(formula_of(text), "product", schedule)), arch)
    assert isinstance(made, Compiled), made
    return made


@pytest.mark.sampled(20)
@pytest.mark.nvcc
@pytest.mark.parametrize("kind", ["f32", "bf16", "f16"])
@pytest.mark.parametrize(("a", "b"), [("i, k", "k, j"), ("i, k", "j, k"), ("k, i", "k, j"), ("k, i", "j, k")])
def test_operands_in_every_order(kind: str, a: str, b: str) -> None:
    declared = f"a: {kind}[{a.upper()}] b: {kind}[{b.upper()}] y: {kind}[I, J]"
    text = f"{declared} y[i, j] = sum[k] a[{a}] * b[{b}]"
    made = ready(text)
    for sizes in SMALL:
        assert kernels(run(text, sizes, made=made)) == launched(kind, a, b, sizes)


def launched(kind: str, a: str, b: str, sizes: dict[str, int]) -> list[str]:
    """What multiplies matrices of few tiles; rows of 16 bits an element that are no whole words are copied first."""
    if kind == "f32":
        return ["product_64x64_kernel"]
    if all(sizes[each[-1].upper()] % 8 == 0 for each in (a, b)):
        return ["product_kernel"]
    return ["product_pad", "product_kernel"] if sizes["K"] else ["product_general"]


@pytest.mark.nvcc
@pytest.mark.parametrize(
    "schedule", [CoreProduct(), TensorProduct(), CoreProduct(64, 64, 8, 8, 32, 64, 6, split=False)]
)
def test_other_schedules(schedule: CoreProduct | TensorProduct) -> None:
    kind = "f32" if isinstance(schedule, CoreProduct) else "f16"
    text = f"a: {kind}[I, K] b: {kind}[K, J] y: f32[I, J] y[i, j] = sum[k] a[i, k] * b[k, j]"
    made = ready(text, schedule)
    for sizes in ({"I": 65, "J": 33, "K": 17}, {"I": 264, "J": 136, "K": 24}):
        assert kernels(run(text, sizes, schedule, made))[-1] == "product_kernel"


@pytest.mark.sampled(16)
@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("y[i, j] = relu(sum[k] a[i, k] * b[k, j] + c[j])", {"I": 33, "J": 20, "K": 40}),
        ("y[i, j] = 2 * sum[k] a[i, k] * b[k, j] + c[i, j] * d[j, i]", {"I": 33, "J": 21, "K": 40}),
        ("y[l, i, j] = sum[k] a[l, i, k] * b[l, k, j] + c[l, j]", {"L": 3, "I": 40, "J": 24, "K": 72}),
        ("y[l, i, j] = tanh(sum[k] a[l, i, k] * w[k, j]) + c[l, i]", {"L": 2, "I": 17, "J": 19, "K": 50}),
        ("y[n, h, d] = sum[c] x[n, c] * w[c, h, d] + p[h, d]", {"N": 10, "H": 3, "D": 4, "C": 9}),
        ("y[i, j] = sum[k, l] a[i, k, l] * b[j, k, l]", {"I": 20, "J": 33, "K": 7, "L": 5}),
        ("a: f32[I, K] column y[i, j] = sum[k] a[i, k] * b[k, j]", {"I": 65, "J": 33, "K": 17}),
        ("a: bf16[L, I, K] b: bf16[L, J, K] y: f32[L, I, J]"
         " y[l, i, j] = (sum[k] a[l, i, k] * b[l, j, k]) / 8 + c[l, j]",
         {"L": 2, "I": 24, "J": 40, "K": 64}),
        ("a: bf16[L, K, I] b: bf16[L, K, J] y: bf16[L, I, J] y[l, i, j] = relu(sum[k] a[l, k, i] * b[l, k, j] + c[i])",
         {"L": 3, "I": 21, "J": 67, "K": 70}),
    ],
)  # fmt: skip
def test_epilogues_batches_and_indices_that_lie_together(text: str, sizes: dict[str, int]) -> None:
    assert kernels(run(text, sizes))[-1] == ("product_kernel" if "bf16" in text else "product_64x64_kernel")


@pytest.mark.sampled(8)
@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("kind", "a", "b", "schedule"),
    [
        ("bf16", "i, k", "k, j", TensorProduct()),
        ("f16", "k, i", "j, k", TensorProduct(256, 128)),
        ("f16", "i, k", "j, k", TensorProduct(64, 128, 32, 64, 4, 2)),
        ("bf16", "k, i", "k, j", TensorProduct(128, 128, 64, 64, 3, 2)),
    ],
)
def test_warpgroups_multiply_where_the_build_is_for_sm_90a(kind: str, a: str, b: str, schedule: TensorProduct) -> None:
    text = f"a: {kind}[{a.upper()}] b: {kind}[{b.upper()}] y: {kind}[I, J] y[i, j] = sum[k] a[{a}] * b[{b}]"
    made = ready(text, schedule, "sm_90a")
    assert any("wgmma.mma_async" in each for each in made.kernels.values())
    for sizes in ({"I": 65, "J": 33, "K": 17}, {"I": 264, "J": 136, "K": 344}):
        assert "product_kernel" in kernels(run(text, sizes, schedule, made))


@pytest.mark.sampled(8)
@pytest.mark.nvcc
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_90a"])
def test_one_text_is_built_for_each_architecture(arch: str) -> None:
    made = ready("a: f16[I, K] b: f16[K, J] y: f16[I, J] y[i, j] = sum[k] a[i, k] * b[k, j]", arch=arch)
    products = [each for name, each in made.kernels.items() if "product_kernel" in name]
    assert len(products) == 4
    found = {word for word in ("wgmma.mma_async", "mma.sync", "cp.async") if all(word in each for each in products)}
    assert found == {"sm_75": set(), "sm_90a": {"wgmma.mma_async", "cp.async"}}.get(arch, {"mma.sync", "cp.async"})


def test_a_gpu_without_the_shared_memory_takes_another_path() -> None:
    code = written(formula_of("a: f16[I, K] b: f16[K, J] y: f16[I, J] y[i, j] = sum[k] a[i, k] * b[k, j]"), "product")
    text = file_text(code)
    assert text.count("has_shared(product_kernel<") == 7
    assert not any(each.asks_for_shared for each in code.steps[0].paths[-1].launches)
    fixed = written(
        formula_of("a: f16[99, 50] b: f16[50, 99] y: f16[99, 99] y[i, j] = sum[k] a[i, k] * b[k, j]"), "fixed"
    )
    assert "has_shared(" in file_text(fixed)
    assert "fixed_general" in {each.name for each in fixed.kernels}


@pytest.mark.nvcc
def test_the_last_tiles_share_their_depth() -> None:
    text = "y[l, i, j] = relu(sum[k] a[l, i, k] * b[l, k, j] + c[j])"
    small = CoreProduct(32, 32, 4, 4, 16, 32, 1)
    made = ready(text, small)
    for sizes in ({"L": 133, "I": 5, "J": 4, "K": 257}, {"L": 2, "I": 33, "J": 36, "K": 260}):
        assert kernels(run(text, sizes, small, made)) == ["product_kernel", "product_total"]
    assert kernels(run(text, {"L": 132, "I": 5, "J": 4, "K": 129}, small, made)) == ["product_kernel"]


@pytest.mark.sampled(20)
@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        # An array with itself.
        ("y[i, j] = sum[k] x[k, i] * x[k, j]", {"I": 20, "J": 20, "K": 33}),
        ("y[i, j] = sum[k] x[i, k] * x[j, k]", {"I": 36, "J": 36, "K": 8}),
        # What is done to the elements of an operand first.
        ("y[i, j] = sum[k] a[i, k] * s[k] * b[k, j]", {"I": 33, "J": 20, "K": 12}),
        ("y[i, j] = sum[k] relu(a[i, k] - m[i]) * exp(b[k, j] * s[k])", {"I": 33, "J": 21, "K": 13}),
        ("y[i, j] = alpha * sum[k] (a[i, k] if a[i, k] > d[i, k] else 0) * b[j, k]", {"I": 9, "J": 40, "K": 20}),
        ("w: i8[K, J] y[i, j] = sum[k] x[i, k] * (w[k, j] * s[j])", {"I": 17, "J": 20, "K": 24}),
        ("a: bf16[I, K] b: bf16[K, J] y: bf16[I, J] y[i, j] = sum[k] relu(a[i, k]) * b[k, j]",
         {"I": 20, "J": 24, "K": 17}),
        # Other pairs of elements, other reductions.
        ("d[i, j] = sqrt(sum[k] (x[i, k] - z[j, k]) ** 2)", {"I": 33, "J": 20, "K": 9}),
        ("d[i, j] = min[k] (x[i, k] + z[k, j])", {"I": 33, "J": 20, "K": 9}),
        # Other types.
        ("a: f64[I, K] b: f64[K, J] y: f64[I, J] y[i, j] = sum[k] a[i, k] * b[k, j]", {"I": 33, "J": 20, "K": 76}),
        ("a: i8[I, K] b: i8[K, J] y: i32[I, J] y[i, j] = sum:i32[k] a[i, k] * b[k, j]", {"I": 33, "J": 20, "K": 13}),
        ("a: i8[I, K] b: i8[K, J] y: i64[I, J] y[i, j] = sum[k] a[i, k] * b[k, j]", {"I": 8, "J": 20, "K": 16}),
        # Indices in other orders.
        ("y[b, h, i, j] = sum[d] q[b, i, h, d] * k[b, j, h, d]", {"B": 2, "H": 2, "I": 9, "J": 8, "D": 12}),
        ("y[b, i, h, d] = sum[j] p[b, h, i, j] * v[b, j, h, d]", {"B": 2, "H": 2, "I": 9, "J": 8, "D": 12}),
        ("y[i, j, k] = sum[l] x[i, l, k] * u[j, l]", {"I": 3, "J": 9, "K": 8, "L": 10}),
        ("y[n, o, h, w] = c[o] + sum[i] x[n, i, h, w] * k[o, i]", {"N": 2, "O": 9, "I": 5, "H": 4, "W": 5}),
        ("a: f32[I, K](ld, 1) y[i, j] = sum[k] a[i, k] * b[k, j]", {"I": 9, "J": 8, "K": 16, "ld": 20}),
        ("c[i, j, k, l] = sum[m, n] a[i, m, j, n] * b[m, k, n, l]", {"I": 3, "J": 4, "K": 3, "L": 5, "M": 3, "N": 6}),
        ("c[i, j, k, l] = sum[m, n] a[i, m, j, n] * b[m, k, n, l]", {"I": 3, "J": 4, "K": 3, "L": 8, "M": 3, "N": 4}),
        ("y[n, o] = sum[i, j] a[n, i] * w[o, i, j] * b[n, j]", {"N": 9, "O": 10, "I": 5, "J": 6}),
        # The new values of an array.
        ("y'[i, j] = alpha * (sum[k] a[i, k] * b[k, j]) + 2 * y[i, j]", {"I": 9, "J": 8, "K": 16}),
        # Several products of one result.
        ("y[n, o] = sigmoid(sum[i] x[n, i] * g[o, i]) * sum[i] x[n, i] * u[o, i]", {"N": 9, "O": 8, "I": 12}),
    ],
)  # fmt: skip
def test_what_else_is_a_product(text: str, sizes: dict[str, int]) -> None:
    found = kernels(run(text, sizes))
    text = file_text(written(formula_of(text), "product"))
    for each in found:
        body = text[text.index(f" {each}(") :]
        assert "kTileM" in body[: body.index("\n}\n")]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("y[r] = sum[c] x[r, c]", "What is summed is no product of two elements."),
        ("y[r] = sum[c] x[r, c] * w[c]", "no order that a matrix product reads"),
        ("y[i, j] = sum[k <= i] a[i, k] * b[k, j]", "whole dimensions"),
        ("y[i, j] = sum[k] a[i + 1, k; zero] * b[k, j]", "no order"),
        ("y[i, j] = max[k] a[i, k] * b[k, j]", "no order"),
        ("y[i, j] = sum[k] (a[i, k] - b[k, j]) ** 2 * w[k]", "no order"),
        ("y[i, j] = sum[k] cos(a[i, k] - b[k, j])", "no order"),
        ("y[j, i] = sum[k] a[i, k, j] * b[k, j]", "no order"),
    ],
)
def test_what_is_no_product_says_why(text: str, reason: str) -> None:
    formula: Formula = normal(formula_of(text))
    found = [shape_of(formula, each) for each in partition(formula)]
    assert all(isinstance(each, str) for each in found)
    assert any(reason in str(each) for each in found)


def test_a_schedule_that_cannot_be_says_why() -> None:
    formula = formula_of("y[i, j] = sum[k] a[i, k] * b[k, j]")
    assert "registers" in CoreProduct(256, 256, 16, 16, 64, 128).refusal()
    assert "shared memory" in TensorProduct(stages=6).refusal()
    with pytest.raises(ScheduleError, match="Tensor cores"):
        written(formula, "product", TensorProduct())
    with pytest.raises(ScheduleError, match="32 of them"):
        written(formula, "product", CoreProduct(warp_m=32))


def test_sizes_beyond_32_bits_are_left_to_the_general_kernel() -> None:
    (step,) = written(formula_of("y[i, j] = sum[k] a[i, k] * b[k, j]"), "product").steps
    for sizes in (
        {"I": 1 << 31, "J": 64, "K": 2},
        {"I": 64, "J": 64, "K": 1 << 31},
        {"I": 1 << 24, "J": 1 << 24, "K": 1},
    ):
        path = taken(step, sizes, {})
        assert path is not None
        assert [(each.kernel, each.index) for each in path.launches] == [("product_general", "long long")]


@pytest.mark.nvcc
def test_names_that_the_kernel_has_are_others_there() -> None:
    text = "sums[i, j] = relu(sum[k] left[i, k] * right[k, j] + first[i, j])"
    assert kernels(run(text, {"I": 9, "J": 8, "K": 12})) == ["product_64x64_kernel"]
    code = written(
        formula_of("left: bf16 right: bf16 y[i, j] = sum[count] left[i, count] * right[count, j]"), "product"
    )
    assert "left_" in file_text(code)
    assert {name for each in code.kernels for name in each.parameters} >= {"left", "right", "left__padded"}
    refused = written(formula_of("y[i, j] = sum[k] a[i, k] * b[k, j] a: f32[tiles, K]"), "product")
    assert all("64x64" not in each.name for each in refused.kernels)


@pytest.mark.nvcc
def test_complex_numbers() -> None:
    text = "a: c64[I, K] b: c64[K, J] y: c64[I, J] y[i, j] = sum[k] a[i, k] * conj(b[k, j])"
    sizes, random = {"I": 9, "J": 8, "K": 140}, np.random.default_rng(3)
    code = written(formula_of(text), "product")
    shapes = {"a": (9, 140), "b": (140, 8), "y": (9, 8)}
    arrays = {
        name: (random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(np.complex64)
        for name, shape in shapes.items()
    }
    exact = arrays["a"] @ arrays["b"].conj()
    ran = run_code(code, ready(text), arrays, {}, sizes)
    assert isinstance(ran, Ran) and not ran.faults
    found = ran.arrays["y"].view(np.complex64).reshape(9, 8)
    assert np.linalg.norm(found - exact) <= 2e-6 * np.linalg.norm(exact)
