"""By which tolerance a call is judged: of the first values, of all where few elements are finite, or of its own."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("not installed: torch", allow_module_level=True)

import torch
from warpwright_harness.extension.check import compared
from warpwright_harness.extension.outputs import LEAST_FINITE, Sample
from warpwright_harness.extension.rounding import Rounding

NAME = "its result"
NAN = float("nan")


class Scripted(Rounding):
    """Gives a noise for each place of the plan, whose values are their places, and says which places were asked for."""

    def __init__(self, noise: Sequence[float], distribution: str = "normal", rough: float = 1.0) -> None:
        super().__init__(None, None, distribution, None)  # type: ignore[arg-type]
        object.__setattr__(self, "script", (noise, rough, []))

    @property
    def asked(self) -> list[int]:
        return self.__dict__["script"][2]  # type: ignore[no-any-return]

    def sample(self, values: Mapping[str, Any], runs: Sequence[Mapping[str, torch.Tensor]]) -> dict[str, Sample]:
        noise, rough, asked = self.__dict__["script"]
        asked.append(values["place"])
        base = runs[0][NAME]
        finite = base[torch.isfinite(base)].abs()
        largest = float(finite.max()) if finite.numel() else 0.0
        return {NAME: Sample(2.0**-23, finite.numel(), largest, noise[values["place"]], rough, 0.0, False)}


def judged(rounding: Scripted, expected: Sequence[torch.Tensor], off: Sequence[float]) -> str:
    plan: list[Any] = [{"place": place} for place in range(len(expected))]
    own = [{NAME: each + more} for each, more in zip(expected, off, strict=True)]
    return compared(rounding, plan, own, [{NAME: each} for each in expected])[1].why


def test_values_that_are_not_finite_do_not_decide_for_others() -> None:
    """A layer norm of rows with NaN: no row of the first values is finite, one of other values is."""
    nothing, row = torch.full((256,), NAN), torch.cat([torch.full((128,), NAN), torch.linspace(0.01, 2, 128)])
    rounding = Scripted([0.0, 0.0, 2e-7, 0.0])
    assert not judged(rounding, [nothing, nothing, row, nothing], [0.0, 0.0, 8e-7, 0.0])
    assert rounding.asked == [0, 2, 3]
    assert judged(Scripted([0.0, 0.0, 2e-7, 0.0]), [nothing, nothing, row, nothing], [0.0, 0.0, 2e-5, 0.0])


def test_a_call_that_is_beyond_the_first_values_is_judged_by_its_own() -> None:
    """Magnitudes from 1e-6 to 1e6: rounding on other values is another."""
    small, large = torch.linspace(0.001, 1, LEAST_FINITE), torch.linspace(-1e6, 1e6, LEAST_FINITE)
    rounding = Scripted([1e-7, 1e-7, 0.1, 1e-7])
    assert not judged(rounding, [small, small, large, small], [0.0, 0.0, 0.5, 0.0])
    assert rounding.asked == [0, 2]
    assert judged(Scripted([1e-7, 1e-7, 0.1, 1e-7]), [small, small, large, small], [0.0, 0.0, 5.0, 0.0])
    assert judged(Scripted([1e-7, 1e-7, 0.1, 1e-7]), [small, small, large, small], [0.0, 1e-4, 0.0, 0.0])


def test_one_number_is_measured_on_all_values() -> None:
    """A sum: that a lower precision comes near to it on one set of values is luck."""
    numbers = [torch.tensor([value]) for value in (136.7, 136.7, 2074.5, 1632.3)]
    rounding = Scripted([0.0, 0.0, 0.002, 0.001])
    assert not judged(rounding, numbers, [0.01, 0.0, 0.0, 0.0])
    assert rounding.asked == [0, 2, 3]
    assert judged(Scripted([0.002] * 4, rough=0.001), numbers, [0.01, 0.0, 0.0, 0.0])
