"""The judgement of the emulator's backend, in NumPy, is the harness's, in torch: same verdict, words, numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from warpwright.emulator import agreement
from warpwright.emulator.agreement import Output
from warpwright.emulator.drawn import DISTRIBUTIONS, Asked, around, as_doubles, ties
from warpwright.emulator.drawn import drawn as drawn_here
from warpwright.emulator.values import coarser, perturbed

torch = pytest.importorskip("torch", reason="not installed: torch")

from warpwright_harness import buffers, drawn  # noqa: E402
from warpwright_harness.checks import compare, impostors  # noqa: E402

FLOATS = ("float32", "float64", "float16", "bfloat16")
SCALARS = (*FLOATS, "int32", "uint8")
BITS = {"float32": 32, "float64": 64, "float16": 16, "bfloat16": 16, "int32": 32, "uint8": 8}


def as_tensor(scalar: str, data: Any) -> Any:
    """The same bits in torch."""
    raw = torch.from_numpy(data.view(f"int{BITS[scalar]}" if BITS[scalar] > 8 else np.uint8).copy())
    return raw.view(buffers.ArraySpec("a", scalar, 1, "out", len(data), None).dtype)


def made(scalar: str, values: list[float]) -> Any:
    """Numbers of a type as the emulator keeps them."""
    if scalar == "bfloat16":
        bits = np.array(values, dtype=np.float32).view(np.uint32) >> 16
        return bits.astype(np.uint16)
    with np.errstate(all="ignore"):
        wide = np.array(values, dtype=np.float64)
        return wide.astype(scalar) if scalar in FLOATS else np.nan_to_num(wide, posinf=9, neginf=3).astype(scalar)


NUMBERS = st.sampled_from(
    [0.0, -0.0, 1.0, 1.0 + 2.0**-7, 1.0 + 2.0**-20, 3.0, 100.5, 1e4, 7.0, *map(float, ("nan", "inf", "-inf"))]
)
PAIRS = st.lists(st.tuples(NUMBERS, NUMBERS, st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=6)


@examples(150)
@given(st.sampled_from(SCALARS), PAIRS, st.sampled_from([-1.0, 0.0, 1e-3, 2.0]), st.booleans())
def test_two_outputs_are_judged_alike(scalar: str, pairs: Any, tolerance: float, whole: bool) -> None:
    ours = made(scalar, [abs(b) if same else abs(a) for a, b, same, _, _ in pairs])
    theirs = made(scalar, [abs(b) for _, b, _, _, _ in pairs])
    wrote = (np.array([whole or pair[3] for pair in pairs]), np.array([whole or pair[4] for pair in pairs]))
    spec = buffers.ArraySpec("a", scalar, 1, "out", len(pairs), None)
    here = agreement.compare(Output("a", scalar, 1), ours, theirs, wrote, tolerance)
    masks = tuple(torch.from_numpy(mask) for mask in wrote)
    there = compare.compare(spec, as_tensor(scalar, ours), as_tensor(scalar, theirs), masks, tolerance)
    assert (here.why, here.max_abs, here.tolerance) == (there.why, there.max_abs, there.tolerance)
    assert here.max_rel == pytest.approx(there.max_rel, rel=1e-6)
    assert (here.max_ulp, here.rel_l2) == (there.max_ulp, pytest.approx(there.rel_l2, rel=1e-6))
    assert agreement.is_exact(Output("a", scalar, 1), theirs) == compare.is_exact(spec, as_tensor(scalar, theirs))


@pytest.mark.parametrize("scalar", FLOATS)
def test_inputs_are_moved_by_as_much(scalar: str) -> None:
    random = np.random.default_rng(1)
    data = made(scalar, list(random.standard_normal(500)))
    spec = buffers.ArraySpec("a", scalar, 1, "in", len(data), None)
    moved = perturbed(0)(scalar, data, np.random.default_rng(2))
    other = perturbed(1)(scalar, data, np.random.default_rng(2))
    assert moved.dtype == data.dtype
    assert not (moved == other).all()
    gap = agreement.largest_gap(Output("a", scalar, 1), moved, data)
    theirs = buffers.perturbed(spec, as_tensor(scalar, data), 3)
    assert gap == pytest.approx(compare.largest_gap(theirs, as_tensor(scalar, data)), rel=0.5)
    assert gap > 0.0


@pytest.mark.parametrize("scalar", FLOATS)
def test_the_coarser_control_is_the_same(scalar: str) -> None:
    data = made(scalar, [0.1, 1e30, -7.3, 1e-30, 0.0, float("inf")])
    rough = coarser(scalar, data, np.random.default_rng(0))
    spec = buffers.ArraySpec("a", scalar, 1, "in", len(data), None)
    assert torch.equal(as_tensor(scalar, rough), buffers.coarser(spec, as_tensor(scalar, data)))


def test_the_factors_are_the_same() -> None:
    assert (agreement.NOISE_FACTOR, agreement.ULPS, agreement.STRICT_ULPS) == (
        compare.NOISE_FACTOR,
        compare.ULPS,
        compare.STRICT_ULPS,
    )


@pytest.mark.parametrize("scalar", FLOATS)
@pytest.mark.parametrize("tolerance", [0.0, 0.3, 10.0])
@pytest.mark.parametrize("kind", ["spread", "nearly-zero", "nearly-one", "by-row", "by-column"])
def test_the_same_impostors_pass(scalar: str, tolerance: float, kind: str) -> None:
    random = np.random.default_rng(5)
    noise = random.standard_normal((6, 8))
    shown = {"spread": 100 * noise, "nearly-zero": 0.1 * noise, "nearly-one": 7 + 0.1 * noise}
    shown |= {"by-row": noise * 0.05 + 9 * np.arange(6)[:, None], "by-column": noise * 0.05 + 9 * np.arange(8)}
    data = made(scalar, list(shown[kind].reshape(-1)))
    given = made(scalar, [1.0] * 48)
    due = np.ones(48, dtype=bool)
    shape = {"rows": 6, "columns": 8}
    here = agreement.impostor_that_passes(Output("a", scalar, 1), data, due, tolerance, given, shape)
    spec = buffers.ArraySpec("a", scalar, 1, "out", 48, None)
    there = impostors.impostor_that_passes(
        spec, as_tensor(scalar, data), torch.from_numpy(due), tolerance, as_tensor(scalar, given), shape
    )
    assert here == there
    if tolerance == 0.3:
        words = {"nearly-zero": "zero everywhere", "nearly-one": "its mean everywhere", "spread": ""}
        assert here == words.get(kind, "its mean along columns")


@pytest.mark.parametrize("scalar", [*FLOATS, "int8", "uint8", "int16", "int32", "int64"])
def test_values_around_thresholds_are_alike(scalar: str) -> None:
    thresholds = (1000.0, -0.1, 77.5, 100.0, 1e12)
    there = drawn.around(buffers.ArraySpec("a", scalar, 1, "in", 1, None, thresholds))
    here = torch.from_numpy(around(scalar, thresholds)).to(there.dtype)
    assert here.tolist() == there.tolist()
    values = drawn.make_values(buffers.ArraySpec("a", scalar, 1, "in", 400, None, thresholds), "threshold", 1, "cpu")
    assert set(there.tolist()) <= set(values.tolist())


@pytest.mark.parametrize("scalar", FLOATS)
def test_ties_are_alike(scalar: str) -> None:
    scales = (10.0, 255.0, 0.0, 1e9)
    there = drawn.ties(buffers.ArraySpec("a", scalar, 1, "in", 1, None, scales=scales))
    assert torch.from_numpy(ties(scalar, scales)).to(there.dtype).tolist() == there.tolist()
    values = drawn.make_values(buffers.ArraySpec("a", scalar, 1, "in", 4000, None, scales=scales), "ties", 1, "cpu")
    assert set(there.tolist()) <= set(values.tolist())


@pytest.mark.parametrize("limit", [None, 50])
@pytest.mark.parametrize("scalar", [*FLOATS, "bool", "int8", "uint8", "int32", "uint32", "int64"])
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_both_backends_draw_from_one_range(distribution: str, scalar: str, limit: int | None) -> None:
    assert drawn.DISTRIBUTIONS == DISTRIBUTIONS
    if limit is not None and "int" not in scalar:
        return
    spec = buffers.ArraySpec("a", scalar, 1, "in", 4001, limit, (77.0,), (3.0,), True)
    there = drawn.make_values(spec, distribution, 3, "cpu").double()
    here = drawn_here(Asked(scalar, 4001, limit, True, (77.0,), (3.0,)), distribution, np.random.default_rng(3))
    unsigned = scalar.startswith("u") and scalar != "uint8"  # of those torch has the bits
    ours = as_doubles(scalar, here.view(f"i{here.itemsize}") if unsigned else here)
    for share in (0.1, 0.5, 0.9):
        at = [np.quantile(np.abs(each[np.isfinite(each)]), share) for each in (ours, there.numpy())]
        here_at, there_at = (np.log10(each + (1.0 if "int" in scalar else 1e-30)) for each in at)
        assert here_at == pytest.approx(there_at, rel=0.05, abs=0.3)


@examples(60)
@given(
    st.sampled_from(FLOATS),
    st.lists(st.sampled_from([0.0, 1.0, -3.0, 1e3, float("nan"), float("inf")]), min_size=1, max_size=5),
    st.integers(0, 6),
    st.floats(0.5, 2.0),
)
def test_results_that_follow_their_inputs_scale_are_known_alike(
    scalar: str, values: list[float], degree: int, factor: float
) -> None:
    base, halved, other = (made(scalar, [v * f for v in values]) for f in (1.0, 0.5**degree, factor))
    tensors = [as_tensor(scalar, data) for data in (base, halved, other)]
    output = Output("a", scalar, 1)
    known = agreement.degree_of(output, base, halved)
    assert known == compare.degree_of(tensors[0], tensors[1])
    finite = [v for v in values if np.isfinite(v)]
    assert known == (degree if degree <= 4 and any(finite) else None)
    here = agreement.tolerance_of_scaled(output, base, [(factor, other)])
    assert here == pytest.approx(compare.tolerance_of_scaled(tensors[0], [(factor, tensors[2])]))
