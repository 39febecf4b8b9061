"""Launch functions written from one formula by several schedules, timed in turns on the same arrays."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

import torch

from warpwright_harness.events import Emit
from warpwright_harness.formula_calls import launcher
from warpwright_harness.gpu_lock import gpu_alone
from warpwright_harness.libraries import Library
from warpwright_harness.timing.stopwatch import Stopwatch

ROUNDS = 30
LEAST_ROUNDS = 3


def time_formulas(request: Mapping[str, Any], emit: Emit, waiting: Callable[[], None]) -> None:
    """Emit "formula-times": the median of each function, in microseconds with a cold cache, by its name; a function
    whose launch is refused has none. The rounds end after the request's `seconds`.

    `data` is a file with the bytes of all arrays one behind the other, as many as `arrays` says of each.
    """
    library = Library(request["library"])
    arrays = _arrays(request["data"], request["arrays"])
    addresses = [each.data_ptr() for each in arrays]
    calls = {
        name: launcher(
            library, name, addresses, request["sizes"], request["scalars"], has_workspace=each["has_workspace"]
        )
        for each in request["functions"]
        for name in [each["name"]]
    }
    times: dict[str, list[float]] = {}
    with gpu_alone(request["lock"], waiting):
        stopwatch = Stopwatch()
        calls = {name: call for name, call in calls.items() if call() == 0}
        torch.cuda.synchronize()
        begun = time.monotonic()
        for number in range(ROUNDS):
            if number >= LEAST_ROUNDS and time.monotonic() - begun > request["seconds"]:
                break
            emit({"event": "begin", "phase": "time", "case": number, "side": ""})
            for name, call in calls.items():
                times.setdefault(name, []).append(stopwatch.start_cold(call)())
    emit({"event": "formula-times", "us": {name: median(each) for name, each in times.items()}})


def _arrays(path: str, lengths: Sequence[int]) -> list[torch.Tensor]:
    """The arrays on the GPU, as bytes; one of no elements has one byte, so that it has an address."""
    held = torch.from_file(path, size=max(1, sum(lengths)), dtype=torch.uint8).cuda()
    found, begin = [], 0
    for each in lengths:
        found.append(held[begin : begin + each].clone() if each else held[:1].clone())
        begin += each
    return found
