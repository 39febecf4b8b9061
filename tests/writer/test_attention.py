"""Attention in one kernel, in the emulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from warpwright.emulator.formulas import Compiled, compiled
from warpwright.emulator.launch import ArrayArgument, Launch, ScalarArgument, run
from warpwright.emulator.program import Program
from warpwright.schedules.attention import FusedAttention
from warpwright.writer.attention import Attention, fused_attention


def attention(q: Any, k: Any, v: Any, scale: float, causal: bool) -> Any:
    """In float64."""
    scores = q @ k.swapaxes(1, 2) * scale
    if causal:
        scores = np.where(np.triu(np.ones(scores.shape[1:], bool), 1), -np.inf, scores)
    weights = np.exp(scores - scores.max(2, keepdims=True))
    return weights / weights.sum(2, keepdims=True) @ v


@pytest.mark.nvcc
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("head", "schedule"), [(64, FusedAttention()), (128, FusedAttention(64, 64)), (64, FusedAttention(128, 64, 8))]
)
def test_odd_numbers_of_rows_and_keys(head: int, schedule: FusedAttention, causal: bool) -> None:
    described = Attention("attend", "O = softmax(Q K) V", head, "f16", causal)
    made = compiled(fused_attention(described, schedule))
    assert isinstance(made, Compiled), made
    program = made.program("attend_kernel", ())
    assert isinstance(program, Program), program
    random = np.random.default_rng(5)
    for heads, rows, keys in ((1, 1, 1), (2, 33, 150), (1, 140, 70)):
        q, k, v = (random.standard_normal((heads, n, head)).astype(np.float16) for n in (rows, keys, keys))
        scale = np.float32(0.3)
        out = np.full(q.size, np.nan, np.float16)
        arguments = [ArrayArgument(n, x.reshape(-1)) for n, x in (("Q", q), ("K", k), ("V", v), ("O", out))]
        numbers = (np.int32(rows), np.int32(keys), np.float32(scale * np.log2(np.e)))
        scalars = [ScalarArgument(n, x.tobytes()) for n, x in zip("IJs", numbers, strict=True)]
        blocks = -(-rows // schedule.rows) * heads
        launch = Launch((blocks, 1, 1), (schedule.threads, 1, 1), schedule.shared(head))
        ran = run(program, launch, [*arguments, *scalars])
        assert not ran.faults
        exact = attention(*(x.astype(np.float64) for x in (q, k, v)), float(scale), causal)
        found = ran.outputs["O"].view(np.float16).reshape(exact.shape).astype(np.float64)
        assert np.linalg.norm(found - exact) <= 2e-3 * np.linalg.norm(exact)


def test_a_schedule_that_cannot_be_says_why() -> None:
    assert "64 and 128" in FusedAttention().refusal(96)
    assert "shared memory" in FusedAttention(128, 128, 8).refusal(128)
