"""The grid is rounded down, and the last elements have no thread.

## Why is this bad?

`n / 256` blocks of 256 threads cover n elements where n is a multiple of 256. Of 1000 elements, the last 232 are
never computed, and no call fails.

## Example

```cuda
__global__ void twice(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] *= 2.0f;
}

void run(float *x, int n) { twice<<<n / 256, 256>>>(x, n); }
```

## Use instead

```cuda
__global__ void twice(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] *= 2.0f;
}

void run(float *x, int n) { twice<<<(n + 255) / 256, 256>>>(x, n); }
```

## Limits

- Where the function is handed n, passes it to the kernel, and says nowhere that it is a multiple (`n % 256`); of
  kernels that compare an index with n and have no loop over the grid.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from warpwright.cuda.extension.unit import Function, Unit
from warpwright.rules.base import Cure, Finding, Severity
from warpwright.rules.cures import cure, replaced
from warpwright.rules.host._statements import host_functions, text_of
from warpwright.syntax.nodes import launch_configuration, uncast, uncommented

severity = Severity.WARNING

_ROUNDED = re.compile(r"(?:dim3\()?(\w+)/(\w+)\)?")


def check_unit(unit: Unit) -> Iterator[Finding]:
    kernels = {each.name: each for each in unit.here}
    for function in host_functions(unit):
        for call in function.launches:
            kernel = kernels.get(text_of(function, call.children[0]).partition("<")[0])
            given = uncommented(launch_configuration(call))
            match = _ROUNDED.fullmatch(_grid(function, text_of(function, given[0]))) if given else None
            if kernel is None or match is None or "gridDim" in kernel.code:
                continue
            count, block = match[1], match[2]
            arguments = uncommented(call.child_by_field_name("arguments"))
            handed = [text_of(function, uncast(function.source, each)) for each in arguments]
            is_known = re.search(rf"\b{count}\s*[%&]|\b{count}\s*[-+*/]?=[^=]", function.code)
            if count not in dict(function.parameters) or count not in handed or is_known:
                continue
            place = handed.index(count)
            name = kernel.parameters[place][0] if place < len(kernel.parameters) else ""
            if name and re.search(rf"[<>]=?\s*{name}\b|\b{name}\s*[<>]", kernel.code):
                yield Finding(
                    span=function.source.span(given[0]),
                    message=(
                        f"`{count} / {block}` rounds down: up to {block} - 1 elements have no thread\n"
                        f"Round up: ({count} + {block} - 1) / {block}."
                    ),
                    evidence={"count": count, "block": block},
                    kernel=kernel.name,
                    cure=_cure(function, given[0], count, block),
                )


def _grid(function: Function, written: str) -> str:
    """The expression of a grid, or of the one variable that holds it."""
    made = re.findall(rf"\b{written}\s*(?:=|\()\s*([^;]+?)\)?\s*;", function.code) if written.isidentifier() else []
    return "".join(made[0].split()) if len(made) == 1 else written


def _cure(function: Function, grid: Node, count: str, block: str) -> Cure | None:
    """The grid rounded up, where the launch itself divides."""
    if text_of(function, grid) != f"{count}/{block}":
        return None
    return cure("Round the grid up", replaced(function.source.span(grid), f"({count} + {block} - 1) / {block}"))
