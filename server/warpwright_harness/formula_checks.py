"""Launch functions written from formulas, each run at several sizes beside the formula's evaluation by torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from warpwright_harness.events import Emit
from warpwright_harness.formula_agreement import agreement
from warpwright_harness.formula_calls import launcher
from warpwright_harness.formula_memory import Memory, drawn, from_memory, number, to_memory
from warpwright_harness.formula_reference import EvaluationError, evaluate
from warpwright_harness.formula_types import held
from warpwright_harness.gpu_lock import gpu_shared
from warpwright_harness.libraries import Library

FILLS = (0x7F, 0x81)
"""What outputs hold before the first run and before the second: elements that hold both afterwards were not written."""
DEVICE = "cuda"


def check_formulas(request: Mapping[str, Any], emit: Emit, waiting: Callable[[], None]) -> None:
    """Emit "formula-case" for each case of each of the request's `formulas`, with the place of both, what is `wrong`
    ("" where nothing is) and how many elements are `unjudged`; "skipped" where no inputs are legal. A formula's further
    cases are left out behind one that is wrong.

    `verify/formula_gpu` says what a formula and a case are.
    """
    library = Library(request["library"])
    for place, formula in enumerate(request["formulas"]):
        with gpu_shared(request["lock"], waiting):
            for which, case in enumerate(formula["cases"]):
                emit({"event": "begin", "phase": "check", "case": which, "side": "candidate", "formula": place})
                found = {"event": "formula-case", "formula": place, "case": which}
                try:
                    wrong, unjudged = _checked(library, formula, case)
                except EvaluationError as error:
                    emit({**found, "skipped": str(error)})
                    continue
                emit({**found, "wrong": wrong, "unjudged": unjudged})
                if wrong:
                    break


def _checked(library: Library, formula: Mapping[str, Any], case: Mapping[str, Any]) -> tuple[str, int]:
    """What is wrong at one case, and how many elements are unjudged. Raises EvaluationError."""
    torch.manual_seed(case["seed"])
    tensors = case["tensors"]
    values = {
        each["name"]: drawn(case["draws"][each["name"]], each["shape"], each["type"], case["style"], DEVICE)
        for each in tensors
        if each["role"] != "out"
    }
    numbers = {name: number(case["draws"][name], kind) for name, kind in formula["document"]["scalars"].items()}
    expected = evaluate(formula["document"], values, numbers, case["sizes"])
    runs: list[list[Memory]] = []
    for fill in FILLS:
        arrays = [Memory(each["count"], each["type"], fill, DEVICE) for each in case["arrays"]]
        for each in tensors:
            if each["name"] in values:
                _view(arrays, each).copy_(to_memory(values[each["name"]], each["type"]))
        before = [each.bytes().clone() for each in arrays]
        error = _launched(library, formula, case, arrays, numbers)
        if error:
            return f"the launch function returns the CUDA error {error}", 0
        for known, array, old in zip(case["arrays"], arrays, before, strict=True):
            if not array.is_guarded():
                return f"it writes beside the array {known['name']}", 0
            if known["role"] == "in" and not torch.equal(array.bytes(), old):
                return f"the input {known['name']} was changed", 0
        runs.append(arrays)
    unjudged = 0
    for each in tensors:
        if each["role"] == "in":
            continue
        first, second = (_view(arrays, each) for arrays in runs)
        if each["role"] == "out" and (missed := _unwritten(first, second)):
            return f"{missed} of {first.numel()} elements of {each['name']} are not written", 0
        got = held(from_memory(first, each["type"]), each["type"])
        found = agreement(got, expected[each["name"]], expected[f"error of {each['name']}"], each["type"])
        if found.wrong:
            where = f"{each['name']}[{', '.join(map(str, found.place))}]" if found.place else each["name"]
            more = f", and {found.wrong - 1} more of {got.numel()} differ" if found.wrong > 1 else ""
            return f"{where} is {found.got}, and the reference {found.expected} +- {found.tolerance:.2g}{more}", 0
        unjudged += found.unjudged
    return "", unjudged


def _view(arrays: list[Memory], tensor: Mapping[str, Any]) -> torch.Tensor:
    found: torch.Tensor = arrays[tensor["array"]].tensor(tensor["shape"], tensor["strides"], tensor["offset"])
    return found


def _unwritten(first: torch.Tensor, second: torch.Tensor) -> int:
    """How many elements hold in both runs what they held before."""
    if not first.numel():
        return 0
    one, other = (_rows_of_bytes(each) for each in (first, second))
    return int(((one == FILLS[0]).all(1) & (other == FILLS[1]).all(1)).sum())


def _rows_of_bytes(values: torch.Tensor) -> torch.Tensor:
    """The bytes of each element."""
    packed = torch.empty(values.numel(), dtype=values.dtype, device=values.device)
    return packed.copy_(values.reshape(-1)).view(torch.uint8).reshape(values.numel(), -1)


def _launched(
    library: Library,
    formula: Mapping[str, Any],
    case: Mapping[str, Any],
    arrays: list[Memory],
    numbers: Mapping[str, Any],
) -> int:
    """Runs the launch function and waits; the CUDA error that it gives."""
    launch = launcher(
        library,
        formula["name"],
        [each.address for each in arrays],
        case["lengths"],
        [(kind, numbers[name]) for name, kind in formula["scalars"]],
        has_workspace=formula["has_workspace"],
    )
    error = launch()
    torch.cuda.synchronize()
    return error
