"""Timed rounds on the processor, with kernels that are Python functions: what was timed is looked at each time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch", reason="not installed: torch")

import torch
from warpwright_harness import session as sessions
from warpwright_harness.buffers import GUARD_BYTES, ArraySpec, Buffer
from warpwright_harness.checks import correctness
from warpwright_harness.session import Case, Session
from warpwright_harness.timing import rounds
from warpwright_harness.timing.rounds import Samples, TimedWrongError, _rounds

Kernel = Callable[[Mapping[str, Buffer], int], None]
"""Given the buffers and how often it was launched before."""


def twice(buffers: Mapping[str, Buffer], launched: int) -> None:
    buffers["out"].data.copy_(buffers["in"].data * 2)


class Launched:
    def __init__(self, kernel: Kernel, buffers: Mapping[str, Buffer]) -> None:
        self.kernel, self.buffers, self.count = kernel, buffers, 0

    def start(self, stream: int) -> None:
        self.kernel(self.buffers, self.count)
        self.count += 1


class OnProcessor(Session):
    """A session whose two kernels are functions."""

    def __init__(self, candidate: Kernel) -> None:
        request = {"seed": 5, "variables": [], "arguments": []}
        super().__init__(request, lambda event: None)
        self.kernels: dict[str, Kernel] = {"baseline": twice, "candidate": candidate}

    def poison_shared_memory(self, word: int) -> None:
        """A processor has none."""

    def prepared(self, side: str, case: Case, buffers: Mapping[str, Buffer]) -> Any:
        return Launched(self.kernels[side], buffers)


class Watch:
    """Every launch takes a microsecond."""

    def start_cold(self, work: Callable[[], object]) -> Callable[[], float]:
        work()
        return lambda: 1.0

    start_warm = start_cold


@pytest.fixture(autouse=True)
def on_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sessions, correctness, rounds):
        monkeypatch.setattr(module, "DEVICE", "cpu")
    monkeypatch.setattr(sessions, "synchronize", lambda: None)
    cuda = SimpleNamespace(
        mem_get_info=lambda: (1 << 30, 1 << 30), memory_reserved=lambda: 0, memory_allocated=lambda: 0,
        current_stream=lambda: SimpleNamespace(cuda_stream=0),
    )  # fmt: skip
    monkeypatch.setattr(torch, "cuda", cuda)


def timed(candidate: Kernel, count: int = 1001, scalar: str = "float32") -> dict[str, Samples]:
    arrays = (ArraySpec("in", scalar, 1, "in", count, None), ArraySpec("out", scalar, 1, "out", count, None))
    launches = {side: ([1, 1, 1], [32, 1, 1], 0) for side in ("baseline", "candidate")}
    case = Case(0, {"n": count}, arrays, {}, launches, {side: [] for side in launches}, ("normal",), True, True)
    return _rounds([OnProcessor(candidate)], case, Watch(), 10.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("scalar", ["float32", "float16", "int8"])
def test_the_same_work_is_timed_until_the_first_look(scalar: str) -> None:
    samples = timed(twice, scalar=scalar)
    assert len(samples["candidate"].cold) == len(samples["baseline"].warm) == 16


def outside(buffers: Mapping[str, Buffer], launched: int) -> None:
    twice(buffers, launched)
    if launched == 2:
        buffers["out"]._raw[GUARD_BYTES + buffers["out"].bytes] ^= 1


def into_its_input(buffers: Mapping[str, Buffer], launched: int) -> None:
    twice(buffers, launched)
    if launched == 2:
        buffers["in"].data[-1] += 1


def remembered(buffers: Mapping[str, Buffer], launched: int) -> None:
    if launched < 2:
        kept[:] = [buffers["in"].data * 2]
    buffers["out"].data.copy_(kept[0])


kept: list[Any] = []


def part(buffers: Mapping[str, Buffer], launched: int) -> None:
    buffers["out"].data[:-1].copy_(buffers["in"].data[:-1] * 2)


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (outside, "writes outside out, whose extent is 1,001"),
        (into_its_input, "changes its input in"),
        (remembered, "should be"),
        (part, r"out\[1000\] was not written"),
    ],
)
@pytest.mark.parametrize("scalar", ["float32", "int8"])
def test_what_happens_only_while_it_is_timed_is_seen(kernel: Kernel, words: str, scalar: str) -> None:
    with pytest.raises(TimedWrongError, match=words):
        timed(kernel, scalar=scalar)
