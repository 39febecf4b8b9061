"""Kernels written from formulas on a GPU: built, checked against torch in float64, and timed beside torch,
torch.compile and a copy of the same bytes.

    PYTHONPATH=server python benchmarks/formula_speed.py --out speed.json            # every schedule, one process
    PYTHONPATH=server python benchmarks/formula_speed.py --default --processes 3     # what a user gets

Times are medians of 50 CUDA events. Before each call the L2 cache is flushed by reading 256 MiB: lines that are left
dirty would be written back at the kernel's expense. torch.compile's figure is the best of `--processes` processes, as
it varies between them.
"""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from formula_catalogue import Entry, catalogue
from formula_page import figures, slower_than_plain
from formula_timer import Timer
from hardware import gpu_run
from torch.nn import functional
from warpwright.formulas.extents import at_sizes
from warpwright.formulas.inputs import Draw, draws_of
from warpwright.formulas.model import Formula
from warpwright.formulas.resolve import formula_of
from warpwright.formulas.shapes import bytes_of, operations
from warpwright.formulas.types import TYPES, computed
from warpwright.schedules.model import Schedule
from warpwright.writer.code import Code
from warpwright.writer.write import ScheduleError, alternatives, file_text, plain, written

KINDS = {
    "f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i8": torch.int8,
    "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8, "bool": torch.bool,
    "f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2,
}  # fmt: skip
LIMITS = {"f64": 1e-12, "f32": 1e-5, "f16": 1e-3, "bf16": 8e-3, "f8e4m3": 6e-2, "f8e5m2": 1.2e-1}
"""Relative errors (norm) that no right result exceeds: rounding of the stored type, sums in f32."""

MOST_PLAIN_US = 50_000.0
SHARES = 5
"""How many processes share the cases while torch compiles them."""

CASES: tuple[tuple[str, str, Mapping[str, int]], ...] = (
    # The cases of the first measurements.
    ("softmax", "f32", {"R": 8192, "C": 1024}),
    ("softmax", "f32", {"R": 131072, "C": 64}),
    ("softmax", "f32", {"R": 8192, "C": 50257}),
    ("layer_norm", "f32", {"R": 8192, "C": 768}),
    ("layer_norm", "f32", {"R": 8192, "C": 4096}),
    ("rms_norm_residual", "f32", {"R": 8192, "C": 4096}),
    ("row_sum", "f32", {"R": 8192, "C": 4096}),
    ("column_sum", "f32", {"R": 8192, "C": 4096}),
    ("bias_gelu", "f32", {"R": 8192, "C": 3072}),
    ("transpose", "f32", {"J": 4096, "I": 4096}),
    ("transpose", "f32", {"J": 4099, "I": 4093}),
    # More of each kind, even and odd sizes, other types.
    ("softmax", "bf16", {"R": 8192, "C": 1024}),
    ("softmax", "f32", {"R": 8191, "C": 1023}),
    ("softmax", "bf16", {"R": 8192, "C": 32000}),
    ("layer_norm", "bf16", {"R": 8192, "C": 4096}),
    ("layer_norm", "f32", {"R": 8191, "C": 4095}),
    ("layer_norm", "f32", {"R": 4096, "C": 16384}),
    ("rms_norm", "bf16", {"R": 8192, "C": 4096}),
    ("rms_norm_residual", "bf16", {"R": 8192, "C": 4096}),
    ("log_softmax", "f32", {"R": 8192, "C": 1024}),
    ("softmax_backward", "f32", {"R": 8192, "C": 1024}),
    ("causal_softmax", "f32", {"B": 64, "I": 512, "J": 512}),
    ("cross_entropy", "f32", {"N": 8192, "C": 4096}),
    ("row_max", "bf16", {"R": 8192, "C": 4096}),
    ("row_argmax", "f32", {"R": 8192, "C": 4096}),
    ("row_sum", "f32", {"R": 8191, "C": 4095}),
    ("cosine_similarity", "f32", {"R": 8192, "C": 4096}),
    ("l2_normalise", "f32", {"R": 8192, "C": 4096}),
    ("group_norm", "f32", {"N": 32, "G": 32, "K": 8, "S": 3136}),
    ("instance_norm", "f32", {"N": 32, "C": 256, "S": 3136}),
    ("gelu", "f32", {"I": 16777216}),
    ("gelu", "bf16", {"I": 33554432}),
    ("add", "f32", {"I": 16777215}),
    ("swiglu", "bf16", {"R": 8192, "C": 4096}),
    ("bias_gelu", "f32", {"R": 8191, "C": 3071}),
    ("bias_gelu", "bf16", {"R": 8192, "C": 3072}),
    ("row_scale", "f32", {"R": 8192, "C": 4096}),
    ("channel_affine", "f32", {"N": 32, "C": 256, "H": 56, "W": 56}),
    ("dequantise_int8", "", {"I": 33554432}),
    ("transpose", "bf16", {"J": 4096, "I": 4096}),
    ("transpose_batched", "f32", {"B": 64, "J": 512, "I": 512}),
    ("nchw_to_nhwc", "f32", {"N": 32, "C": 64, "H": 112, "W": 112}),
    ("permute_heads", "f32", {"B": 8, "T": 1024, "H": 16, "D": 64}),
    ("column_max", "f32", {"R": 8192, "C": 4096}),
    ("layer_norm_backward_weight", "f32", {"R": 8192, "C": 4096}),
    ("batch_norm_training", "f32", {"N": 32, "C": 256, "S": 3136}),
    ("global_sum", "f32", {"I": 134217728}),
    ("mean_squared_error", "f32", {"I": 16777216}),
    ("histogram", "", {"I": 16777216}),
    ("embedding", "f32", {"table_size0": 50257, "D": 768, "T": 65536}),
    ("row_cumsum", "f32", {"R": 4096, "I": 4096}),
    # Scatters and scans.
    ("histogram_accumulate", "", {"I": 16777216, "h_size": 256}),
    ("histogram_accumulate", "", {"I": 16777216, "h_size": 8192}),
    ("index_add", "f32", {"I": 262144, "D": 128, "y_size0": 65536}),
    ("scatter_max", "f32", {"I": 16777216, "y_size": 65536}),
    ("max_unpool", "f32", {"I": 4194304, "y_size": 16777216}),
    ("row_cumsum", "f32", {"R": 4095, "I": 4095}),
    ("row_cumsum", "bf16", {"R": 4096, "I": 4096}),
    ("row_cummax", "f32", {"R": 4096, "I": 4096}),
    ("suffix_sum", "f32", {"R": 4096, "I": 4096}),
    ("segmented_cumsum", "f32", {"S": 65536, "I": 256}),
    ("column_cumsum", "f32", {"I": 4096, "C": 4096}),
    ("causal_average", "f32", {"B": 16, "I": 1024, "D": 256}),
    ("prefix_sum", "f32", {"I": 100000000}),
    ("exclusive_prefix_sum", "i32", {"I": 16777216}),
    ("log_cumsum_exp", "f32", {"R": 4096, "I": 1024}),
    ("degree", "", {"E": 8388608, "n_size": 65536}),
    ("segment_sum", "f32", {"I": 262144, "D": 128, "y_size0": 65536}),
    ("spmv_csr", "f32", {"R": 262144, "E": 8388608, "x_size": 262144}),
    ("spmm_csr", "f32", {"R": 65536, "E": 1048576, "x_size0": 65536, "K": 128}),
    ("segmented_sum_csr", "f32", {"R": 262144, "E": 8388608}),
    # Windows and all pairs.
    ("stencil_7_point", "f32", {"I": 512, "J": 512, "K": 512}),
    ("laplacian_2d", "f32", {"I": 8192, "J": 8192}),
    ("laplacian_2d", "f32", {"I": 8191, "J": 8191}),
    ("max_pool_2x2", "f32", {"N": 32, "C": 64, "H": 112, "W": 112}),
    ("avg_pool_2x2", "f32", {"N": 32, "C": 64, "H": 112, "W": 112}),
    ("max_pool_3_stride_2", "f32", {"N": 32, "C": 64, "H": 56, "W": 56}),
    ("conv2d_depthwise", "f32", {"C": 256, "N": 32, "H": 56, "W": 56}),
    ("conv2d_depthwise", "bf16", {"C": 256, "N": 32, "H": 56, "W": 56}),
    ("conv2d_same", "f32", {"O": 64, "I": 64, "N": 32, "H": 56, "W": 56}),
    ("conv2d", "f32", {"O": 64, "I": 64, "R": 3, "S": 3, "N": 16, "H": 54, "W": 54}),
    ("fir_filter", "f32", {"K": 65, "I": 16777216}),
    ("gaussian_blur", "f32", {"H": 4320, "W": 7680}),
    ("nbody_acceleration", "f32", {"I": 16384}),
)


@dataclass(frozen=True)
class Case:
    """A formula of the catalogue in one type, at one size."""

    entry: Entry
    type: str
    sizes: Mapping[str, int]

    @property
    def label(self) -> str:
        own = "x".join(str(each) for each in self.sizes.values())
        return f"{self.entry.name} {self.type or '-'} {own}"

    @property
    def formula(self) -> Formula:
        texts = self.entry.texts()
        return formula_of(texts.get(self.type, self.entry.text))


def cases(only: str) -> list[Case]:
    """The cases whose label holds `only`, or one of several with commas between them."""
    by_name = {each.name: each for each in catalogue()}
    found = [Case(by_name[name], kind, sizes) for name, kind, sizes in CASES if name in by_name]
    return [each for each in found if any(part in each.label for part in only.split(","))]


# Inputs, the reference, the written function


def drawn(formula: Formula, sizes: Mapping[str, int], seed: int) -> tuple[dict[str, torch.Tensor], dict[str, float]]:
    """The inputs and the numbers of a formula."""
    torch.manual_seed(seed)
    draws = draws_of(formula, dict(sizes))
    arrays = {}
    for tensor in formula.inputs:
        shape = tuple(at_sizes(each, sizes) for each in tensor.extents)
        arrays[tensor.name] = _array(draws[tensor.name], shape, KINDS[tensor.type])
    numbers = {name: _array(draws[name], (), KINDS[kind]).item() for name, kind in formula.scalars.items()}
    return arrays, numbers


def _array(draw: Draw, shape: tuple[int, ...], kind: torch.dtype) -> torch.Tensor:
    match draw.kind:
        case "truth":
            return torch.rand(shape, device="cuda") < 0.5
        case "whole":
            return torch.randint(int(draw.low), int(draw.high) + 1, shape, device="cuda").to(kind)
        case "offsets":
            ends = torch.randint(int(draw.low), int(draw.high) + 1, shape, device="cuda").sort().values
            if ends.numel():
                ends[..., 0], ends[..., -1] = int(draw.low), int(draw.high)
            return ends.to(kind)
        case "between":
            return (torch.rand(shape, device="cuda") * (draw.high - draw.low) + draw.low).to(kind)
    if kind.is_floating_point:
        return torch.randn(shape, device="cuda").to(kind)
    return torch.randint(-100 if kind != torch.uint8 else 0, 100, shape, device="cuda").to(kind)


def peer(case: Case) -> Callable[..., Any]:
    """The formula by torch, of the inputs in order. Its results lie as the formula's do: no view is handed back."""
    formula = case.formula
    names = [*(each.name for each in formula.inputs), *formula.scalars]
    scope: dict[str, Any] = {"torch": torch, "F": functional, "_packed": _packed, **case.sizes}
    text = f"def peer({', '.join(names)}):\n    return _packed(({case.entry.torch}))\n"
    exec(compile(text, case.entry.name, "exec"), scope)  # the catalogue is our own file
    return cast(Callable[..., Any], scope["peer"])


def _packed(found: Any) -> Any:
    return tuple(each.contiguous() for each in found) if isinstance(found, tuple) else found.contiguous()


def function_of(code: Code, library: Path) -> Callable[..., None]:
    """The launch function, of arrays by name, numbers and sizes by name."""
    shared = ctypes.CDLL(str(library))
    function = getattr(shared, code.name)
    names = list(dict.fromkeys(each.array for each in code.formula.tensors.values()))
    kinds = {"f64": ctypes.c_double, "f32": ctypes.c_float, "i64": ctypes.c_longlong}
    numbers = [kinds.get(computed(TYPES[kind]).name, ctypes.c_int) for kind in code.formula.scalars.values()]
    held: list[torch.Tensor] = []

    def call(arrays: list[torch.Tensor], scalars: list[float], sizes: list[int]) -> None:
        pointers = [ctypes.c_void_p(each.data_ptr()) for each in arrays]
        lengths = [ctypes.c_longlong(each) for each in sizes]
        given = [kind(value) for kind, value in zip(numbers, scalars, strict=True)]
        space = []
        if code.temporaries:
            if not held:
                size = getattr(shared, f"{code.name}_workspace")
                size.restype = ctypes.c_size_t
                held.append(torch.empty(max(1, size(*lengths)), dtype=torch.uint8, device="cuda"))
            space = [ctypes.c_void_p(held[0].data_ptr())]
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        error = function(*pointers, *lengths, *given, *space, stream)
        if error:
            raise RuntimeError(f"CUDA error {error}")

    assert len(names) == len(code.formula.tensors), "packed structs are not drawn"
    return call


@dataclass(frozen=True)
class Inputs:
    """What a function is called with."""

    arrays: list[torch.Tensor]
    outputs: list[torch.Tensor]
    scalars: list[float]
    sizes: list[int]
    given: list[Any]


def inputs_of(case: Case, sizes: Mapping[str, int], seed: int) -> Inputs:
    """Drawn inputs, and outputs that hold what no result is."""
    formula = case.formula
    drawn_arrays, numbers = drawn(formula, sizes, seed)
    arrays, outputs = [], {}
    for tensor in formula.tensors.values():
        if tensor.role == "in":
            arrays.append(drawn_arrays[tensor.name])
            continue
        shape = tuple(at_sizes(each, sizes) for each in tensor.extents)
        kind = KINDS[tensor.type]
        if tensor.role == "in-out":
            made = drawn_arrays[tensor.name].clone()
        else:
            made = torch.full(shape, float("nan") if kind.is_floating_point else 77, device="cuda").to(kind)
        arrays.append(made)
        outputs[tensor.name] = made
    given = [*drawn_arrays.values(), *numbers.values()]
    named = [outputs[each.name] for each in formula.outputs]
    return Inputs(arrays, named, list(numbers.values()), [sizes[each] for each in formula.sizes], given)


def error_of(case: Case, call: Callable[..., None], sizes: Mapping[str, int], seed: int) -> float:
    """The largest relative error (norm) of an output against float64, over its type's limit."""
    data = inputs_of(case, sizes, seed)
    sized = Case(case.entry, case.type, sizes)
    wide = [
        each.double() if isinstance(each, torch.Tensor) and each.is_floating_point() else each for each in data.given
    ]
    exact = peer(sized)(*wide)
    call(data.arrays, data.scalars, data.sizes)
    torch.cuda.synchronize()
    worst = 0.0
    for own, right in zip(data.outputs, exact if isinstance(exact, tuple) else (exact,), strict=True):
        one, other = own.double().flatten(), right.double().flatten()
        if one.numel() == 0:
            continue
        same = (one == other) | (one.isnan() & other.isnan())
        difference = torch.where(same, 0.0, one - other).norm().item()
        kind = next(name for name, dtype in KINDS.items() if dtype == data.outputs[0].dtype)
        relative = difference / max(other[other.isfinite()].norm().item(), 1e-30) if difference else 0.0
        worst = max(worst, math.inf if math.isnan(difference) else relative / LIMITS.get(kind, 1e-30))
    return worst


# Building and timing


def built(name: str, text: str, folder: Path) -> tuple[Path, str]:
    """The library of one file, and what the compiler says of spills."""
    source, library = folder / f"{name}.cu", folder / f"{name}.so"
    source.write_text(text)
    command = ["nvcc", "-gencode=arch=compute_90,code=sm_90", "-O3", "-std=c++17", "-shared", "-Xcompiler", "-fPIC"]
    command += ["-Xptxas", "-v", "-o", str(library), str(source)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr[-800:]}")
    lines = [
        line.strip() for line in done.stderr.splitlines() if "spill" in line and " 0 bytes spill stores" not in line
    ]
    return library, "; ".join(lines)


def copy_time(size: int, timer: Timer) -> float:
    """A copy that moves as many bytes."""
    one = torch.ones(max(1, size // 2), dtype=torch.uint8, device="cuda")
    other = torch.empty_like(one)
    return timer(lambda: other.copy_(one))


def name_of(schedule: Schedule | None) -> str:
    """A schedule in a few letters."""
    return "default" if schedule is None else repr(schedule).replace("'", "").replace(" ", "")


def codes(case: Case, number: int, default_only: bool) -> dict[str, Code]:
    """The written code by schedule: by the rules without sizes, with them, and by each that a search would try."""
    formula = case.formula
    found = {
        "general": written(formula, f"f{number}_g"),
        "default": written(formula, f"f{number}_d", sizes=case.sizes),
        "plain": plain(formula, f"f{number}_p"),
    }
    if not default_only:
        for place, each in enumerate(alternatives(formula, case.sizes)):
            try:
                found[name_of(each)] = written(formula, f"f{number}_{place}", each, sizes=case.sizes)
            except ScheduleError as error:
                print(f"{case.label}: {name_of(each)}: {error}")
    return found


def try_sizes(case: Case) -> list[Mapping[str, int]]:
    """Sizes at which results are compared: small, odd, with rest 2 modulo 4, longer than a row in registers."""
    small = dict(case.entry.small)
    growing = [name for name in small if name not in ("H", "W", "K", "G", "B")]
    found: list[Mapping[str, int]] = [small]
    for base in (1, 2, 3, 6, 33, 130, 1001, 4098):
        for last in growing[-1:]:
            found.append({**{name: min(37, max(2, value)) for name, value in small.items()}, last: base})
    return found


def compile_times(chosen: list[Case], calls: int, seconds: float, lock: Path) -> dict[str, float]:
    """Of torch.compile, by label. The GPU is this process's alone while it times."""
    begun, timer, found = time.monotonic(), Timer(calls), {}
    for case in chosen:
        if time.monotonic() - begun > seconds:
            break
        data = inputs_of(case, case.sizes, 1)
        try:
            torch._dynamo.reset()
            made = torch.compile(peer(case), dynamic=False, fullgraph=True)
            made(*data.given)
            with lock.open("w") as held:
                fcntl.flock(held, fcntl.LOCK_EX)
                found[case.label] = timer(lambda made=made, data=data: made(*data.given))
        except Exception as error:
            print(f"{case.label}: torch.compile: {str(error)[:120]}", flush=True)
    return found


def compiled_by_torch(options: argparse.Namespace, folder: Path) -> dict[str, float]:
    """torch.compile's best figure of some processes, by label. Each process has its own cache, so that each tunes anew;
    the cases of a process are shared out among several, which compile side by side and time one after the other."""
    running = []
    for process in range(options.processes):
        for share in range(SHARES):
            out = folder / f"compile_{process}_{share}.json"
            command = [sys.executable, __file__, "--compile-only", str(share), "--out", str(out)]
            command += ["--only", options.only, "--calls", str(options.calls), "--seconds", str(options.seconds * 0.5)]
            own = {"TORCHINDUCTOR_CACHE_DIR": str(out.with_suffix("")), "TORCHINDUCTOR_COMPILE_THREADS": "1"}
            running.append((out, subprocess.Popen(command, env={**os.environ, **own})))
    best: dict[str, float] = {}
    for out, each in running:
        each.wait()
        for label, us in json.loads(out.read_text()).items() if out.exists() else ():
            best[label] = min(us, best.get(label, math.inf))
    return best


def measure(case: Case, libraries: Mapping[str, Any], made: Mapping[str, Code], timer: Timer) -> dict[str, Any]:
    """One case: errors, times of each schedule, of torch and of the copy."""
    row: dict[str, Any] = {"case": case.label, "bytes": bytes_of(case.formula, case.sizes), "ours": {}, "wrong": []}
    for label, code in made.items():
        try:
            library, spills = libraries[label].result()
            call = function_of(code, library)
            if label == "general":
                for seed, sizes in enumerate(try_sizes(case)):
                    try:
                        error = error_of(case, function_of(code, library), sizes, seed)
                    except (RuntimeError, IndexError, ValueError) as problem:
                        if "CUDA error" in str(problem):
                            raise
                        continue
                    if not error <= 1:
                        row["wrong"].append({"schedule": label, "sizes": dict(sizes), "error": error})
            error = error_of(case, call, case.sizes, 3)
            if not error <= 1:
                row["wrong"].append({"schedule": label, "sizes": dict(case.sizes), "error": error})
            data = inputs_of(case, case.sizes, 4)
            us = timer(lambda call=call, data=data: call(data.arrays, data.scalars, data.sizes))
            row["ours"][label] = {"us": us, "error": error, "spills": spills}
        except RuntimeError as problem:
            row["ours"][label] = {"failed": str(problem)[-400:]}
            if "CUDA error" in str(problem) and not str(problem).endswith((" 1", " 9", " 98")):
                raise
    row["sizes"] = beside_plain(case, libraries, made)
    data = inputs_of(case, case.sizes, 4)
    if case.entry.torch:
        reference = peer(case)
        row["eager_us"] = timer(lambda: reference(*data.given))
    row["copy_us"] = copy_time(row["bytes"], timer)
    return row


def beside_plain(case: Case, libraries: Mapping[str, Any], made: Mapping[str, Code]) -> list[dict[str, Any]]:
    """What is written beside a thread for each element, at small sizes, odd ones, and those of the case, as long as a
    thread for each element is not expected to take longer than MOST_PLAIN_US."""
    timer = Timer(15)
    rate = 0.0
    largest = max(case.sizes.values(), default=1)
    names = [name for name, size in case.sizes.items() if size * 8 >= largest]
    smaller = [{**case.sizes, **{each: case.sizes[each] // part for each in names}} for part in (130, 17, 3)]
    found = []
    for sizes in (case.entry.small, *smaller, case.sizes):
        row: dict[str, Any] = {"sizes": dict(sizes)}
        work = operations(case.formula, sizes)
        if rate * work > MOST_PLAIN_US:
            break
        for label in ("general", "plain"):
            try:
                call = function_of(made[label], libraries[label].result()[0])
                data = inputs_of(case, sizes, 4)
                row[label] = timer(lambda call=call, data=data: call(data.arrays, data.scalars, data.sizes))
            except (RuntimeError, IndexError, ValueError) as problem:
                if "CUDA error" in str(problem):
                    raise
        if "general" in row and "plain" in row:
            found.append(row)
            rate = row["plain"] / max(1, work)
    return found


def shown(row: Mapping[str, Any]) -> list[str]:
    """A row of the table, and the schedules below it."""
    times = {label: each["us"] for label, each in row["ours"].items() if "us" in each}
    wrong = {each["schedule"] for each in row["wrong"]}
    right = {label: us for label, us in times.items() if label not in wrong}
    right.pop("plain", None)
    best = min(right, key=lambda label: right[label]) if right else "none"

    def number(value: float | None) -> str:
        return f"{value:9.1f}" if value is not None else "        -"

    chosen = right.get("general")
    share = f"{row['copy_us'] / chosen * 100:4.0f} %" if chosen else "     -"
    against = f"{row['compile_us'] / chosen:5.2f}" if chosen and row.get("compile_us") else "    -"
    lines = [
        f"{row['case']:44} {number(right.get('general'))} {number(chosen)} {number(right.get(best))}"
        f"{number(row.get('eager_us'))}{number(row.get('compile_us'))}{number(row['copy_us'])} {share} {against}"
    ]
    lines += [f"    WRONG {each}" for each in row["wrong"][:4]]
    lines += [f"    slower than plain: {each}" for each in slower_than_plain([row])]
    ranked = sorted(right, key=lambda label: right[label])
    lines += [f"    {right[label]:9.1f} {label} {row['ours'][label]['spills'][:60]}" for label in ranked[:4]]
    lines += [f"    {label}: {each['failed'][-300:]}" for label, each in row["ours"].items() if "failed" in each]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("formula_speed.json"))
    parser.add_argument("--only", default="", help="only cases whose label holds this")
    parser.add_argument("--calls", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=170, help="begin no further case after this")
    parser.add_argument("--default", action="store_true", help="no search: the schedules of the rules alone")
    parser.add_argument("--processes", type=int, default=0, help="how many processes time torch.compile; 0: none")
    parser.add_argument("--compile-only", type=int, help="write torch.compile's times alone, of one share of the cases")
    parser.add_argument("--write-only", type=Path, help="write the files here, and nothing else")
    options = parser.parse_args()
    chosen = cases(options.only)
    if options.write_only:
        options.write_only.mkdir(parents=True, exist_ok=True)
        for number, case in enumerate(chosen):
            for code in codes(case, number, options.default).values():
                (options.write_only / f"{code.name}.cu").write_text(file_text(code))
        return
    torch.backends.cuda.matmul.allow_tf32 = False
    hang = threading.Timer(options.seconds + 60, lambda: os._exit(3))  # a kernel that never ends
    hang.daemon = True
    hang.start()
    if options.compile_only is not None:
        own = chosen[options.compile_only :: SHARES]
        lock = options.out.parent / "timing.lock"
        options.out.write_text(json.dumps(compile_times(own, options.calls, options.seconds, lock)))
        return
    begun = time.monotonic()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        made = [codes(case, number, options.default) for number, case in enumerate(chosen)]
        with ThreadPoolExecutor(16) as pool:
            libraries = [
                {label: pool.submit(built, code.name, file_text(code), place) for label, code in each.items()}
                for each in made
            ]
            compiled = compiled_by_torch(options, place)
        print(f"built in {time.monotonic() - begun:.0f} s on {torch.cuda.get_device_name()}", flush=True)
        timer, run = Timer(options.calls), gpu_run()
        print(
            f"{'case, us':44} {'general':>9} {'default':>9} {'best':>9}{'eager':>9}{'compile':>9}{'copy':>9}",
            flush=True,
        )
        for case, own, files in zip(chosen, made, libraries, strict=True):
            if time.monotonic() - begun > options.seconds:
                print("out of time", flush=True)
                break
            row = measure(case, files, own, timer)
            row["compile_us"] = compiled.get(case.label)
            rows.append(row)
            print("\n".join(shown(row)), flush=True)
            report = {**run, "rows": rows}
            options.out.write_text(json.dumps(report, indent=1) + "\n")
    summary(rows)
    print(f"{time.monotonic() - begun:.0f} s in all", flush=True)


def summary(rows: list[dict[str, Any]]) -> None:
    """Shares of the bound and of torch.compile over all cases, of what is written without knowing sizes."""
    found = figures(rows)
    print(f"{found.right} of {len(rows)} right everywhere; median {found.of_copy:.0%} of a copy")
    if found.compared:
        near = f"within 3 % or faster: {found.near} of {found.compared}"
        print(f"over torch.compile {found.over_compile:.2f}x; {near}")
    print(f"slower than plain at {len(slower_than_plain(rows))} of {sum(len(each['sizes']) for each in rows)} sizes")


if __name__ == "__main__":
    main()
