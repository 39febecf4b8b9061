"""A search that goes on from an offer; what it finds is verified against the user's own text."""

from __future__ import annotations

from functools import partial

import pytest
from support.kernels import CONFLICT
from warpwright.editor.continuing import Start, continued
from warpwright.facts.analyze import analyze
from warpwright.optimize.optimize import optimize
from warpwright.syntax.source import Source
from warpwright.verify.verify import verify

# The conflict in the tile was cured by more memory; another array is of no use.
TILE = "__shared__ float tile[32][32];"
OWN = CONFLICT.replace("__global__", "static __global__").replace(TILE, f"{TILE} __shared__ float more[64][32];")
OWN = OWN.replace("= tile[x][y]", "= tile[x][y] + more[y][x]")
OWN = OWN.replace("    __syncthreads();", "    more[y][x] = n;\n    __syncthreads();")
OFFERED = OWN.replace("tile[32][32]", "tile[32][32 + 1]")


@pytest.mark.nvcc
def test_less_memory_of_a_fast_kernel_is_judged_by_the_users_own_text() -> None:
    program = analyze(Source("/src/a.cu", OWN.encode()))
    (kernel,) = program.defined_kernels
    start = Start(Source("/src/a.cu", OFFERED.encode()), ("pad-shared-array",), ("Padded.",))
    outcome = continued(
        program,
        kernel,
        "speed",
        "memory",
        start,
        (),
        partial(optimize, is_wanted=lambda step: step.rewrite == "recompute-instead-of-store"),
        partial(verify, kernel="transpose", goal="speed"),
    )
    assert outcome.best is not None, outcome.reason
    best = outcome.candidates[outcome.best]
    assert best.rewrites == ("pad-shared-array", "recompute-instead-of-store")
    assert best.explanations[0] == "Padded."
    assert best.source_before is program.source
    assert "tile[32][32 + 1]" in best.diff
    assert "+    more = n;" in best.diff
    assert (best.report.status, best.report.goal) == ("correct", "speed")


def test_where_nothing_further_applies_the_offer_stays() -> None:
    program = analyze(Source("/src/a.cu", OWN.encode()))
    (kernel,) = program.defined_kernels
    start = Start(Source("/src/a.cu", OFFERED.encode()), ("pad-shared-array",), ("Padded.",))
    outcome = continued(
        program,
        kernel,
        "speed",
        "memory",
        start,
        (),
        partial(optimize, is_wanted=lambda step: False),
        partial(verify, kernel="transpose", goal="speed"),
    )
    assert outcome.best is None
    assert outcome.goal == "memory"
    assert outcome.reason.startswith("The offer is unchanged. No rewrite")
