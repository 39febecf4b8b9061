"""What a run has the machine do, counted on kernels of which it is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from warpwright.emulator.launch import ArrayArgument, Launch, ScalarArgument, run
from warpwright.emulator.program import translate
from warpwright.emulator.ptx.parse import parse
from warpwright.emulator.work import waits_of, work_of
from warpwright.facts.work import Work
from warpwright.syntax.source import Source
from warpwright.toolchain.compile import compile_ptx

pytestmark = pytest.mark.nvcc

TEXT = """
extern "C" __global__ void columns(const float* in, float* out, int n) {
    float sum = 0.0f;
    for (int j = 0; j < n; j++) sum += in[threadIdx.x * n + j];
    out[threadIdx.x] = sum;
}
extern "C" __global__ void total(const float* in, float* out, int n) {
    atomicAdd(out, in[blockIdx.x * blockDim.x + threadIdx.x]);
}
"""


@pytest.fixture(scope="module")
def module() -> Any:
    return parse(compile_ptx(Source("work.cu", TEXT.encode())).text)


def counted(module: Any, kernel: str, grid: int, columns: int, order: int | None = None) -> tuple[Work, Any]:
    program = translate(module, kernel)
    launch = Launch((grid, 1, 1), (64, 1, 1))
    given = [
        ArrayArgument("in", np.random.default_rng(1).standard_normal(64 * grid * columns, dtype=np.float32), "in"),
        ArrayArgument("out", np.zeros(64, dtype=np.float32), "in-out"),
        ScalarArgument("n", np.int32(columns).tobytes()),
    ]
    ran = run(program, launch, given, with_reach=True, atomic_order=order)
    return work_of(program, ran, grid, 64), ran.outputs["out"]


def test_a_walk_along_rows_loads_each_sector_once_for_its_block(module: Any) -> None:
    """64 rows of 32 floats: each of the 64 x 4 sectors is asked for 8 times, and is new at the first."""
    work, _ = counted(module, "columns", 1, 32)
    assert (work.loaded_sectors, work.block_sectors) == (64 * 32, 64 * 4)
    assert (work.load_requests, work.fresh_requests) == (2 * 32, 2 * 4)
    assert work.touched_sectors == 64 * 4 + 64 * 4 // 32


def test_atomics_on_one_word_are_counted_there(module: Any) -> None:
    work, _ = counted(module, "total", 4, 1)
    assert (work.atomics, work.hottest, work.blocks) == (256, 256, 4)


def test_the_order_of_floats_that_are_added_to_one_word_changes_only_their_rounding(module: Any) -> None:
    first, again, other = (counted(module, "total", 64, 1, order)[1][0] for order in (3, 3, 4))
    assert first == again
    assert first != other
    assert first == pytest.approx(other, rel=1e-4)


def test_a_run_that_was_not_asked_for_its_reach_has_no_work(module: Any) -> None:
    program = translate(module, "total")
    given = [ArrayArgument(name, np.zeros(64, dtype=np.float32)) for name in ("in", "out")]
    launch = Launch((1, 1, 1), (64, 1, 1))
    ran = run(program, launch, [*given, ScalarArgument("n", np.int32(1).tobytes())])
    with pytest.raises(ValueError, match="reach"):
        work_of(program, ran, 1, 64)


@pytest.mark.parametrize(
    ("statement", "waits"),
    [("out[0] = in[0] + in[1];", 1), ("out[0] = in[(int)in[0]];", 2), ("out[0] = in[0]; out[1] = in[1];", 2)],
)
def test_loads_wait_together_unless_one_needs_another_or_a_store_lies_between(statement: str, waits: int) -> None:
    text = f'extern "C" __global__ void k(float* in, float* out) {{ {statement} }}'
    program = translate(parse(compile_ptx(Source("waits.cu", text.encode())).text), "k")
    assert waits_of(list(program.steps), {"global"}) == waits
