"""Device memory is allocated, and the function that frees the others forgets it.

## Why is this bad?

The memory stays taken until the process ends. In a function that is called again and again the GPU runs out of it.

## Example

```cuda
__global__ void add(float *x, const float *y) { x[threadIdx.x] += y[threadIdx.x]; }

void run() {
  float *x, *y;
  cudaMalloc(&x, 1024);
  cudaMalloc(&y, 1024);
  add<<<1, 256>>>(x, y);
  cudaFree(x);
}
```

## Use instead

```cuda
__global__ void add(float *x, const float *y) { x[threadIdx.x] += y[threadIdx.x]; }

void run() {
  float *x, *y;
  cudaMalloc(&x, 1024);
  cudaMalloc(&y, 1024);
  add<<<1, 256>>>(x, y);
  cudaFree(x);
  cudaFree(y);
}
```

## Limits

- Local pointers of a function that frees another one; one that is returned, stored elsewhere or handed to another
  function of the host is left out, and so is `main`; and pointers of a loop's body that nothing frees.
  There is no fix to press.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpwright.cuda.extension.unit import Function, Unit
from warpwright.rules.base import Finding, Severity
from warpwright.rules.host._statements import host_functions, loop_around, runtime_calls, text_of
from warpwright.rules.words import plural
from warpwright.syntax.nodes import launch_configuration, uncast, uncommented

severity = Severity.INFORMATION

_ALLOCATES = re.compile(r"(?:cuda|hip)Malloc(?:Managed|Async|Host)?")
_FREES = re.compile(r"(?:cuda|hip)Free(?:Async|Host)?")
_RUNTIME = re.compile(r"(?:cuda|hip)\w+|sizeof|printf")


def check_unit(unit: Unit) -> Iterator[Finding]:
    for function in host_functions(unit):
        freed = {text_of(function, given[0]) for _, _, given in runtime_calls(function, _FREES) if given}
        for call, name, given in runtime_calls(function, _ALLOCATES):
            pointer = text_of(function, given[0]) if given else ""
            if not re.fullmatch(r"&\w+", pointer) or pointer[1:] in freed:
                continue
            pointer = pointer[1:]
            loop = loop_around(function, call)
            each_turn = loop is not None and _is_declared(function.source.node_code(loop), pointer)
            if not each_turn and (not freed or function.name == "main"):
                continue
            if (
                not _is_declared(function.code, pointer)
                or pointer in dict(function.parameters)
                or _leaves(function.code, pointer)
            ):
                continue
            others = [
                c
                for c in function.calls
                if launch_configuration(c) is None
                and not _RUNTIME.match(text_of(function, c))
                and any(
                    text_of(function, uncast(function.source, a)) in (pointer, f"&{pointer}")
                    for a in uncommented(c.child_by_field_name("arguments"))
                )
            ]
            if not others:
                yield Finding(
                    span=function.source.span(call),
                    message=(
                        f"`{pointer}` is never freed: {_why(function, freed, each_turn)}\nAdd cudaFree({pointer})."
                    ),
                    evidence={"pointer": pointer, "call": name},
                    kernel=function.name,
                )


def _why(function: Function, freed: set[str], each_turn: bool) -> str:
    if each_turn:
        return "each turn of the loop allocates another"
    return f"`{function.name}` frees {plural(len(freed), 'other')}"


def _is_declared(code: str, pointer: str) -> bool:
    return re.search(rf"\b\w+\s*\*[^;()]*\b{pointer}\b\s*[;,=]", code) is not None


def _leaves(code: str, pointer: str) -> bool:
    """Whether the pointer is returned, or stored where it outlives the function."""
    return re.search(rf"\breturn\b[^;]*\b{pointer}\b|=\s*[^;=(]*(?<![\w&.]){pointer}\s*[;,}})+]", code) is not None
