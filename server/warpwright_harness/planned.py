"""Runs a plan (`warpwright.formulas.aten.plan.document`) on torch's tensors: each formula by a function that is handed
over, each other part by torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from warpwright_harness.exported import TYPES

Evaluate = Callable[[Mapping[str, Any], Mapping[str, torch.Tensor]], Mapping[str, torch.Tensor]]
"""What a formula's part computes of its arrays, by their names in the formula and in its extents."""
_DTYPES = {name: kind for kind, name in TYPES.items()}


@dataclass(frozen=True, slots=True)
class _Values:
    """Arrays and sizes by name. No function in here holds itself, so that what is no longer read is freed at once."""

    arrays: dict[str, torch.Tensor]
    sizes: dict[str, int]

    def shaped(self, array: str, extents: Sequence[str]) -> torch.Tensor:
        return self.arrays[array].reshape([self.number(each) for each in extents])

    def number(self, extent: str) -> int:
        return int(extent) if extent.isdigit() else int(eval(extent, {}, self.sizes))

    def argument(self, each: Any) -> Any:
        if isinstance(each, list):
            return [self.argument(one) for one in each]
        if isinstance(each, dict):
            if "size" in each:
                return self.number(each["size"])
            if "complex" in each:
                return complex(*each["complex"])
            moved = self.shaped(each["value"], each["extents"]).permute(each["order"])
            return moved.reshape([self.number(one) for one in each["shape"]])
        return each


def run(
    plan: Mapping[str, Any], state: Mapping[str, torch.Tensor], inputs: Sequence[Any], evaluate: Evaluate
) -> tuple[list[torch.Tensor], dict[str, torch.Tensor]]:
    """The results in order, and new values of buffers by name. `state` are the module's parameters, buffers and
    constants by name; `inputs` its arguments, of which those that are tensors count."""
    tensors = iter([each for each in inputs if isinstance(each, torch.Tensor)])
    arrays: dict[str, torch.Tensor] = {}
    sizes: dict[str, int] = {}
    for each in plan["inputs"]:
        found = next(tensors) if each["kind"] == "user_input" else state[each["target"]]
        arrays[each["name"]] = found.detach()
        for extent, count in zip(each["extents"], found.shape, strict=True):
            if extent.isidentifier():
                sizes[extent] = count

    values = _Values(arrays, sizes)
    for part in plan["parts"]:
        if "formula" in part:
            reads = {each["name"]: values.shaped(each["array"], each["extents"]) for each in part["reads"]}
            made = evaluate(part, reads)
            for each in part["writes"]:
                arrays[each["array"]] = made[each["name"]]
            continue
        kwargs = {key: values.argument(value) for key, value in part["kwargs"].items()}
        if isinstance(kwargs.get("dtype"), str):
            kwargs["dtype"] = _DTYPES[kwargs["dtype"]]
        results = _operator(part["operator"])(*values.argument(part["args"]), **kwargs)
        several = results if isinstance(results, tuple | list) else (results,)
        arrays.update(zip(part["writes"], (_packed(each) for each in several), strict=True))
    results = [
        values.shaped(each["array"], each["extents"]) for each in plan["results"] if each["kind"] == "user_output"
    ]
    mutated = {
        each["target"]: values.shaped(each["array"], each["extents"])
        for each in plan["results"]
        if each["kind"] != "user_output"
    }
    return results, mutated


def _packed(each: Any) -> Any:
    return each.contiguous() if isinstance(each, torch.Tensor) else each


def _operator(name: str) -> Callable[..., Any]:
    found: Any = torch.ops
    for each in name.split("."):
        found = getattr(found, each)
    return found  # type: ignore[no-any-return]
