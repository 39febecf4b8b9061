"""A launch on the default stream stands between launches on other streams.

## Why is this bad?

The default stream waits for all other streams, and they for it: one launch without a stream in the middle ends the
overlap for which the others were made. With streams of `cudaStreamNonBlocking` it waits for nothing, and the order is
lost.

## Example

```cuda
__global__ void step(float *x) { x[threadIdx.x] += 1.0f; }

void run(float *x, float *y, float *z) {
  cudaStream_t first, second;
  cudaStreamCreate(&first);
  cudaStreamCreate(&second);
  step<<<1, 256, 0, first>>>(x);
  step<<<1, 256>>>(z);
  step<<<1, 256, 0, second>>>(y);
}
```

## Use instead

```cuda
__global__ void step(float *x) { x[threadIdx.x] += 1.0f; }

void run(float *x, float *y, float *z) {
  cudaStream_t first, second;
  cudaStreamCreate(&first);
  cudaStreamCreate(&second);
  step<<<1, 256, 0, first>>>(x);
  step<<<1, 256, 0, first>>>(z);
  step<<<1, 256, 0, second>>>(y);
}
```

## Limits

- In a function that creates streams and launches on one before and after.
  There is no fix to press.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpwright.cuda.extension.unit import Unit
from warpwright.rules.base import Finding, Severity
from warpwright.rules.host._statements import host_functions, text_of
from warpwright.syntax.nodes import launch_configuration, uncommented
from warpwright.syntax.source import Span

severity = Severity.INFORMATION

_CREATES = re.compile(r"(?:cuda|hip)StreamCreate")
_WAITS = re.compile(r"(?:cuda|hip)(?:Device|Stream|Event)Synchronize")


def check_unit(unit: Unit) -> Iterator[Finding]:
    for function in host_functions(unit):
        if not _CREATES.search(function.code):
            continue
        launches = sorted(function.launches, key=lambda call: call.start_byte)
        on = [len(uncommented(launch_configuration(each))) > 3 for each in launches]
        for at, call in enumerate(launches):
            before = next((i for i in range(at - 1, -1, -1) if on[i]), None)
            after = next((i for i in range(at + 1, len(on)) if on[i]), None)
            if on[at] or before is None or after is None:
                continue
            between = function.source.code_text(launches[before].start_byte, launches[after].start_byte)
            configuration = launch_configuration(call)
            if configuration is not None and not _WAITS.search(between):
                kernel = text_of(function, call.children[0])
                yield Finding(
                    span=Span(function.source, call.start_byte, configuration.end_byte),
                    message=(
                        f"`{kernel}` is launched on the default stream, between launches on others\n"
                        "Give it a stream: the default stream waits for all others, and they wait for it."
                    ),
                    evidence={"kernel": kernel, "function": function.name},
                    kernel=kernel,
                )
