"""The host waits for the GPU in each iteration of a loop that launches.

## Why is this bad?

A stream runs its launches in order by itself. A wait after each ends the overlap of host and GPU: the GPU is idle
from the end of one kernel until the host has noticed it and launched the next one, some 10 us in each iteration.

## Example

```cuda
__global__ void step(float *x) { x[threadIdx.x] += 1.0f; }

void run(float *x, int steps) {
  for (int i = 0; i < steps; ++i) {
    step<<<1, 256>>>(x);
    cudaDeviceSynchronize();
  }
}
```

## Use instead

```cuda
__global__ void step(float *x) { x[threadIdx.x] += 1.0f; }

void run(float *x, int steps) {
  for (int i = 0; i < steps; ++i)
    step<<<1, 256>>>(x);
  cudaDeviceSynchronize();
}
```

## Limits

- Waits and copies to the host in the body of a loop that launches a kernel by itself. A loop that reads a clock,
  records events or reads what was copied may need the wait, and is left out.
  There is no fix to press.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpwright.cuda.extension.unit import Unit
from warpwright.rules.base import Finding, Related, Severity
from warpwright.rules.host._statements import host_functions, launches_in, loop_around, runtime_calls, text_of

severity = Severity.INFORMATION

_WAITS = re.compile(r"(?:cuda|hip)(?:DeviceSynchronize|StreamSynchronize|Memcpy)")
_MEANT = re.compile(r"\b(?:chrono|clock|gettimeofday|\w*[wW]time|\w*EventRecord|\w*[tT]imer\w*|now|break)\b")


def check_unit(unit: Unit) -> Iterator[Finding]:
    for function in host_functions(unit):
        for call, name, given in runtime_calls(function, _WAITS):
            loop = loop_around(function, call)
            if loop is None or not launches_in(loop) or _MEANT.search(function.source.node_code(loop)):
                continue
            if name.endswith("Memcpy"):
                is_to_host = len(given) > 3 and text_of(function, given[3]).endswith("DeviceToHost")
                read = text_of(function, given[0]).lstrip("&") if is_to_host else ""
                rest = function.source.code_text(call.end_byte, loop.end_byte)
                if not is_to_host or re.search(rf"\b{re.escape(re.split(r'[^0-9A-Za-z_]', read)[0])}\b", rest):
                    continue
            yield Finding(
                span=function.source.span(call),
                message=(
                    f"`{name}` synchronizes the host with the GPU in each iteration\n"
                    "Move it after the loop: a stream runs its launches in order."
                ),
                evidence={"call": name, "function": function.name},
                related=(Related(function.source.span(loop), "the loop"),),
                kernel=function.name,
            )
