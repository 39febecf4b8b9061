"""`python -m warpwright_harness.reference PATH`: calls the `reference` of a user's module on the CPU, in float64.

Each line of stdin asks for one call: {"inputs": {name: [scalar type, base64 of its bytes]}, "scalars": {name: number}}.
Each line of stdout answers: {"outputs": {name: [is a float, base64 of float64 or int64]}}, or {"error": one sentence}.
The first line, {"ready": true} or an error, says whether there is a reference.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any


def main(path: str) -> int:
    answers = os.fdopen(os.dup(1), "w", encoding="ascii", buffering=1)
    os.dup2(2, 1)  # what the module prints is no answer

    def say(answer: Mapping[str, Any]) -> None:
        answers.write(json.dumps(answer) + "\n")

    try:
        from warpwright_harness.session import load_reference

        reference = load_reference(path)
    except Exception as error:
        say({"error": f"{path} cannot be used ({type(error).__name__}: {error})"})
        return 1
    say({"ready": True})
    for line in sys.stdin:
        try:
            say({"outputs": _called(reference, json.loads(line))})
        except Exception as error:
            say({"error": f"the reference failed ({type(error).__name__}: {error})"})
    return 0


def _called(reference: Callable[..., Mapping[str, Any]], asked: Mapping[str, Any]) -> dict[str, Any]:
    import torch

    from warpwright_harness.buffers import torch_type

    inputs = {}
    for name, (scalar, data) in asked["inputs"].items():
        held = bytearray(base64.b64decode(data))
        values = torch.frombuffer(held, dtype=torch_type(scalar)) if held else torch.empty(0, dtype=torch_type(scalar))
        inputs[name] = values.double() if values.is_floating_point() else values.clone()
    found = {}
    for name, tensor in reference(**inputs, **asked["scalars"]).items():
        is_float = tensor.is_floating_point()
        flat = tensor.detach().reshape(-1).to(torch.float64 if is_float else torch.int64).contiguous()
        found[name] = [is_float, base64.b64encode(flat.numpy().tobytes()).decode("ascii")]
    return found


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        sys.exit(main(sys.argv[1]))
