"""Kernels of the formulas that a model answered rightly to the prompts by hand, timed on a GPU beside torch.compile of
each prompt's own reference.

    PYTHONPATH=server:model python benchmarks/prompt_speed.py benchmarks/results/model_eval_taught_kept.json --out DIR

Sizes are equal for all dimensions that a prompt leaves open: the largest at which no array has more than 16 million
elements and the formula no more than 4 thousand million operations. Inputs are drawn as the evaluation draws them, in
the types that the prompt names. Each process takes a share of the prompts; one process times at a time.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from formula_speed import KINDS, built, function_of
from formula_timer import Timer
from hardware import gpu_run, reported
from warpwright.formulas.extents import at_sizes
from warpwright.formulas.shapes import operations
from warpwright.writer.write import file_text, written
from warpwright_upskill.evaluation.judge import Answer, Bound, Case, bound_to, right_answer
from warpwright_upskill.evaluation.prompt_inputs import value_at, values_of
from warpwright_upskill.evaluation.references import Result
from warpwright_upskill.evaluation.references import function_of as reference_function
from warpwright_upskill.prompts import Prompt, read_prompts

MOST_ELEMENTS, MOST_OPERATIONS = 1 << 24, 4e9
SCALES = (1 << 24, 1 << 22, 1 << 20, 1 << 16, 4096, 2048, 1024, 512, 256, 128, 64, 32, 16, 8)
NEAR = 1.03
"""Times as long as torch.compile that still counts as at least as fast: two timings of one kernel differ by it."""
SECONDS = 40
"""For one prompt: a reference that loops over a large size is left out."""
CLOSE = 2e-2
"""Relative error (norm) beside the reference in float64: what rounding to the narrowest type leaves."""


def answers_of(path: Path) -> dict[str, str]:
    """The right answers that a report of `warpwright model eval` holds, by the prompts' ids."""
    report = json.loads(path.read_text(encoding="utf-8"))
    (rows,) = report["answers"].values()
    return {each["id"]: each["text"] for each in rows if each["kind"] == "right"}


def large_case(prompt: Prompt, answer: Answer) -> tuple[Case, Bound] | None:
    """The inputs of a prompt at the largest sizes that are timed; None where no size fits."""
    fixed = {name: max(values) for name, values in (prompt.sizes or {}).items()}
    names = list(dict.fromkeys(name for each in prompt.inputs for name in each.symbols))
    for scale in SCALES:
        sizes = {name: fixed.get(name, scale) for name in names}
        extents = [[int(value_at(part, sizes)) for part in each.extents or ()] for each in prompt.inputs]
        if max((int(np.prod(each, dtype=object)) for each in extents), default=1) > MOST_ELEMENTS:
            continue
        shaped = Case(sizes, values_of(prompt.inputs, sizes, 0), ())
        try:
            results = reference_of(prompt)(*on_gpu(prompt, shaped.values, wide=True).values())
        except torch.OutOfMemoryError:
            continue
        case = Case(sizes, shaped.values, tuple(Result(_shape_only(each), "") for each in results))
        bound = bound_to(answer.formula, answer.assignment, case)
        outputs = [each for each in answer.formula.tensors.values() if each.role != "in"]
        if not isinstance(bound, Bound) or operations(answer.formula, bound.sizes) > MOST_OPERATIONS:
            continue
        if all(
            np.prod([at_sizes(part, bound.sizes) for part in each.extents]) <= 4 * MOST_ELEMENTS for each in outputs
        ):
            return case, bound
    return None


def _shape_only(result: torch.Tensor) -> Any:
    return np.broadcast_to(np.float32(0), tuple(result.shape))


def reference_of(prompt: Prompt) -> Callable[..., tuple[torch.Tensor, ...]]:
    """The prompt's reference, of tensors and Python numbers."""
    function = reference_function(prompt.reference)

    def call(*given: Any) -> tuple[torch.Tensor, ...]:
        found = function(*given)
        several = found if isinstance(found, tuple | list) else (found,)
        return tuple(torch.as_tensor(each).contiguous() for each in several)

    return call


def on_gpu(prompt: Prompt, values: Mapping[str, Any], *, wide: bool) -> dict[str, Any]:
    """The reference's inputs: arrays in their own types, or floating point in float64; numbers as Python has them."""
    found: dict[str, Any] = {}
    for each in prompt.inputs:
        value = values[each.name]
        if each.extents is None:
            found[each.name] = value.item()
            continue
        made = torch.from_numpy(np.ascontiguousarray(value)).cuda()
        found[each.name] = (
            made.double() if wide and each.kind.is_float else made.to(KINDS.get(each.kind.name, made.dtype))
        )
    return found


def timed(prompt: Prompt, answer: Answer, folder: Path, lock: Path, timer: Timer) -> dict[str, Any]:
    """One prompt: our kernel's time, torch.compile's and eager's, and our error."""
    large = large_case(prompt, answer)
    if large is None:
        return {"left_out": "no size fits"}
    case, bound = large
    formula = answer.formula
    name = f"p_{prompt.id.replace('-', '_')}"
    code = written(formula, name)
    library, _ = built(name, file_text(code), folder)
    arrays, outputs = [], {}
    for tensor in formula.tensors.values():
        kind = KINDS[tensor.type]
        if tensor.role == "out":
            made = torch.empty([at_sizes(each, bound.sizes) for each in tensor.extents], dtype=kind, device="cuda")
        else:
            made = torch.from_numpy(np.ascontiguousarray(bound.arrays[tensor.name])).cuda().to(kind)
        arrays.append(made)
        if tensor.role != "in":
            outputs[tensor.name] = made
    numbers = [bound.numbers[each] for each in formula.scalars]
    sizes = [bound.sizes[each] for each in formula.sizes]
    call = function_of(code, library)
    call(arrays, numbers, sizes)
    reference, given = reference_of(prompt), on_gpu(prompt, case.values, wide=False)
    exact = reference(*on_gpu(prompt, case.values, wide=True).values())
    own = [outputs[each.name].clone() for each in formula.outputs]
    row: dict[str, Any] = {"sizes": dict(case.sizes), "error": error_of(own, exact)}
    compiled = torch.compile(reference, dynamic=False)
    compiled(*given.values())
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        row["ours_us"] = timer(lambda: call(arrays, numbers, sizes))
        row["compile_us"] = timer(lambda: compiled(*given.values()))
        row["eager_us"] = timer(lambda: reference(*given.values()))
    return row


def error_of(own: Sequence[torch.Tensor], exact: Sequence[torch.Tensor]) -> float:
    """The largest relative error (norm) of an output, in whatever order the outputs are; infinite where none fits."""
    worst = 0.0
    for right in exact:
        same = [each for each in own if each.numel() == right.numel()]
        errors = [_error(each.double().flatten(), right.double().flatten()) for each in same]
        worst = max(worst, min(errors, default=float("inf")))
    return worst


def _error(one: torch.Tensor, other: torch.Tensor) -> float:
    equal = (one == other) | (one.isnan() & other.isnan())
    far = torch.where(equal, 0.0, one - other).norm().item()
    if math.isnan(far):
        return math.inf
    return far / max(other[other.isfinite()].norm().item(), 1e-30) if far else 0.0


def share(options: argparse.Namespace) -> None:
    """Time one share of the prompts; its rows lie in the folder after each prompt, as a compilation may never end."""
    signal.signal(signal.SIGALRM, _late)
    torch.set_default_device("cuda")
    torch.backends.cuda.matmul.allow_tf32 = False
    texts, timer, begun = answers_of(options.answers), Timer(30), time.monotonic()
    chosen = [each for each in read_prompts(options.prompts) if each.id in texts]
    rows = []
    for prompt in chosen[options.share :: options.processes]:
        if time.monotonic() - begun > options.seconds:
            break
        torch._dynamo.reset()
        with torch.device("cpu"):
            answer = right_answer(prompt, texts[prompt.id])
        row: dict[str, Any] = {"id": prompt.id, "family": prompt.family, "text": texts[prompt.id]}
        signal.alarm(SECONDS)
        try:
            if not isinstance(answer, Answer):
                raise ValueError(answer.reason)
            row |= timed(prompt, answer, options.out, options.out / "timing.lock", timer)
        except Exception as error:
            row["left_out"] = f"{type(error).__name__}: {str(error)[:200]}"
        finally:
            signal.alarm(0)
        rows.append(row)
        (options.out / f"rows_{options.share}.json").write_text(json.dumps(rows), encoding="utf-8")
        if "CUDA error" in row.get("left_out", ""):
            break  # nothing runs in this process any more


def _late(*_: object) -> None:
    raise TimeoutError(f"not done within {SECONDS} s")


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    right = [each for each in rows if each.get("error", 1.0) < CLOSE and "ours_us" in each]
    ratios = sorted(each["compile_us"] / each["ours_us"] for each in right)
    return {
        "answered_right": len(rows),
        "timed": len(right),
        "at_least_as_fast": sum(each * NEAR >= 1 for each in ratios),
        "median_over_compile": round(ratios[len(ratios) // 2], 2) if ratios else None,
        "wrong_at_large_sizes": [each["id"] for each in rows if each.get("error", 0.0) >= CLOSE],
        "left_out": sum("left_out" in each for each in rows),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("answers", type=Path, help="a report of `warpwright model eval` with one system's answers")
    parser.add_argument("--prompts", type=Path, default=Path("model/prompts"))
    parser.add_argument("--out", type=Path, required=True, help="folder for prompt_speed.json")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=240, help="begin no further prompt after this")
    parser.add_argument("--share", type=int, help="time one share of the prompts")
    options = parser.parse_args()
    if options.share is not None:
        share(options)
        return
    until = time.monotonic() + options.seconds + 2 * SECONDS
    with tempfile.TemporaryDirectory() as folder:
        running = []
        for number in range(options.processes):
            command = [sys.executable, __file__, str(options.answers), "--prompts", str(options.prompts)]
            command += ["--out", folder, "--processes", str(options.processes), "--seconds", str(options.seconds)]
            own = {"TORCHINDUCTOR_CACHE_DIR": f"{folder}/cache{number}", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
            running.append(subprocess.Popen([*command, "--share", str(number)], env={**os.environ, **own}))
        for each in running:
            try:
                each.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                each.kill()
        rows = [row for path in Path(folder).glob("rows_*.json") for row in json.loads(path.read_text())]
    reported(
        {**gpu_run(), "summary": summary(rows), "rows": sorted(rows, key=lambda each: each["id"])},
        options.out / "prompt_speed.json",
    )
    print(json.dumps(summary(rows), indent=2))


if __name__ == "__main__":
    main()
