"""A kernel of a torch extension is launched on the default stream, not on torch's current one.

## Why is this bad?

Torch's own kernels run on the current stream. Under `torch.cuda.stream(...)`, in a CUDA graph's capture and in the
streams of DDP that is another than the default stream, and nothing orders the two: the kernel reads its inputs before
they are written, or the capture fails. Where nobody uses streams it is right, so this is information.

## Example

```cuda
#include <torch/extension.h>

__global__ void negate_kernel(float *x, int64_t n) {
  int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n)
    x[i] = -x[i];
}

void launch_negate(float *x, int64_t n) {
  negate_kernel<<<(n + 255) / 256, 256>>>(x, n);
}
```

## Use instead

```cuda
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void negate_kernel(float *x, int64_t n) {
  int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n)
    x[i] = -x[i];
}

void launch_negate(float *x, int64_t n) {
  negate_kernel<<<(n + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(x, n);
}
```

## Limits

- Launches in files that use torch, by `<<<...>>>`, cudaLaunchKernel and its kin; of a cudaLaunchConfig_t, one that is
  filled in the same function. A stream that is passed in is taken to be the current one.
"""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from warpwright.cuda.extension.unit import Function, Unit, is_of_stable_abi, uses_torch
from warpwright.cuda.launch_api import ApiLaunch, api_launch, stream_of
from warpwright.rules.base import Finding, Severity
from warpwright.rules.cures import cure, include, on_stream
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import launch_configuration, uncommented
from warpwright.syntax.source import Span

severity = Severity.INFORMATION

_CURRENT = "at::cuda::getCurrentCUDAStream()"
_OF_STABLE = "what aoti_torch_get_current_cuda_stream() gives"
_DEFAULT = ("0", "nullptr", "NULL", "cudaStreamDefault", "cudaStreamLegacy", "cudaStreamPerThread")


def check_unit(unit: Unit) -> Iterator[Finding]:
    if not uses_torch(unit.source):
        return
    for function in unit.here:
        for call in function.launches:
            api = api_launch(function.source, call)
            finding = _of_call(function, call, api) if api is not None else _of_syntax(function, call)
            if finding is not None:
                yield finding


def _of_syntax(function: Function, call: Node) -> Finding | None:
    configuration = launch_configuration(call)
    listed = uncommented(configuration)
    if configuration is None or (len(listed) > 3 and function.source.node_code(listed[3]) not in _DEFAULT):
        return None
    kernel = function.source.node_code(call.children[0]).partition("<")[0]
    span = Span(function.source, call.start_byte, configuration.end_byte)
    return _finding(function, span, kernel, "as the fourth launch argument", on_stream(listed, _CURRENT))


def _of_call(function: Function, call: Node, api: ApiLaunch) -> Finding | None:
    """Of cudaLaunchKernel and its kin. A configuration has its stream where it is filled, which is left to the user."""
    if stream_of(function.source, call, api) not in _DEFAULT:
        return None
    kernel = function.source.node_code(api.kernel).partition("<")[0]
    listed = [each for each in (*api.shape[:1], api.packed, *api.shape[2:], api.stream) if each is not None]
    edit = on_stream(listed, _CURRENT) if api.config is None else None
    place = "as the last argument" if api.config is None else f"in {api.config}.stream"
    return _finding(function, function.source.span(call), kernel, place, edit)


def _finding(function: Function, span: Span, kernel: str, place: str, edit: TextEdit | None) -> Finding:
    source = function.source
    is_stable = is_of_stable_abi(source)
    header = include(source, "ATen/cuda/CUDAContext.h", "c10/cuda/CUDAStream.h")
    return Finding(
        span=span,
        message=(
            f"`{kernel}` is launched on the default stream, not on torch's current stream\n"
            f"Pass {_OF_STABLE if is_stable else _CURRENT} {place}."
        ),
        evidence={"kernel": kernel, "function": function.name},
        kernel=kernel,
        cure=cure("Launch on torch's current stream", header, edit) if edit is not None and not is_stable else None,
    )
