"""Whether a function of an extension writes to a tensor that it is given."""

from __future__ import annotations

import re

from warpwright.cuda.extension.unit import Function, Unit
from warpwright.syntax.nodes import uncommented

HARMLESS = ("requires_grad_", "retain_grad_", "share_memory_", "_")
"""Methods that end in _ and change no value."""


def writes(unit: Unit, function: Function, name: str, depth: int = 3) -> bool:
    """Whether the function writes to a tensor, by itself or by a function or kernel that it hands it to."""
    if not name or re.search(rf"\b{name}\s*=[^=]", function.code):
        return False
    methods = re.findall(rf"\b{name}\s*\.\s*(\w*[a-z0-9]_|mutable_data_ptr)\s*[(<]", function.code)
    if any(method not in HARMLESS for method in methods):
        return True
    aliases = re.findall(rf"\b(\w+)\s*=\s*(?:[\w:<>*\s]+\()?{name}\s*\.\s*data_ptr\b", function.code)
    for call in function.calls:
        called_one = unit.called(call, function.source)
        if called_one is None or not depth:
            continue
        for at, argument in enumerate(uncommented(call.child_by_field_name("arguments"))):
            text = function.source.node_code(argument)
            if at >= len(called_one.parameters):
                break
            handed = re.search(rf"\b{name}\s*\.\s*data_ptr\b", text) or text in aliases
            if handed and _stores(called_one, called_one.parameters[at][0]):
                return True
            if text == name and writes(unit, called_one, called_one.parameters[at][0], depth - 1):
                return True
    return False


def _stores(kernel: Function, pointer: str) -> bool:
    """Whether a kernel stores to a pointer parameter."""
    kind = dict(kernel.parameters).get(pointer, "")
    stores = rf"\b{pointer}\s*\[[^;=]*\]\s*[-+*/]?=[^=]|\*\s*{pointer}\s*=[^=]|\batomic\w+\(\s*&?\s*{pointer}\b"
    return bool(pointer) and "*" in kind and "const" not in kind and re.search(stores, kernel.code) is not None
