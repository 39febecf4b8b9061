"""What a shared library says of itself: the kernels in it, and the functions that it takes from elsewhere."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

from warpwright.missing import Missing
from warpwright.progress import IsCancelled
from warpwright.sandbox.confine import Policy
from warpwright.toolchain.find import find_toolchain
from warpwright.toolchain.process import run_limited

OUTPUT_BYTES = 64 << 20
MEMORY_BYTES = 4 << 30
TIMEOUT = 60.0

_KERNEL = re.compile(r"^STT_FUNC\s+STB_\w+\s+STO_ENTRY\s+(\S+)\s*$", re.MULTILINE)
_UNDEFINED = re.compile(r"^\s+[Uvw]\s+(.+)$", re.MULTILINE)

_LIBRARY = re.compile(
    r"((?:cublas|cudnn|cusparse|cusolver|cufft|curand|cutensor|nvrtc|nccl|aoti_torch_cuda_|aoti_torch_cpu_)\w*)"
    r"|(at::cuda::blas::\w+|at::native::\w+|c10::Dispatcher::findSchema\w*|torch::autograd::Function)"
)
_OPERATOR = re.compile(r"at::_ops::(\w+)::(?:call|redispatch)\b")
_PLAIN = re.compile(
    r"(?:new_)?(?:empty|zeros|ones|full|scalar_tensor|arange)(?:_.*)?|_?(?:unsafe_)?view(?:_.*)?|reshape.*|contiguous|"
    r"clone|copy_?|_to_copy|fill_.*|zero_|to_.*|select_int|slice_Tensor|narrow.*|transpose_.*|t|permute|expand.*|"
    r"squeeze.*|unsqueeze|flatten.*|detach_?|alias|as_strided_?|size_.*|stride_.*|resize_.*|set_.*|item|"
    r"_local_scalar_dense|is_.*|split.*|chunk|unbind_.*|movedim_.*|type_as|requires_grad_|record_stream|data"
)
"""Operators that make, view or move tensors and compute nothing."""


def kernel_symbols(library: Path, is_cancelled: IsCancelled) -> tuple[str, ...] | Missing:
    """The mangled names of the kernels in a library, by cuobjdump. Raises CancelledError."""
    toolchain = find_toolchain()
    if isinstance(toolchain, Missing):
        return toolchain
    if toolchain.cuobjdump is None:
        reason = "The CUDA toolkit's cuobjdump was not found, which says which kernels an extension has."
        return Missing("cuobjdump", reason, "Install the CUDA toolkit.")
    output = _output([str(toolchain.cuobjdump), "-symbols", str(library)], is_cancelled)
    return output if isinstance(output, Missing) else tuple(dict.fromkeys(_KERNEL.findall(output)))


def library_calls(library: Path, is_cancelled: IsCancelled) -> frozenset[str] | Missing:
    """The functions of libraries that compute and that a shared library takes from elsewhere, by nm. Raises
    CancelledError."""
    nm = shutil.which("nm")
    if nm is None:
        return Missing("nm", "nm was not found, which says which libraries an extension calls.", "Install binutils.")
    output = _output([nm, "-D", "-C", "--undefined-only", str(library)], is_cancelled)
    return output if isinstance(output, Missing) else computing(_UNDEFINED.findall(output))


def computing(symbols: list[str]) -> frozenset[str]:
    """Those of the undefined symbols, demangled, that are a library's computation, as people call them.

    >>> sorted(computing(["at::_ops::matmul::call(at::Tensor)", "at::_ops::empty_like::call()", "cublasSgemm_v2"]))
    ['at::matmul', 'cublasSgemm_v2']
    """
    found = set()
    for symbol in symbols:
        if (match := _OPERATOR.search(symbol)) and not _PLAIN.fullmatch(match[1]):
            found.add(f"at::{match[1]}")
        elif match := _LIBRARY.match(symbol):
            found.add(match[1] or match[2])
    return frozenset(found)


def _output(command: list[str], is_cancelled: IsCancelled) -> str | Missing:
    name = Path(command[0]).name
    try:
        with tempfile.TemporaryDirectory() as directory:
            finished = run_limited(
                command,
                directory=Path(directory),
                environment={**os.environ, "TMPDIR": directory},
                timeout=TIMEOUT,
                output_bytes=OUTPUT_BYTES,
                memory_bytes=MEMORY_BYTES,
                is_cancelled=is_cancelled,
                policy=Policy(),
            )
    except OSError as error:
        return Missing(name, f"{command[0]} could not be started ({error.strerror}).", "")
    if finished.stopped or finished.returncode != 0:
        return Missing(name, f"{command[0]} cannot read the built extension.", "")
    return finished.output
