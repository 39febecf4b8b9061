"""Every attack of tests/attacks is rejected, every honest rewrite of tests/honest passes, on the CPU and on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import pytest
from support.pairs import ATTACKS, HONEST, Pair, pairs_in
from warpwright.verify import emulation
from warpwright.verify.acceptable import acceptable
from warpwright.verify.budget import Budget
from warpwright.verify.report import Status
from warpwright.verify.verify import verify

PASSED = {Status.CORRECT, Status.FASTER, Status.SLOWER, Status.INCONCLUSIVE}
HONEST_SAMPLED = 8


def params() -> Iterator[Any]:
    """Of the attacks of one kind with one end the first is no slow one, and of the honest ones one in some."""
    seen: set[object] = set()
    for pair in pairs_in(ATTACKS):
        kind = (pair.kind, pair.expected["emulator"])
        yield pytest.param(pair, id=pair.name, marks=[pytest.mark.slow] if kind in seen else [])
        seen.add(kind)
    for number, pair in enumerate(pairs_in(HONEST)):
        yield pytest.param(pair, id=pair.name, marks=[pytest.mark.slow] if number % HONEST_SAMPLED else [])


PAIRS = [*params()]


def judge(pair: Pair, backend: Literal["emulator", "cuda"]) -> None:
    report = verify(pair.original, pair.candidate, kernel=pair.kernel, goal=pair.goal, backend=backend, again=True)
    surprise = pair.surprise(backend, str(report.status), report.reason, [str(each.what) for each in report.uncovered])
    assert not surprise, (surprise, report.notes)
    if pair.uncovered:
        assert not any(acceptable(report, goal) for goal in ("speed", "memory"))
    if report.status not in PASSED and report.status is not Status.NOT_RUN:
        assert not any(acceptable(report, goal) for goal in ("speed", "memory", "fix"))


@pytest.mark.sampled(6)
@pytest.mark.nvcc
@pytest.mark.parametrize("pair", PAIRS)
def test_on_the_cpu(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    less = Budget(launch=8_000_000, together=160_000_000, least_candidate=200_000)  # to end sooner
    monkeypatch.setattr(emulation, "BUDGET", less)
    judge(pair, "emulator")


@pytest.mark.nvcc
@pytest.mark.gpu
@pytest.mark.parametrize("pair", PAIRS)
def test_on_a_gpu(pair: Pair) -> None:
    judge(pair, "cuda")
