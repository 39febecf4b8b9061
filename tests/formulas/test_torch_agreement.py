"""What the harness finds of a kernel's outputs, by torch, is what is found by NumPy."""

from __future__ import annotations

import pytest

np = pytest.importorskip("numpy", reason="not installed: numpy")
torch = pytest.importorskip("torch", reason="not installed: torch")

from warpwright.emulator.formula_memory import STORED, to_bits, to_numbers  # noqa: E402
from warpwright.formulas import numpy_agreement, numpy_types  # noqa: E402
from warpwright.formulas.types import TYPES  # noqa: E402
from warpwright_harness.formula_agreement import agreement  # noqa: E402
from warpwright_harness.formula_memory import Memory, drawn, from_memory, to_memory  # noqa: E402
from warpwright_harness.formula_types import cast  # noqa: E402

KINDS = [each for each in TYPES if each != "u64"]  # which torch holds as i64


def some_values(kind: str, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    values = random.standard_normal(400) * 10.0 ** random.integers(-3, 4, 400)
    values[random.random(400) < 0.05] = np.nan
    values[random.random(400) < 0.05] = np.inf
    if TYPES[kind].kind == "complex":
        return values + 1j * random.permutation(values)
    return numpy_types.cast(values, TYPES[kind])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("relative", [0.0, 1e-6, 0.1])
def test_both_agreements_count_the_same(kind: str, relative: float) -> None:
    random = np.random.default_rng(1)
    expected = some_values(kind, 0)
    near = expected * (1 + 0.1 * random.standard_normal(400)) if TYPES[kind].kind != "bool" else ~expected
    got = np.where(random.random(400) < 0.5, expected, near)
    got = got if TYPES[kind].kind == "complex" else numpy_types.cast(got, TYPES[kind])
    got[::17] = some_values(kind, 2)[::17]
    with np.errstate(all="ignore"):
        error = np.where(np.isfinite(expected), np.abs(expected) * relative, 0.0)
    error[::31] = np.inf
    by_numpy = numpy_agreement.agreement("y", got, expected, error, TYPES[kind])
    tensors = (torch.from_numpy(np.ascontiguousarray(each)) for each in (numpy_types.held(got, TYPES[kind]), expected))
    found = agreement(*tensors, torch.from_numpy(error), kind)
    assert (found.wrong, found.unjudged) == (by_numpy.wrong, by_numpy.unjudged)
    assert 0 < found.wrong < 400


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_lie_in_memory_as_in_the_emulators(kind: str) -> None:
    values = drawn(("normal", 0.0, 1.0), (300,), kind, "nan", "cpu")
    held = to_memory(values, kind)
    bits = torch.from_numpy(to_bits(values.numpy(), kind).view(STORED[kind]).view(np.uint8))
    finite = ~values.isnan() if values.is_floating_point() else torch.ones(300, dtype=torch.bool)
    rows = held.contiguous().view(torch.uint8).reshape(300, -1)
    assert torch.equal(rows[finite], bits.reshape(300, -1)[finite])
    assert np.array_equal(from_memory(held, kind).numpy(), to_numbers(held_bits(held, kind), kind), equal_nan=True)


def held_bits(held: torch.Tensor, kind: str) -> np.ndarray:
    return held.contiguous().view(torch.uint8).numpy().view(STORED[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_drawn_is_a_value_of_its_type(kind: str) -> None:
    for draw in (("normal", 0.0, 1.0), ("between", 0.25, 4.0), ("apart", 0.5, 2.0), ("whole", 0, 1)):
        values = drawn(draw, (50,), kind, "normal", "cpu")
        assert torch.equal(cast(values, kind), values)


def test_a_write_beside_an_array_is_seen() -> None:
    memory = Memory(10, "f32", 0x7F, "cpu")
    memory.tensor((10,), (1,), 0).fill_(1.0)
    assert memory.is_guarded()
    memory.tensor((1,), (1,), 10)[0] = 1.0
    assert not memory.is_guarded()
