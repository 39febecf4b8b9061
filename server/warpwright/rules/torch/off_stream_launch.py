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

- Launches in files that use torch. A stream that is passed in is taken to be the current one.
"""

from __future__ import annotations

from collections.abc import Iterator

from warpwright.cuda.extension.unit import Unit, is_of_stable_abi, uses_torch
from warpwright.rules.base import Finding, Severity
from warpwright.rules.cures import cure, include, on_stream
from warpwright.syntax.nodes import launch_configuration, uncommented
from warpwright.syntax.source import Span

severity = Severity.INFORMATION

_CURRENT = "at::cuda::getCurrentCUDAStream()"
_OF_STABLE = "what aoti_torch_get_current_cuda_stream() gives"
_DEFAULT = ("0", "nullptr", "NULL", "cudaStreamDefault", "cudaStreamLegacy", "cudaStreamPerThread")


def check_unit(unit: Unit) -> Iterator[Finding]:
    if not uses_torch(unit.source):
        return
    is_stable = is_of_stable_abi(unit.source)
    for function in unit.here:
        for call in function.launches:
            configuration = launch_configuration(call)
            given = [function.source.node_code(each) for each in uncommented(configuration)]
            if configuration is None or (len(given) > 3 and given[3] not in _DEFAULT):
                continue
            kernel = function.source.node_code(call.children[0]).partition("<")[0]
            yield Finding(
                span=Span(function.source, call.start_byte, configuration.end_byte),
                message=(
                    f"`{kernel}` is launched on the default stream, not on torch's current stream\n"
                    f"Pass {_OF_STABLE if is_stable else _CURRENT} as the fourth launch argument."
                ),
                evidence={"kernel": kernel, "function": function.name},
                kernel=kernel,
                cure=None
                if is_stable
                else cure(
                    "Launch on torch's current stream",
                    include(function.source, "ATen/cuda/CUDAContext.h", "c10/cuda/CUDAStream.h"),
                    on_stream(uncommented(configuration), _CURRENT),
                ),
            )
