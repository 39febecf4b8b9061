"""`python -m warpwright_harness.exported FILE NAME`: a function or a module of a Python file as a graph of ATen's
operators, one JSON object on the standard output. What the file itself prints goes to the standard error.

The file is run, so this happens only where a user asks for it. Tensors have shapes and no contents while it does:
parameters of any size cost nothing. Example inputs are what `get_inputs()` of the file returns, or those of `--input
'f32[64, 128]'`, once for each; a class is made with what `get_init_inputs()` returns.
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import json
import math
import os
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

KEPT = (
    "aten::scaled_dot_product_attention", "aten::logsumexp", "aten::softplus", "aten::mish", "aten::silu",
    "aten::hardswish",    "aten::hardsigmoid", "aten::linear",
)  # fmt: skip
"""Operators that say more than what they decompose into."""
TYPES = {
    torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.int8: "i8",
    torch.int16: "i16", torch.int32: "i32", torch.int64: "i64", torch.uint8: "u8", torch.bool: "bool", torch.complex64:
    "c64", torch.complex128: "c128", torch.float8_e4m3fn: "f8e4m3", torch.float8_e5m2: "f8e5m2",
}  # fmt: skip
_INPUT = re.compile(r"\s*(\w+)\s*\[([\d\s,]*)\]\s*")


class NotExportedError(Exception):
    """What cannot become a graph: one sentence."""


class _Called(torch.nn.Module):  # type: ignore[misc] # torch is not typed here
    """A function without a signature, such as one of torch's own: its inputs have no names."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def called(function: Callable[..., Any]) -> torch.nn.Module:
    """A function as a module, whose inputs are named like its parameters."""
    try:
        inspect.signature(function)
    except (TypeError, ValueError):
        return _Called(function)
    made = torch.nn.Module()
    made.forward = function
    return made


def main() -> int:
    parser = argparse.ArgumentParser(prog="warpwright_harness.exported", description=(__doc__ or "").split(":")[0])
    parser.add_argument("file")
    parser.add_argument("name")
    parser.add_argument("--input", action="append", default=[], help="an example input, as f32[64, 128]")
    parser.add_argument("--sizes", choices=("fixed", "run-time"), default="fixed")
    arguments = parser.parse_args()
    answer = os.dup(1)
    os.dup2(2, 1)
    try:
        text = json.dumps(graph_of(arguments.file, arguments.name, arguments.input, arguments.sizes == "run-time"))
    except NotExportedError as error:
        text = json.dumps({"error": str(error)})
    with os.fdopen(answer, "w", encoding="utf-8") as sink:
        sink.write(text + "\n")
    return 0


def graph_of(file: str, name: str, inputs: Sequence[str] = (), run_time_sizes: bool = False) -> dict[str, Any]:
    """The graph of a function or a module of a file. Raises NotExportedError."""
    where = f"{Path(file).name}::{name}"
    try:
        with FakeTensorMode(allow_non_fake_inputs=True):
            found, args = _made(_loaded(file), name, inputs, where)
    except NotExportedError:
        raise
    except Exception:
        try:
            found, args = _made(_loaded(file), name, inputs, where)
        except NotExportedError:
            raise
        except Exception as error:
            raise NotExportedError(f"{where} cannot be made: {_said(error)}") from None
    return document(exported(found, args, where, run_time_sizes))


def exported(module: torch.nn.Module, args: tuple[Any, ...], where: str, run_time_sizes: bool = False) -> Any:
    """The module as an ExportedProgram of core ATen's operators. Raises NotExportedError."""
    shapes: Any = None
    if run_time_sizes:
        auto = torch.export.Dim.AUTO
        shapes = tuple(dict.fromkeys(range(x.dim()), auto) if isinstance(x, torch.Tensor) else None for x in args)
        if isinstance(module, _Called):
            shapes = (shapes,)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.export.export(module, args, dynamic_shapes=shapes, strict=False)
            table = torch.export.default_decompositions()
            for each in [op for op in table if op.name().split(".")[0] in KEPT]:
                del table[each]
            return program.run_decompositions(table)
    except Exception as error:
        raise NotExportedError(f"torch.export does not take {where}: {_said(error)}") from None


def document(program: Any) -> dict[str, Any]:
    """An ExportedProgram as JSON: `inputs`, `nodes` in order, `outputs`, `sizes`.

    An argument that is a value is {"value": name}, an extent that is known at run time {"size": expression}, a type
    {"type": name}, a complex number {"complex": [re, im]}; whole numbers, floating-point numbers, truth values
    and lists are themselves.
    """
    signature = program.graph_signature
    kinds = {each.arg.name: each for each in signature.input_specs}
    inputs: list[dict[str, Any]] = []
    nodes: list[dict[str, Any]] = []
    outputs: list[dict[str, Any]] = []
    for node in program.graph.nodes:
        if node.op == "placeholder":
            inputs.append(_input(program, node, kinds[node.name]))
        elif node.op == "call_function" and not _is_size(node) and "_assert_" not in str(node.target):
            nodes.append(
                {
                    "name": node.name,
                    "operator": _operator(node.target),
                    "args": [_argument(each) for each in node.args],
                    "kwargs": {key: _argument(each) for key, each in node.kwargs.items()},
                    "many": isinstance(node.meta.get("val"), tuple | list),
                    "results": [_tensor(each) for each in _values(node.meta.get("val"))],
                }
            )
        elif node.op == "output":
            for spec, arg in zip(signature.output_specs, node.args[0], strict=True):
                kind = spec.kind.name.lower()
                outputs.append({"kind": kind, "target": spec.target or "", "value": _argument(arg)})
    sizes = sorted(map(str, program.range_constraints))
    return {"inputs": inputs, "nodes": nodes, "outputs": outputs, "sizes": sizes}


def _loaded(file: str) -> dict[str, Any]:
    path = Path(file)
    if not path.is_file():
        raise NotExportedError(f"There is no file {file}.")
    sys.path.insert(0, str(path.resolve().parent))
    spec = importlib.util.spec_from_file_location("exported_file", path)
    if spec is None or spec.loader is None:
        raise NotExportedError(f"{path.name} is no Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise NotExportedError(f"{path.name} does not run: {_said(error)}") from None
    return vars(module)


def _made(
    names: dict[str, Any], name: str, inputs: Sequence[str], where: str
) -> tuple[torch.nn.Module, tuple[Any, ...]]:
    if name not in names:
        raise NotExportedError(f"Nothing is called {name} in {where.split('::', maxsplit=1)[0]}.")
    found = names[name]
    if isinstance(found, type) and issubclass(found, torch.nn.Module):
        found = found(*names.get("get_init_inputs", list)())
    if not callable(found):
        raise NotExportedError(f"{where} is no function and no module.")
    if not isinstance(found, torch.nn.Module):
        found = called(found)
    if not inputs and "get_inputs" not in names:
        raise NotExportedError(
            f"{where} has no example inputs: define get_inputs() in the file, or give their shapes, as f32[64, 128]."
        )
    args = [_example(each) for each in inputs] if inputs else names["get_inputs"]()
    return found, apart(args)


def apart(args: Sequence[Any]) -> tuple[Any, ...]:
    """Inputs of which none is the same tensor as another: an export would take both for one."""
    found: dict[int, Any] = {}
    for number, each in enumerate(args):
        is_again = isinstance(each, torch.Tensor) and any(each is other for other in found.values())
        found[number] = each.clone() if is_again else each
    return tuple(found.values())


def _example(text: str) -> torch.Tensor:
    match = _INPUT.fullmatch(text)
    kind = next((key for key, own in TYPES.items() if match and own == match[1]), None)
    if match is None or kind is None:
        raise NotExportedError(f"'{text}' is no example input: write a type and extents, as f32[64, 128].")
    extents = [int(each) for each in match[2].split(",") if each.strip()]
    return torch.zeros(extents, dtype=kind)


def _input(program: Any, node: Any, spec: Any) -> dict[str, Any]:
    found = node.meta.get("val")
    made = {"name": node.name, "kind": spec.kind.name.lower(), "target": spec.target or ""}
    if not isinstance(found, torch.Tensor):
        return made | {"number": _argument(found)}
    constant = program.constants.get(spec.target) if made["kind"] == "constant_tensor" else None
    if isinstance(constant, torch.Tensor) and constant.numel() == 1 and type(constant) is torch.Tensor:
        number = constant.item()
        made |= {} if isinstance(number, complex) else {"number": _argument(number)}
    return made | _tensor(found)


def _tensor(found: Any) -> dict[str, Any]:
    if not isinstance(found, torch.Tensor):
        return {"number": _argument(found)}
    return {
        "shape": [_argument(each) for each in found.shape],
        "strides": [_argument(each) for each in found.stride()],
        "type": TYPES.get(found.dtype, str(found.dtype)),
    }


def _values(found: Any) -> Sequence[Any]:
    return found if isinstance(found, tuple | list) else (found,)


def _is_size(node: Any) -> bool:
    """Whether it computes an extent, which its readers have as an expression."""
    return isinstance(node.meta.get("val"), torch.SymInt | torch.SymBool | torch.SymFloat | int | float | bool)


def _operator(target: Any) -> str:
    return str(target) if isinstance(target, torch._ops.OpOverload) else getattr(target, "__name__", str(target))


def _argument(each: Any) -> Any:
    if isinstance(each, torch.fx.Node):
        return _argument(each.meta["val"]) if _is_size(each) else {"value": each.name}
    if isinstance(each, torch.SymInt):
        return {"size": str(each.node.expr)}
    if isinstance(each, float) and not math.isfinite(each):
        return {"float": repr(each)}
    if isinstance(each, complex):
        return {"complex": [each.real, each.imag]}
    if each is None or isinstance(each, bool | int | float | str):
        return each
    if isinstance(each, list | tuple):
        return [_argument(one) for one in each]
    if isinstance(each, torch.dtype):
        return {"type": TYPES.get(each, str(each))}
    return {"other": str(each)}


def _said(error: Exception) -> str:
    """An error's first line, as the end of a sentence."""
    line = next((each.strip() for each in str(error).splitlines() if each.strip()), type(error).__name__)
    return line if line.endswith(".") else f"{line}."


if __name__ == "__main__":
    sys.exit(main())
