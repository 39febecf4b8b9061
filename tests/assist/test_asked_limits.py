"""What words ask of a kernel beside what it computes."""

from __future__ import annotations

import pytest
from warpwright.assist.asked_limits import AskedLimits, asked_limits


@pytest.mark.parametrize(
    ("words", "left", "limits"),
    [
        ("relu of x within 2 GiB of device memory", "relu of x", AskedLimits(2 << 30)),
        ("relu of x using at most 512MB of VRAM, for an NVIDIA H100", "relu of x", AskedLimits(512 * 10**6, "sm_90")),
        ("relu of x (rows x 4), sm_90a", "relu of x (rows x 4)", AskedLimits(arch="sm_90a")),
        (
            "GELU of x[n] for n = 100 and on compute capability 8.9",
            "GELU of x[n]",
            AskedLimits(None, "sm_89", {"n": 100}),
        ),
        ("24 GB, RTX 4090, tensor cores", "", AskedLimits(24 * 10**9, "sm_89", tensor_cores=True)),
        ("y = 4 * x, with alpha = 2", "y = 4 * x, with alpha = 2", AskedLimits()),
        ("sum of x, where the first 3 bytes differ", "sum of x, where the first 3 bytes differ", AskedLimits()),
        ("Rows that sum to 1:\ny[r] = x[r] / 2\nR = 9", "Rows that sum to 1:\ny[r] = x[r] / 2\nR = 9", AskedLimits()),
        ("Halved, in 1 kB:\ny[r] = x[r] / 2", "Halved, :\ny[r] = x[r] / 2", AskedLimits(1000)),
    ],
)
def test_words_are_left_that_ask_for_no_limit(words: str, left: str, limits: AskedLimits) -> None:
    assert asked_limits(words) == (left, limits)
