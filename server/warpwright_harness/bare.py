"""Launch one kernel once without torch, in arrays of exactly their size: `python -m warpwright_harness --bare FILE`.

It starts in a fraction of a second, and under compute-sanitizer each array ends where it ends. FILE is JSON: the cubin
and the function's name, grid, block, dynamic shared bytes, the arguments as in a request, the scalars by name, and for
each array and each variable its bytes and the file that holds its content (null for an output).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warpwright_harness.arguments import kernel_arguments
from warpwright_harness.device import Module, allocate, make_context, synchronize, write_memory
from warpwright_harness.variables import variable_named, variables_in, write


def run_bare(request: Mapping[str, Any]) -> None:
    """Raises LaunchRefusedError and CudaFaultError."""
    make_context()
    addresses: dict[str, int] = {}
    for array in request["arrays"]:
        addresses[array["name"]] = allocate(array["bytes"])
        if array["file"]:
            write_memory(addresses[array["name"]], Path(array["file"]).read_bytes())
    image = Path(request["cubin"]).read_bytes()
    with Module(image) as module:
        known = {variable.name: variable for variable in variables_in(image)}
        for variable in request["variables"]:
            name = variable_named(variable["name"], known)
            if name is not None:
                write(module, known[name], Path(variable["file"]).read_bytes())
        arguments = kernel_arguments(request["arguments"], addresses, request["scalars"])
        function = module.function(request["function"])
        module.prepare(function, request["grid"], request["block"], request["shared"], arguments).start(0)
        synchronize()
