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

- Of pointers that the function hands to the kernel by their names, uses in the statements behind a `cudaFree` in the
  same block, up to where the pointer is set anew. There is no fix to press.
"""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from warpwright.facts.model import Kernel
from warpwright.rules.base import Finding, Related, Severity
from warpwright.rules.host._pointers import FREES, MOVES, calls, is_set, launches_of, span_of, statement_of
from warpwright.syntax.nodes import descendants, launch_configuration, uncast, uncommented
from warpwright.syntax.source import Source

severity = Severity.ERROR


def check(kernel: Kernel) -> Iterator[Finding]:
    seen: set[tuple[str, int]] = set()
    for launch in launches_of(kernel):
        source = launch.source
        names = {source.node_code(node) for node in launch.arguments if node.type == "identifier"}
        for freed, given in calls(source, launch.function, FREES):
            name = source.node_code(given[0]) if given else ""
            use = _used_behind(source, freed, name) if name in names else None
            if use is None or (source.path, use.start_byte) in seen:
                continue
            seen.add((source.path, use.start_byte))
            yield Finding(
                span=span_of(source, use),
                message=f"`{name}` is used here after it was freed at line {span_of(source, freed).line}.",
                evidence={"pointer": name, "freed_line": span_of(source, freed).line},
                related=(Related(span_of(source, freed), "freed here"),),
            )


def _used_behind(source: Source, freed: Node, name: str) -> Node | None:
    """The first use of a pointer in the statements behind the call that frees it."""
    statement = statement_of(freed)
    if statement is None or statement.type != "expression_statement":  # under a condition, or in a macro
        return None
    following = statement.next_named_sibling
    while following is not None:
        if following.type == "return_statement" or is_set(source, following, name):
            return None
        use = _use(source, following, name)
        if use is not None:
            return use
        following = following.next_named_sibling
    return None


def _use(source: Source, statement: Node, name: str) -> Node | None:
    """Where a launch or a copy of a statement is handed the pointer."""
    moved = {call.id for call, _ in calls(source, statement, MOVES)}
    for call in descendants(statement, "call_expression"):
        if call.id not in moved and launch_configuration(call) is None:
            continue
        for node in uncommented(call.child_by_field_name("arguments")):
            inner = uncast(source, node)
            if inner.type == "identifier" and source.node_code(inner) == name:
                return inner
    return None
