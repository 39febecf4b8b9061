"""KernelBench's tasks on a GPU: what is written for each is compiled, compared with the module, and timed beside it."""

from __future__ import annotations

import ctypes
import hashlib
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from warpwright.formulas.model import Formula
from warpwright.formulas.resolve import formula_of
from warpwright.writer.launch import arrays
from warpwright.writer.write import file_text, written
from warpwright_harness.exported import TYPES
from warpwright_harness.planned import run

_DTYPES = {name: kind for kind, name in TYPES.items()}


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
        self.library = ctypes.CDLL(str(self.path))
        self.workspace = 0  # bytes
        if self.code.temporaries:
            self.library.part_workspace.restype = ctypes.c_size_t
            self.workspace = self.library.part_workspace()

    def __call__(self, part: Mapping[str, Any], reads: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """The arrays that the formula writes. Every size is fixed in its text."""
        outputs = {
            each["name"]: torch.empty([int(e) for e in each["extents"]], dtype=_DTYPES[each["type"]], device="cuda")
            for each in part["writes"]
        }
        held = {**{name: each.contiguous() for name, each in reads.items()}, **outputs}
        handed: list[Any] = [ctypes.c_void_p(held[self.names[name]].data_ptr()) for name, _, _ in arrays(self.formula)]
        workspace = torch.empty(self.workspace, dtype=torch.uint8, device="cuda")
        if self.code.temporaries:
            handed.append(ctypes.c_void_p(workspace.data_ptr()))
        error = self.library.part(*handed, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        if error:
            raise RuntimeError(f"The launch fails with the CUDA error {error}.")
        return outputs


def ran(plan: Mapping[str, Any], built: Mapping[str, Built], module: Any, inputs: list[Any]) -> Callable[[], Any]:
    """A function that runs the plan with the module's parameters."""
    state = {**dict(module.named_parameters()), **dict(module.named_buffers())}

    def evaluate(part: Mapping[str, Any], reads: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return built[part["formula"]](part, reads)

    return lambda: run(plan, state, inputs, evaluate)[0]
