"""`assert_runs` for tests: a call whose kernel does not run is a failure.

    def test_scale(assert_runs):
        y = assert_runs("scale_kernel", lambda: ops.scale(x, w))

`-p warpwright_harness.pytest_plugin` loads it where warpwright is not installed; torch is imported by the first call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

Result = TypeVar("Result")


def assert_runs(kernel: str, call: Callable[[], Result]) -> Result:
    """What `call` gives; AssertionError where no kernel and no operator of that name ran in it. Without a GPU launches
    cannot be seen: then an operator of that name must have been dispatched."""
    import torch

    from warpwright_harness.torch_check.seen import watch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    result, seen = watch(call, device, functions=True)
    if not seen.count((kernel,)):
        instead = ", ".join(sorted(seen.kernels or seen.operator_us)[:5]) or "nothing"
        raise AssertionError(f"{kernel} did not run; what ran: {instead}")
    return result  # type: ignore[no-any-return]


@pytest.fixture(name="assert_runs")
def _assert_runs() -> Callable[[str, Callable[[], Result]], Result]:
    return assert_runs
