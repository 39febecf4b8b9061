"""An asynchronous copy uses pageable memory of the host.

## Why is this bad?

The GPU can only copy from and to pinned memory. `cudaMemcpyAsync` of memory from `malloc`, `new` or a vector goes by
way of a buffer of the driver: at about half the bandwidth, and the host waits for most of it. Nothing overlaps.

## Example

```cuda
#include <cstdlib>

void run(float *device, size_t bytes, cudaStream_t stream) {
  float *host = (float *)malloc(bytes);
  cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream);
  cudaStreamSynchronize(stream);
  free(host);
}
```

## Use instead

```cuda
#include <cstdlib>

void run(float *device, size_t bytes, cudaStream_t stream) {
  float *host;
  cudaMallocHost(&host, bytes);
  cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream);
  cudaStreamSynchronize(stream);
  cudaFreeHost(host);
}
```

## Limits

- Memory that the same function makes with `malloc`, `new`, a vector or an array, and does not register.
  There is no fix to press.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpwright.cuda.extension.unit import Unit
from warpwright.rules.base import Finding, Severity
from warpwright.rules.host._statements import host_functions, is_pageable, runtime_calls, text_of

severity = Severity.INFORMATION

_COPIES = re.compile(r"(?:cuda|hip)MemcpyAsync")


def check_unit(unit: Unit) -> Iterator[Finding]:
    for function in host_functions(unit):
        for call, name, given in runtime_calls(function, _COPIES):
            kind = text_of(function, given[3]) if len(given) > 3 else ""
            host = given[1] if kind.endswith("HostToDevice") else given[0] if kind.endswith("DeviceToHost") else None
            if host is not None and is_pageable(function, text_of(function, host)):
                memory = text_of(function, host)
                yield Finding(
                    span=function.source.span(host),
                    message=(
                        f"`{memory}` is pageable, so `{name}` overlaps with nothing\n"
                        "Allocate it with cudaMallocHost, or pin it with cudaHostRegister."
                    ),
                    evidence={"memory": memory, "line": function.source.position(call.start_byte)[0]},
                    kernel=function.name,
                )
