"""KernelBench's tasks on a GPU: what is written for each is compiled, compared with the module, and timed beside it."""

from __future__ import annotations

import ctypes
import hashlib
import statistics
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from warpwright.formulas.model import Formula
from warpwright.formulas.resolve import formula_of
from warpwright.writer.code import Code
from warpwright.writer.launch import arrays
from warpwright.writer.write import file_text, written
from warpwright_harness.exported import TYPES
from warpwright_harness.planned import run

_DTYPES = {name: kind for kind, name in TYPES.items()}
TIMED = 15
FLUSH_BYTES = 1 << 28


class Built:
    """One formula's launch function, compiled. Raises RuntimeError with what nvcc says."""

    def __init__(self, text: str, folder: Path, nvcc: str, arch: str) -> None:
        formula = formula_of(text)
        self.code = written(formula, "part")
        self.formula: Formula = self.code.formula
        self.names = dict(zip(self.formula.tensors, formula.tensors, strict=True))
        source = file_text(self.code)
        stem = folder / hashlib.sha256(f"{arch}{source}".encode()).hexdigest()[:20]
        self.path = stem.with_suffix(".so")
        if not self.path.exists():
            stem.with_suffix(".cu").write_text(source, encoding="utf-8")
            command = [nvcc, "-O3", "-std=c++17", f"-arch={arch}", "-shared", "-Xcompiler", "-fPIC"]
            made = subprocess.run(
                [*command, "-o", str(self.path), str(stem.with_suffix(".cu"))],
                capture_output=True,
                text=True,
                check=False,
            )
            if made.returncode:
                raise RuntimeError(f"nvcc refuses {stem.with_suffix('.cu')}: {made.stderr.strip()[:300]}")

    def __call__(self, part: Mapping[str, Any], reads: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """The arrays that the formula writes. Every size is fixed in its text."""
        library = ctypes.CDLL(str(self.path))
        outputs = {
            each["name"]: torch.empty([int(e) for e in each["extents"]], dtype=_DTYPES[each["type"]], device="cuda")
            for each in part["writes"]
        }
        held = {**{name: each.contiguous() for name, each in reads.items()}, **outputs}
        handed: list[Any] = [ctypes.c_void_p(held[self.names[name]].data_ptr()) for name, _, _ in arrays(self.formula)]
        workspace = _workspace(library, self.code)
        if workspace is not None:
            handed.append(ctypes.c_void_p(workspace.data_ptr()))
        error = library.part(*handed, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        if error:
            raise RuntimeError(f"The launch fails with the CUDA error {error}.")
        return outputs


def _workspace(library: Any, code: Code) -> torch.Tensor | None:
    if not code.temporaries:
        return None
    library.part_workspace.restype = ctypes.c_size_t
    return torch.empty(library.part_workspace(), dtype=torch.uint8, device="cuda")


def ran(plan: Mapping[str, Any], built: Mapping[str, Built], module: Any, inputs: list[Any]) -> Callable[[], Any]:
    """A function that runs the plan with the module's parameters."""
    state = {**dict(module.named_parameters()), **dict(module.named_buffers())}

    def evaluate(part: Mapping[str, Any], reads: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return built[part["formula"]](part, reads)

    return lambda: run(plan, state, inputs, evaluate)[0]


def seconds(function: Callable[[], Any]) -> float:
    """The median of some calls; before each, the L2 cache is flushed by reading."""
    flush = torch.zeros(FLUSH_BYTES // 4, device="cuda")
    for _ in range(2):
        function()
    times = []
    for _ in range(TIMED):
        flush.sum()
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        function()
        last.record()
        torch.cuda.synchronize()
        times.append(first.elapsed_time(last) / 1000)
    return statistics.median(times)
