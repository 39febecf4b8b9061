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
    cannot be seen: then an operator of that name must have been dispatched. RuntimeError where `call` uses the
    profiler itself, with which it is watched."""
    import torch

    from warpwright_harness.torch_check.seen import watch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    is_watched = True

    def watched() -> Result:
        nonlocal is_watched
        result = call()
        is_watched = torch.autograd._profiler_enabled()
        return result

    result, seen = watch(watched, device, functions=True)
    if not is_watched:
        raise RuntimeError(f"whether {kernel} ran cannot be seen: the call ends torch's profiler, which watches it")
    if not seen.count((kernel,)) and kernel not in seen.operator_us:
        times = seen.kernel_us or seen.operator_us
        longest = [*seen.operators, *sorted(times, key=lambda each: -times[each])]
        instead = ", ".join(list(dict.fromkeys(longest))[:5]) or "nothing"
        raise AssertionError(f"{kernel} did not run; what ran: {instead}")
    return result  # type: ignore[no-any-return]


@pytest.fixture(name="assert_runs")
def _assert_runs() -> Callable[[str, Callable[[], Result]], Result]:
    return assert_runs
