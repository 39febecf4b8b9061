"""Two places of host code, each a function of a library, run for real: compared on the same arrays, and timed whole.

The libraries take the CUDA runtime that torch has loaded. What is timed is the host's clock around a call and the wait
for all that it launched, since what a place costs is the host's time and the GPU's together.
"""

from __future__ import annotations

import ctypes
import struct
import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

import torch

from warpwright_harness.events import Emit
from warpwright_harness.gpu_lock import gpu_alone
from warpwright_harness.libraries import Library
from warpwright_harness.timing.intervals import is_enough, ratio_of

LONGEST_US = 200_000.0
"""Of one run that is timed."""


def run_host(request: Mapping[str, Any], emit: Emit, waiting: Callable[[], None]) -> None:
    """Emit "host": whether both leave the same bytes in every variable and in every array that the first leaves the
    same when it runs again, and the times of both in microseconds, of rounds in which they take turns; "error" where
    one run takes longer than LONGEST_US."""
    emit({"event": "begin", "phase": "check", "case": 0, "side": "baseline"})
    runs = [_run_of(path) for path in request["libraries"]]
    torch.manual_seed(request["seed"])
    arrays = {each["name"]: _filled(each) for each in request["variables"] if each["kind"] == "pointer"}
    kept = {name: array.clone() for name, array in arrays.items()}
    with gpu_alone(request["lock"], waiting):
        first, again, other = (_left(run, request, arrays, kept) for run in (runs[0], *runs))
        steady = [name for name in arrays if torch.equal(first[0][name], again[0][name])]
        differing = [name for name in steady if not torch.equal(first[0][name], other[0][name])]
        if differing or first[1] != other[1]:
            emit({"event": "host", "same": False, "differing": differing})
            return
        emit({"event": "begin", "phase": "time", "case": 0, "side": ""})
        if (once := _timed(runs[0], request, arrays, kept)) > LONGEST_US:
            emit({"event": "error", "text": f"one run takes {once / 1e6:.1f} s, which launches have little part in"})
            return
        times: tuple[list[float], list[float]] = ([], [])
        while not times[0] or not is_enough(*times):
            for side in (0, 1) if len(times[0]) % 2 else (1, 0):
                times[side].append(_timed(runs[side], request, arrays, kept))
    ratio = ratio_of(*times)
    emit({
        "event": "host", "same": True, "baseline_us": median(times[0]), "candidate_us": median(times[1]),
        "speedup": ratio.value, "ci95": [ratio.low, ratio.high], "least_effect": ratio.least, "rounds": len(times[0]),
    })  # fmt: skip


def _run_of(path: str) -> Callable[[Any], None]:
    """The place's function. Raises RuntimeError where the library cannot be loaded."""
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(Library(path).address("warpwright_run"))


def _filled(variable: Mapping[str, Any]) -> torch.Tensor:
    """An array on the GPU as bytes: floats from 0.5 to 1.5, whole numbers below the limit, or zeros."""
    count, scalar = variable["count"], variable["scalar"]
    kind = getattr(torch, scalar.removeprefix("u"))  # as wide, and small numbers are the same in both
    if kind.is_floating_point:
        values = (torch.rand(count, device="cuda") + 0.5).to(kind)
    else:
        values = torch.randint(0, max(1, variable["limit"]), (count,), device="cuda").to(kind)
    return values.view(torch.uint8)


def _left(
    run: Callable[[Any], None],
    request: Mapping[str, Any],
    arrays: dict[str, torch.Tensor],
    kept: dict[str, torch.Tensor],
) -> tuple[dict[str, torch.Tensor], list[bytes]]:
    """What each array and each variable holds afterwards."""
    held = _ready(request, arrays, kept)
    _called(run, held)
    torch.cuda.synchronize()
    return {name: array.clone() for name, array in arrays.items()}, [each.raw for each in held]


def _timed(
    run: Callable[[Any], None],
    request: Mapping[str, Any],
    arrays: dict[str, torch.Tensor],
    kept: dict[str, torch.Tensor],
) -> float:
    held = _ready(request, arrays, kept)
    torch.cuda.synchronize()
    start = time.perf_counter()
    _called(run, held)
    torch.cuda.synchronize()
    return (time.perf_counter() - start) * 1e6


def _ready(
    request: Mapping[str, Any], arrays: dict[str, torch.Tensor], kept: dict[str, torch.Tensor]
) -> list[ctypes.Array[ctypes.c_char]]:
    """The variables' bytes, with the arrays as they were at first."""
    for name, array in arrays.items():
        array.copy_(kept[name])
    return [ctypes.create_string_buffer(_bytes(each, arrays), each["size"]) for each in request["variables"]]


def _bytes(variable: Mapping[str, Any], arrays: Mapping[str, torch.Tensor]) -> bytes:
    match variable["kind"]:
        case "pointer":
            return struct.pack("<Q", arrays[variable["name"]].data_ptr())
        case "float":
            return struct.pack({4: "<f", 8: "<d"}[variable["size"]], variable["value"])
        case "dim3":
            return struct.pack("<3I", *variable["value"])
        case _:
            return int(variable["value"]).to_bytes(variable["size"], "little", signed=variable["kind"] == "int")


def _called(run: Callable[[Any], None], held: list[ctypes.Array[ctypes.c_char]]) -> None:
    handed = (ctypes.c_void_p * (len(held) + 1))(*(ctypes.addressof(each) for each in held))
    run(ctypes.addressof(handed))
