"""The operator that was named, and its arguments: from a module or a file, which is imported."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from warpwright_harness.exported import TYPES
from warpwright_harness.torch_check.seen import TORCHS_OWN
from warpwright_harness.torch_check.subject import Subject, first_line

_INPUT = re.compile(r"(\w+)\[([\d\s,]*)\]")
_NUMBER = re.compile(r"-?\d+")


class NoTargetError(Exception):
    """What cannot be called: one sentence."""


def subject_of(request: Mapping[str, Any]) -> tuple[Subject, dict[str, Any], tuple[str, ...]]:
    """The operator of a request with its arguments, the names of its module, and the kernels that the user named.
    Raises NoTargetError."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    known = _operators()
    names = _imported(request["module"], request.get("folder", "."))
    registered = tuple(sorted(_operators() - known))
    call = found(names, request["operator"], request["module"])
    reference = found(names, request["reference"], request["module"]) if request.get("reference") else None
    args = _arguments(names, request, device)
    if isinstance(call, torch.nn.Module):
        call = call.to(device)
    subject = Subject(call, args, device, reference=reference, registered=registered)
    subject.backward_kernels = tuple(request.get("backward") or ())
    return subject, names, tuple(request.get("kernels") or ())


def found(names: Mapping[str, Any], name: str, module: str) -> Callable[..., Any]:
    """The function of that name; a dotted one is looked up in turn, and torch.ops.a.b where the module has none."""
    value: Any = names.get(name.split(".", maxsplit=1)[0])
    try:
        for part in name.split(".")[1:] if value is not None else name.replace("::", ".").split("."):
            value = getattr(torch.ops if value is None else value, part)
    except (AttributeError, RuntimeError):
        value = None
    if isinstance(value, type) and issubclass(value, torch.nn.Module):
        value = value(*names.get("get_init_inputs", list)())
    if not callable(value):
        raise NoTargetError(f"Nothing that can be called has the name {name} in {module}.")
    made: Callable[..., Any] = value
    return made


def _operators() -> set[str]:
    names = {str(each).split(".")[0] for each in torch._C._dispatch_get_all_op_names()}
    return {each for each in names if each.split("::")[0] not in TORCHS_OWN}


def _imported(module: str, folder: str) -> dict[str, Any]:
    try:
        if module.endswith(".py") or Path(module).is_file():
            path = Path(module).resolve()
            if not path.is_file():
                raise NoTargetError(f"There is no file {module}.")
            sys.path.insert(0, str(path.parent))
            spec = importlib.util.spec_from_file_location(path.stem, path)
            if spec is None or spec.loader is None:
                raise NoTargetError(f"{path.name} is no Python file.")
            made = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = made
            spec.loader.exec_module(made)
            return vars(made)
        sys.path.insert(0, folder)
        return vars(importlib.import_module(module))
    except NoTargetError:
        raise
    except ModuleNotFoundError as error:
        raise NoTargetError(f"{module} cannot be imported: there is no module {error.name}.") from None
    except (Exception, SystemExit) as error:
        raise NoTargetError(f"{module} cannot be imported: {_build_error(error) or first_line(error)}") from None


def _build_error(error: BaseException) -> str:
    """The compiler's first error, where an extension does not build."""
    if "building extension" not in str(error):
        return ""
    lines = [each.strip() for each in str(error).splitlines()]
    said = next((each for each in lines if re.search(r"\berror\b[: ]", each)), lines[0])
    return f"its extension does not build: {said[:200]}"


def _arguments(names: Mapping[str, Any], request: Mapping[str, Any], device: str) -> tuple[Any, ...]:
    given: Sequence[str] = request.get("inputs") or ()
    if given:
        torch.manual_seed(0)
        return tuple(_example(each, device) for each in given)
    name = request.get("arguments") or "get_inputs"
    maker = names.get(name)
    if not callable(maker):
        raise NoTargetError(
            f"Nothing says with which arguments: define {name}() in {request['module']}, which gives them, or give "
            "each with --input, as f32[64,128]."
        )
    try:
        torch.manual_seed(0)
        made = maker()
        made = made if isinstance(made, list | tuple) else (made,)
        return tuple(torch.utils._pytree.tree_map_only(torch.Tensor, lambda each: each.to(device), tuple(made)))
    except Exception as error:
        raise NoTargetError(f"{name}() fails: {first_line(error)}") from None


def _example(text: str, device: str) -> Any:
    """`f32[64,128]` as a tensor, `3`, `0.5` and `true` as themselves."""
    match = _INPUT.fullmatch(text.strip())
    kind = next((key for key, own in TYPES.items() if match and match[1] in (own, str(key).split(".")[1])), None)
    if match is not None and kind is not None:
        extents = [int(each) for each in match[2].split(",") if each.strip()]
        if kind.is_floating_point or kind.is_complex:
            return torch.randn(extents, device=device, dtype=kind if kind.itemsize > 1 else None).to(kind)
        return torch.randint(0, 2 if kind == torch.bool else 8, extents, device=device).to(kind)
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text) if _NUMBER.fullmatch(text) else float(text)
    except ValueError:
        raise NoTargetError(f"'{text}' is no argument: write f32[64,128], or a number.") from None
