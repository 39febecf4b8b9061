"""Device memory is used after it was freed.

## Why is this bad?

What `cudaFree` gave back belongs to whoever allocates next. A launch or a copy that still uses it fails with an illegal
address, or reads and destroys the data of somebody else.

## Example

```cuda
__global__ void step(float *x) { x[threadIdx.x] += 1.0f; }

void run(float *host) {
  float *x;
  cudaMalloc(&x, 256 * sizeof(float));
  cudaMemcpy(x, host, 256 * sizeof(float), cudaMemcpyHostToDevice);
  step<<<1, 256>>>(x);
  cudaFree(x);
  cudaMemcpy(host, x, 256 * sizeof(float), cudaMemcpyDeviceToHost);
}
```

## Use instead

```cuda
__global__ void step(float *x) { x[threadIdx.x] += 1.0f; }

void run(float *host) {
  float *x;
  cudaMalloc(&x, 256 * sizeof(float));
  cudaMemcpy(x, host, 256 * sizeof(float), cudaMemcpyHostToDevice);
  step<<<1, 256>>>(x);
  cudaMemcpy(host, x, 256 * sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(x);
}
```

## Limits

- Of pointers that are set once, to the memory of an object whose destructor frees it: uses after its scope.
- Of pointers that the function hands to the kernel by their names, uses in the statements after a `cudaFree` in the
  same block, up to where the pointer is set anew or a graph is launched, which may allocate at its address; and uses in
  the next turn of a loop whose body frees what was allocated outside of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpwright.cuda.owners import owners_in
from warpwright.facts.model import Kernel
from warpwright.rules.base import Finding, Fix, Related, Severity
from warpwright.rules.host._pointers import HostLaunch, launches_of, pointers_of
from warpwright.syntax.nodes import enclosing

severity = Severity.ERROR

_GRAPH = re.compile(r"\b(?:cuda|hip)GraphLaunch\b")
"""A graph may allocate at an address that it got when it was captured."""
FIXES = (Fix("free-later", "Free it after its last use"),)


def check(kernel: Kernel) -> Iterator[Finding]:
    for launch in launches_of(kernel):
        yield from _behind_owner(launch)
    for function, name in pointers_of(kernel):
        source, seen = function.source, set[int]()
        for call in function.frees.get(name, ()):
            use, again = function.used_behind(call, name), False
            if use is None:
                use, again = function.used_again(call, name), True
            if (
                use is None
                or use.start_byte in seen
                or _GRAPH.search(source.code_text(call.node.end_byte, use.start_byte))
            ):
                continue
            seen.add(use.start_byte)
            freed = source.span(call.node)
            turn = "in the loop's next turn " if again else ""
            yield Finding(
                span=source.span(use),
                message=f"`{name}` is used {turn}after it was freed at line {freed.line}",
                evidence={"pointer": name, "freed_line": freed.line},
                fixes=FIXES,
                related=(Related(freed, "freed here"),),
            )


def _behind_owner(launch: HostLaunch) -> Iterator[Finding]:
    """Pointers into the memory of an object that has ended before the launch."""
    function, source = launch.function, launch.function.source
    owners = {each.name + pointer: each for each in owners_in(source, function.node) for pointer in each.kind.pointers}
    for argument in launch.arguments if owners else ():
        name = source.node_code(argument)
        declared = function.declared.get(name, ())
        value = declared[0][1].child_by_field_name("value") if len(declared) == 1 else None
        given = [*([value] if value is not None else []), *function.assigned.get(name, ())]
        owner = owners.get("".join(source.node_code(given[0]).split())) if len(given) == 1 else None
        scope = enclosing(owner.declaration, "compound_statement") if owner is not None else None
        if argument.type == "identifier" and owner is not None and scope is not None:
            ended = source.position(scope.end_byte - 1)[0]
            if scope.end_byte <= argument.start_byte and len(function.settings.get(name, ())) <= 1:
                yield Finding(
                    span=source.span(argument),
                    message=f"`{name}` is used after `{owner.name}`, which owns its memory, ended at line {ended}",
                    evidence={"pointer": name, "freed_line": ended},
                    related=(Related(source.span(owner.declaration), "allocated here"),),
                )
