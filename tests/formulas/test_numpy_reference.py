"""The reference by NumPy against torch's operators, and against loops in Python where torch has none."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

np = pytest.importorskip("numpy", reason="not installed: numpy")

from warpwright.formulas import numpy_boxes, numpy_reference  # noqa: E402
from warpwright.formulas.numpy_reference import EvaluationError, evaluate, stored  # noqa: E402
from warpwright.formulas.numpy_types import rounded  # noqa: E402
from warpwright.formulas.resolve import formula_of  # noqa: E402
from warpwright.formulas.types import TYPES  # noqa: E402

Array = Any
RANDOM = np.random.default_rng(1)


def drawn(*shape: int) -> Array:
    return RANDOM.standard_normal(shape)


def of(text: str, scalars: dict[str, float] | None = None, sizes: dict[str, int] | None = None, **arrays: Array) -> Any:
    """The only output of a formula."""
    (found,) = evaluate(formula_of(text), arrays, scalars, sizes).values()
    return found


@pytest.fixture(params=[1 << 22, 7], ids=["whole", "split"])
def boxes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With boxes that hold everything, and with ones so small that all is split."""
    monkeypatch.setattr(numpy_boxes, "MOST_ELEMENTS", request.param)
    monkeypatch.setattr(numpy_reference, "MOST_ELEMENTS", request.param)


def torch_cases() -> list[tuple[str, str, dict[str, Array], Callable[..., Any]]]:
    torch = pytest.importorskip("torch", reason="not installed: torch")
    fn = torch.nn.functional
    x, w, b = drawn(5, 7), drawn(7), drawn(7)
    q, k, v = drawn(2, 5, 4), drawn(2, 6, 4), drawn(2, 6, 3)
    image, filters = drawn(2, 3, 6, 5), drawn(4, 3, 3, 3)
    ids = np.array([3, 0, 3, 1])
    half = math.sqrt(4)
    return [
        ("softmax", "y[r, c] = exp(x[r, c] - m[r]) / s[r]"
         " where m[r] = max[c] x[r, c], s[r] = sum[c] exp(x[r, c] - m[r])",
         {"x": x}, lambda x: fn.softmax(x, 1)),
        ("logsumexp", "y[r] = logsumexp[c] x[r, c]", {"x": x}, lambda x: torch.logsumexp(x, 1)),
        ("layer_norm", "y[r, c] = (x[r, c] - m[r]) * rsqrt(v[r] + 0.00001) * w[c] + b[c]"
         " where m[r] = mean[c] x[r, c], v[r] = var[c] x[r, c]",
         {"x": x, "w": w, "b": b}, lambda x, w, b: fn.layer_norm(x, (7,), w, b)),
        ("rms_norm", "y[r, c] = x[r, c] * rsqrt(mean[k] x[r, k] * x[r, k] + 0.00001) * w[c]", {"x": x, "w": w},
         lambda x, w: fn.rms_norm(x, (7,), w, 0.00001)),
        ("gelu", "y[r, c] = gelu(x[r, c])", {"x": x}, fn.gelu),
        ("gelu_tanh", "y[r, c] = gelu_tanh(x[r, c])", {"x": x}, lambda x: fn.gelu(x, approximate="tanh")),
        ("std", "y[c] = std[r] x[r, c]", {"x": x}, lambda x: x.std(0, correction=0)),
        ("argmax", "y[r] = argmax[c] x[r, c]", {"x": np.round(x)}, lambda x: x.argmax(1)),
        ("argmin of all", "y = argmin[r, c] x[r, c]", {"x": np.round(x)}, lambda x: x.argmin()),
        ("cumsum", "y[r, i] = sum[j <= i] x[r, j]", {"x": x}, lambda x: x.cumsum(1)),
        ("cummax", "y[r, i] = max[j <= i] x[r, j]", {"x": x}, lambda x: x.cummax(1).values),
        ("logcumsumexp", "y[r, i] = logsumexp[j <= i] x[r, j]", {"x": x}, lambda x: x.logcumsumexp(1)),
        ("matmul", "y[i, j] = sum[k] a[i, k] * b[k, j] + c[j]", {"a": x, "b": drawn(7, 3), "c": drawn(3)},
         lambda a, b, c: a @ b + c),
        ("three factors", "y[i, j] = sum[k, l] a[i, k] * b[k, l] * c[l, j]",
         {"a": x, "b": drawn(7, 3), "c": drawn(3, 2)}, lambda a, b, c: a @ b @ c),
        ("attention", "y[h, i, d] = sum[j] p[h, i, j] * v[h, j, d]"
         " where s[h, i, j] = sum[e] q[h, i, e] * k[h, j, e] / 2, m[h, i] = max[j] s[h, i, j],"
         " t[h, i] = sum[j] exp(s[h, i, j] - m[h, i]), p[h, i, j] = exp(s[h, i, j] - m[h, i]) / t[h, i]",
         {"q": q, "k": k, "v": v}, lambda q, k, v: fn.scaled_dot_product_attention(q, k, v, scale=1 / half)),
        ("causal", "y[h, i, d] = sum[j <= i] exp(s[h, i, j] - l[h, i]) * v[h, j, d]"
         " where s[h, i, j] = sum[e] q[h, i, e] * k[h, j, e] / 2, l[h, i] = logsumexp[j <= i] s[h, i, j]",
         {"q": q, "k": k[:, :5], "v": v[:, :5]},
         lambda q, k, v: fn.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1 / half)),
        ("conv2d", "y[n, o, h, w] = sum[c, u, v] x[n, c, h + u - 1, w + v - 1; zero] * f[o, c, u, v]",
         {"x": image, "f": filters}, lambda x, f: fn.conv2d(x, f, padding=1)),
        ("max_pool", "y[n, c, h, w] = max[u < 3, v < 3] x[n, c, h + u - 1, w + v - 1; -inf]", {"x": image},
         lambda x: fn.max_pool2d(x, 3, 1, 1)),
        ("avg_pool", "x: f32[N, C, 2 * H, W] y: f32[N, C, H, W] y[n, c, h, w] = mean[u < 2] x[n, c, 2 * h + u, w]",
         {"x": image},
         lambda x: fn.avg_pool2d(x, (2, 1))),
        ("reflect", "y[r, c] = x[r, c - 2; reflect] + x[r, c + 2; reflect]", {"x": x},
         lambda x: (p := fn.pad(x, (2, 2), mode="reflect"))[:, :-4] + p[:, 4:]),
        ("clamp and wrap", "y[r, c] = x[r, c + 3; clamp] + x[r, c - 2; wrap]", {"x": x},
         lambda x: fn.pad(x, (0, 3), mode="replicate")[:, 3:] + x.roll(2, 1)),
        ("embedding", "y[t, d] = table[ids[t], d]", {"table": x, "ids": ids},
         lambda table, ids: fn.embedding(ids, table)),
        ("index_add", "h[b[i], d] += x[i, d]", {"h": x, "b": ids, "x": drawn(4, 7)},
         lambda h, b, x: h.index_add(0, b, x)),
        ("scatter max", "h: f32[5] h[b[i]] max= x[i]", {"h": drawn(5), "b": ids, "x": drawn(4)},
         lambda h, b, x: h.scatter_reduce(0, b, x, "amax")),
        ("histogram", "h: i32[5] h[b[i]] = sum[i] 1", {"b": ids}, lambda b: torch.bincount(b, minlength=5)),
        ("cross entropy", "y[r] = logsumexp[c] x[r, c] - x[r, t[r]]", {"x": x, "t": np.array([0, 6, 2, 1, 3])},
         lambda x, t: fn.cross_entropy(x, t, reduction="none")),
        ("norm", "y = sqrt(sum[r, c] x[r, c] * x[r, c])", {"x": x}, lambda x: x.norm()),
        ("group_norm", "x: f32[N, G, K, S] y[n, g, k, s] = (x[n, g, k, s] - m[n, g]) * rsqrt(v[n, g] + 0.00001)"
         " where m[n, g] = mean[k, s] x[n, g, k, s], v[n, g] = var[k, s] x[n, g, k, s]",
         {"x": drawn(2, 2, 3, 5)},
         lambda x: fn.group_norm(x.reshape(2, 6, 5), 2).reshape(2, 2, 3, 5)),
        ("remainder", "y[c] = x[c] % w[c] + x[c] // w[c]", {"x": 5 * drawn(7), "w": w},
         lambda x, w: x % w + torch.floor_divide(x, w)),
        ("complex", "z: c64[N] w: c64[N] y[n] = exp(z[n]) * conj(w[n]) / z[n]",
         {"z": drawn(7) + 1j * drawn(7), "w": drawn(7) + 1j * drawn(7)}, lambda z, w: z.exp() * w.conj() / z),
        *((name, f"y[i] = {name}(x[i])", {"x": values}, function) for name, values, function in (
            ("erf", drawn(9), torch.erf), ("erfc", drawn(9) * 4, torch.erfc), ("lgamma", drawn(9) * 5, torch.lgamma),
            ("j0", drawn(99) * 30, torch.special.bessel_j0), ("j1", drawn(99) * 30, torch.special.bessel_j1),
            ("sigmoid", drawn(9) * 30, torch.sigmoid), ("silu", drawn(9), fn.silu), ("rsqrt", drawn(9), torch.rsqrt),
            ("round", np.arange(-3, 3.5, 0.5), torch.round), ("expm1", drawn(9) / 99, torch.expm1),
            ("sign", np.array([-2.0, 0.0, math.nan]), torch.sign), ("relu", np.array([-2.0, math.nan]), torch.relu),
            ("softplus", drawn(9), fn.softplus),
        )),
    ]  # fmt: skip


@pytest.mark.usefixtures("boxes")
def test_as_torch_has_it() -> None:
    torch = pytest.importorskip("torch", reason="not installed: torch")
    for name, text, arrays, operator in torch_cases():
        found = of(text, **arrays)
        expected = operator(*(torch.from_numpy(each) for each in arrays.values())).numpy()
        tolerance = 1e-6 if name in ("j0", "j1") else 1e-11  # torch's Bessel functions have 7 digits
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.usefixtures("boxes")
def test_ranges_that_data_ends() -> None:
    first, column = np.array([0, 2, 2, 5]), np.array([1, 0, 2, 2, 1])
    values, x = drawn(5), drawn(3, 2)
    found = of(
        "y[r, d] = sum[first[r] <= e < first[r + 1]] a[e] * x[column[e], d]", first=first, a=values, x=x, column=column
    )
    expected = np.zeros((3, 2))
    for row in range(3):
        for e in range(first[row], first[row + 1]):
            expected[row] += values[e] * x[column[e]]
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    rows = "y[r] = {}[first[r] <= e < first[r + 1]] a[e]"
    assert of(rows.format("argmax"), first=first, a=np.array([1, 3, math.nan, 5.0, math.nan])).tolist() == [1, 0, 2]
    assert of(rows.format("mean"), first=first, a=values)[[0, 2]].tolist() == pytest.approx(
        [values[:2].mean(), values[2:].mean()]
    )
    assert math.isnan(of(rows.format("mean"), first=first, a=values)[1])
    assert of(rows.format("max"), first=first, a=values)[1] == -math.inf


@pytest.mark.usefixtures("boxes")
def test_running_values() -> None:
    x = drawn(6)
    start = np.array([0, 0, 2, 2, 2, 5])
    assert of("y[i] = sum[j < i] x[j]", x=x).tolist() == pytest.approx([x[:i].sum() for i in range(6)])
    assert of("y[i] = prod[j <= i] x[j]", x=x).tolist() == pytest.approx(np.cumprod(x).tolist())
    segmented = of("y[i] = sum[start[i] <= j <= i] x[j]", x=x, start=start)
    assert segmented.tolist() == pytest.approx([x[start[i] : i + 1].sum() for i in range(6)])
    banded = of("y[i] = sum[j <= i] x[i] * x[j] * x[i - j]", x=x)
    assert banded.tolist() == pytest.approx([sum(x[i] * x[j] * x[i - j] for j in range(i + 1)) for i in range(6)])
    assert of("y[i] = argmax[j <= i] x[j]", x=x).tolist() == [int(np.argmax(x[: i + 1])) for i in range(6)]


@pytest.mark.usefixtures("boxes")
def test_what_a_mask_leaves_out_is_not_multiplied() -> None:
    """Infinities behind a causal mask stay there."""
    v = np.array([[1.0], [math.inf]])
    found = of("y[i, d] = sum[j <= i] p[i, j] * v[j, d]", p=np.ones((2, 2)), v=v)
    assert found.tolist() == [[1.0], [math.inf]]


@pytest.mark.usefixtures("boxes")
def test_a_new_value_reads_old_ones() -> None:
    x = np.arange(5.0)
    found = evaluate(formula_of("x'[i] = x[i - 1; wrap] + 1, y[i] = x[i]"), {"x": x})
    assert found["x"].tolist() == [5, 1, 2, 3, 4]
    assert found["y"].tolist() == x.tolist()


@pytest.mark.usefixtures("boxes")
def test_scatters() -> None:
    b, x = np.array([1, 1, 0]), np.array([3, 4, 5])
    h = np.array([10, 20])
    assert of("h: i32[2] x: i32[3] h[b[i]] += x[i]", h=h, b=b, x=x).tolist() == [15, 27]
    assert of("h: i32[2] x: i32[3] h[b[i]] *= x[i]", h=h, b=b, x=x).tolist() == [50, 240]
    assert of("h: i32[2] x: i32[3] h[b[i]] min= x[i]", h=h, b=b, x=x).tolist() == [5, 3]
    assert of("h: i32[3] x: i32[3] h[b[i]] = max[i] x[i]", b=b, x=x).tolist() == [5, 4, -(2**31)]
    counted = "y[j] = 2 * h[j] h: i32[9] where h[b[i]] = sum[i] 1"
    assert of(counted, b=np.array([1, 8, 1])).tolist() == [0, 4, 0, 0, 0, 0, 0, 0, 2]
    assert of("h: i8[2] h[b[i]] += 100", h=h, b=b).tolist() == [110, -36]


def test_whole_numbers_are_exact_and_wrap_around() -> None:
    big = np.array([2**31 - 1, -(2**31)])
    assert of("x: i32[N] y[i] = x[i] + x[i]", x=big).tolist() == [-2, 0]
    assert of("x: u8[N] y[i] = x[i] + x[i]", x=np.array([200])).tolist() == [144]
    assert of("x: u8[N] y[i] = (x[i] + x[i]) / 2", x=np.array([200])).tolist() == [200.0]
    assert of("x: i32[N] y = sum[i] x[i] * x[i]", x=np.array([2**20, 3])).tolist() == 9
    assert of("x: i64[N] y = sum[i] x[i]", x=np.array([2**60, 3])).tolist() == 2**60 + 3
    assert of("x: u64[N] y[i] = x[i] // 3", x=np.array([2**64 - 1], np.uint64)).tolist() == [(2**64 - 1) // 3]
    assert of("x: i32[N] y[i] = x[i] // 2 + 10 * (x[i] % 3)", x=np.array([-7, 7])).tolist() == [16, 13]
    divided = of("x: i32[N], d: i32[N] y[i] = x[i] // d[i]", x=np.array([5]), d=np.array([0]))
    assert divided.tolist() == [0]
    assert of("x: i32[N] y[i] = clz(x[i]) + 100 * popc(x[i])", x=np.array([1, -1])).tolist() == [131, 3200]
    assert of("x: u32[N] y[i] = (x[i] * 1664525 + 1013904223) >> 16", x=np.array([2**32 - 1])).tolist() == [
        ((2**32 - 1) * 1664525 + 1013904223) % 2**32 >> 16
    ]


def test_types_of_outputs() -> None:
    f = formula_of("q: i8[N] q[i] = x[i], y[i] = bf16(x[i]) + z[i] where z[i] = f8e4m3(x[i])")
    found = evaluate(f, {"x": np.array([1.00390625, 1000.0, -1.9])})
    assert found["y"].tolist() == [2.0, 1448.0, -1.8984375 - 1.875]
    assert found["q"].tolist() == [1, 127, -1]
    assert stored(f, found)["q"].dtype == np.int8
    assert stored(f, found)["y"].dtype == np.float32


def test_roundings_are_torchs() -> None:
    torch = pytest.importorskip("torch", reason="not installed: torch")
    values = np.concatenate([drawn(2000) * 10.0 ** RANDOM.integers(-44, 39, 2000), np.arange(-20, 20) / 16, [math.nan]])
    names = {"f16": torch.float16, "bf16": torch.bfloat16, "f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2}
    single = values.astype(np.float32).astype(np.float64)
    for name, kind in names.items():
        inside = single[~(np.abs(single) > TYPES[name].largest)] if name.startswith("f8") else single
        expected = torch.from_numpy(inside).float().to(kind).double().numpy()
        np.testing.assert_array_equal(rounded(inside, TYPES[name]), expected, err_msg=name)


def test_not_a_number() -> None:
    x = np.array([[1.0, math.nan, 3.0]])
    assert math.isnan(of("y[r] = max[c] x[r, c]", x=x)[0])
    assert of("y[r] = argmin[c] x[r, c]", x=x).tolist() == [1]
    assert np.isnan(of("y[r, c] = max(x[r, c], 2.0)", x=x)).tolist() == [[False, True, False]]
    assert of("y[r, c] = fmax(x[r, c], 2.0)", x=x).tolist() == [[2.0, 2.0, 3.0]]
    assert np.isnan(of("y[r, c] = clamp(x[r, c], 0.0, 2.0)", x=x)).tolist() == [[False, True, False]]


@pytest.mark.parametrize(
    ("op", "value"),
    [("sum", 0.0), ("prod", 1.0), ("max", -math.inf), ("min", math.inf), ("argmax", 0), ("logsumexp", -math.inf)],
)
def test_over_nothing(op: str, value: float) -> None:
    assert of(f"y[r] = {op}[c] x[r, c]", x=np.zeros((3, 0))).tolist() == [value] * 3
    assert of(f"y[r] = {op}[c] x[r, c]", x=np.zeros((0, 3))).tolist() == []


def test_means_over_nothing_are_no_numbers() -> None:
    for op in ("mean", "var", "std"):
        assert np.isnan(of(f"y[r] = {op}[c] x[r, c]", x=np.zeros((2, 0)))).all()
    assert of("x: bool[R, C] y[r] = any[c] x[r, c]", x=np.zeros((2, 0), bool)).tolist() == [False, False]
    assert of("x: bool[R, C] y[r] = all[c] x[r, c]", x=np.zeros((2, 0), bool)).tolist() == [True, True]


def test_random_numbers() -> None:
    """The same at every size, in [0, 1), and as spread as they should be."""
    text = "y[i] = uniform(seed, i), z[i] = normal(seed, i) y: f32[N]"
    found = evaluate(formula_of(text), {}, {"seed": 2**40 + 7}, {"N": 100_000})
    again = evaluate(formula_of(text), {}, {"seed": 2**40 + 7}, {"N": 5})
    assert found["y"][:5].tolist() == again["y"].tolist()
    assert (found["y"].astype(np.float32) == found["y"]).all()
    assert 0 <= found["y"].min() < 0.001
    assert 0.999 < found["y"].max() < 1
    assert abs(found["y"].mean() - 0.5) < 0.005
    assert abs(found["z"].mean()) < 0.02
    assert abs(found["z"].std() - 1) < 0.02


def test_conditions_guard_indices() -> None:
    x = np.arange(4.0)
    assert of("x: f32[N] y: f32[N] y[i] = x[i - 1] if i > 0 else 0.0", x=x).tolist() == [0, 0, 1, 2]
    gathered = "x: f32[N] y[t] = x[ids[t]] if ids[t] >= 0 and x[ids[t]] > 1 else -1.0"
    assert of(gathered, x=x, ids=np.array([-1, 1, 3])).tolist() == [-1, -1, 3]


def test_what_does_not_fit_is_said() -> None:
    f = formula_of("y[t] = x[ids[t]]")
    with pytest.raises(EvaluationError, match=r"The index 1 of x\[ids\[t\]\] is 9, and the extent there is 3."):
        evaluate(f, {"x": np.zeros(3), "ids": np.array([0, 9])})
    with pytest.raises(EvaluationError, match=r"The array ids is not given."):
        evaluate(f, {"x": np.zeros(3)})
    with pytest.raises(EvaluationError, match=r"x has the shape \(2, 3\), not \(2,\)."):
        evaluate(formula_of("y[i] = x[i]"), {"x": np.zeros((2, 3))})
    with pytest.raises(EvaluationError, match=r"The number a is not given."):
        evaluate(formula_of("y[i] = a * x[i]"), {"x": np.zeros(3)})
    with pytest.raises(EvaluationError, match=r"The size N is not given"):
        evaluate(formula_of("y: f32[N] y[i] = 1.0"), {})
    with pytest.raises(EvaluationError, match=r"A range of e reaches beyond 0 to 2, its extent."):
        of("y[r] = sum[first[r] <= e < first[r + 1]] a[e]", first=np.array([0, 3]), a=np.zeros(2))


def test_arrays_in_between_stay_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """All pairs of 3,000 bodies need 9,000,000 values in between."""
    sizes: list[int] = []
    original = numpy_reference.FUNCTIONS["rsqrt"]
    monkeypatch.setitem(numpy_reference.FUNCTIONS, "rsqrt", lambda x: (sizes.append(x.size), original(x))[1])
    p = drawn(3000, 3)
    of("f[i, d] = sum[j] (p[j, d] - p[i, d]) * q[i, j] ** 3 where q[i, j] = rsqrt(0.01 + "
       "sum[e < 3] square(p[j, e] - p[i, e]))", p=p)  # fmt: skip
    assert max(sizes) <= numpy_boxes.MOST_ELEMENTS
    assert sum(sizes) == 9_000_000
