"""Launch kernels once each without torch, in arrays of exactly their size: `python -m warpwright_harness --bare LOCK`.

Under compute-sanitizer each array ends where it ends. Once it is ready it reads one line, JSON with "launches": for
each what a request says of one side and one case (cubin, launches, arguments, variables, counts, scalars, limits, grid,
block, shared, repeats), its seed, and the lock of the GPU. What one launch allocated is gone before the next.
"""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any, TextIO

from warpwright_harness.arguments import kernel_arguments, moved_addresses, passed_addresses
from warpwright_harness.device import Module, allocate, make_context, release, synchronize, write_memory
from warpwright_harness.gpu_lock import gpu_shared
from warpwright_harness.variables import variable_named, variables_in, write

_PACKED = {
    "float32": "f", "float64": "d", "float16": "e", "bool": "?", "int8": "b", "uint8": "B", "int16": "h",
    "uint16": "H", "int32": "i", "uint32": "I", "int64": "q", "uint64": "Q",
}  # fmt: skip


def run_bare(lock: str, requests: TextIO, events: TextIO) -> None:
    """An event for each step, as a sign of life. Raises LaunchRefusedError and CudaFaultError, after which nothing more
    is launched."""

    def emit(event: str) -> None:
        events.write(json.dumps({"event": event}) + "\n")
        events.flush()

    with gpu_shared(lock, lambda: emit("wait")):
        make_context()
    emit("hello")
    for launch in json.loads(requests.readline() or '{"launches": []}')["launches"]:
        with gpu_shared(launch["lock"], lambda: emit("wait")):
            _run(launch)
        emit("launched")


def _run(request: Mapping[str, Any]) -> None:
    drawn = random.Random(request["seed"])
    arrays = [
        part
        for argument in request["arguments"]
        for part in (argument["members"] if argument["kind"] == "struct" else [argument])
        if part["kind"] == "array"
    ]
    addresses: dict[str, int] = {}
    for array in arrays:
        content = values_of(array, request, drawn)
        addresses[array["name"]] = allocate(len(content))
        if array["role"] != "out":
            write_memory(addresses[array["name"]], content)
    passed = passed_addresses(request["arguments"], addresses, request["offsets"])
    image = Path(request["cubin"]).read_bytes()
    with Module(image) as module:
        known = {variable.name: variable for variable in variables_in(image)}
        for variable in request["variables"]:
            name = variable_named(variable["name"], known)
            if name is not None:
                write(module, known[name], values_of(variable, request, drawn))
        described = {argument["name"]: argument for argument in request["arguments"]}
        for launch, repeat in zip_longest(request["launches"], request["repeats"]):
            handed = [described[name] for name in launch["arguments"]]
            function = module.function(launch["function"])
            for moved in moved_addresses(passed, launch["arguments"], repeat):
                arguments = kernel_arguments(handed, moved, request["scalars"])
                module.prepare(function, request["grid"], request["block"], request["shared"], arguments).start(0)
        synchronize()
    for address in addresses.values():
        release(address)


def values_of(array: Mapping[str, Any], request: Mapping[str, Any], drawn: random.Random) -> bytes:
    """N(0, 1), small whole numbers, or indices below the array's limit, as the bytes of its type."""
    count = request["counts"][array["name"]] * array["components"]
    limit, scalar = request["limits"].get(array["name"]), array["scalar"]
    if limit is not None:
        values: list[Any] = [drawn.randrange(max(1, limit)) for _ in range(count)]
    elif "float" in scalar:
        values = [drawn.gauss(0.0, 1.0) for _ in range(count)]
    else:
        values = [drawn.randint(0, 1 if scalar == "bool" else 8) for _ in range(count)]
    if scalar == "bfloat16":
        return b"".join(struct.pack("<f", value)[2:] for value in values)
    return struct.pack(f"<{count}{_PACKED[scalar]}", *values)
