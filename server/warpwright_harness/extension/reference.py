"""A torch reference of an extension's function: `reference(**arguments)` in a user's module, computed in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from warpwright_harness.checks.compare import largest_gap
from warpwright_harness.events import Emit
from warpwright_harness.extension.batch import Parameters, Values

Reference = Callable[..., Any]


def reference_arguments(parameters: Parameters, values: Values, *, wide: bool) -> dict[str, Any]:
    """Tensors in their shapes and numbers, by name; `wide` has floating-point tensors in float64."""
    found: dict[str, Any] = {}
    for argument in parameters.described:
        name = argument["name"]
        if argument["kind"] != "tensor":
            found[name] = argument["value"]
            continue
        tensor = values[name].clone().view(getattr(torch, argument["scalar"])).view(argument["sizes"])
        found[name] = tensor.double() if wide and tensor.is_floating_point() else tensor
    return found


def call_reference(
    emit: Emit,
    reference: Reference,
    parameters: Parameters,
    values: Values,
    outputs: Mapping[str, torch.Tensor],
) -> Mapping[str, torch.Tensor] | None:
    """The truth of these outputs, flat, in float64; None, with a note, where the reference gives no such outputs.

    It returns a tensor, several in the order of the outputs, or a dict; for an input that the function writes to, the
    input's name or its place after what is returned.
    """
    try:
        returned = reference(**reference_arguments(parameters, values, wide=True))
    except Exception as error:  # a user's module may do anything
        emit({"event": "note", "text": f"the reference failed: {type(error).__name__}: {str(error)[:200]}"})
        return None
    names = list(outputs)
    listed = [returned] if isinstance(returned, torch.Tensor) else returned
    if isinstance(listed, Mapping):
        listed = [listed.get(name) for name in names] if set(names) <= set(listed) else list(listed.values())
    if not isinstance(listed, (list, tuple)) or len(listed) != len(names):
        emit({"event": "note", "text": f"the reference does not give {len(names)} tensors"})
        return None
    truth = {name: tensor.reshape(-1) for name, tensor in zip(names, listed, strict=True)}
    if wrong := next((name for name in names if truth[name].numel() != outputs[name].numel()), None):
        emit({"event": "note", "text": f"the reference gives {wrong.removeprefix('its ')} another size"})
        return None
    return truth


def error_of(outputs: Mapping[str, torch.Tensor], truth: Mapping[str, torch.Tensor]) -> float:
    """The largest distance of an output from the truth."""
    return max((largest_gap(outputs[name], tensor) for name, tensor in truth.items()), default=0.0)
