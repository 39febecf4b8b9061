"""A kernel is handed memory of the host.

## Why is this bad?

What `malloc`, `new`, `std::vector` and local arrays give is the host's memory. A kernel that uses it fails with an
illegal address, except on systems that share all memory between host and device; there it is slow.

## Example

```cuda
#include <vector>

__global__ void twice(float *x) { x[threadIdx.x] *= 2.0f; }

void run() {
  std::vector<float> values(256, 1.0f);
  twice<<<1, 256>>>(values.data());
}
```

## Use instead

```cuda
#include <vector>

__global__ void twice(float *x) { x[threadIdx.x] *= 2.0f; }

void run() {
  std::vector<float> values(256, 1.0f);
  float *x;
  cudaMalloc(&x, values.size() * sizeof(float));
  cudaMemcpy(x, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice);
  twice<<<1, 256>>>(x);
  cudaMemcpy(values.data(), x, values.size() * sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(x);
}
```

## Limits

- Of arguments for the kernel's pointers: local arrays and vectors of the function that launches, and pointers that it
  sets once, to `malloc`, `calloc` or `new`. There is no fix to press.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from warpwright.facts.model import Kernel
from warpwright.rules.base import Finding, Severity
from warpwright.rules.host._pointers import HostLaunch, is_set, launches_of, span_of
from warpwright.syntax.nodes import descendants, uncast
from warpwright.syntax.source import Source

severity = Severity.WARNING

_VECTOR = re.compile(r"(?:std::)?vector<[^,]*>")
_OF_VECTOR = re.compile(r"(\w+)\.data\(\)|&(\w+)\[0\]|&(\w+)\.front\(\)")
_ALLOCATES = re.compile(r"(?:std::)?[mc]alloc")
_SHARES = re.compile(r"\b(?:cuda|hip)HostRegister\b")


def check(kernel: Kernel) -> Iterator[Finding]:
    seen: set[tuple[str, int]] = set()
    for launch in launches_of(kernel):
        for argument, parameter in zip(launch.arguments, kernel.parameters, strict=False):
            what = _of_host(launch, argument) if parameter.is_pointer else ""
            if not what or (launch.source.path, argument.start_byte) in seen:
                continue
            seen.add((launch.source.path, argument.start_byte))
            yield Finding(
                span=span_of(launch.source, argument),
                message=(
                    f"`{parameter.name}` of the kernel is handed memory of the host: {what}. "
                    "Copy it to memory of cudaMalloc, or allocate it with cudaMallocManaged."
                ),
                evidence={"parameter": parameter.name, "argument": launch.source.node_code(argument)},
            )


def _of_host(launch: HostLaunch, argument: Node) -> str:
    """What the argument is, in words; empty where it is not known to be the host's."""
    source = launch.source
    text = "".join(source.node_code(argument).split())
    of_vector = _OF_VECTOR.fullmatch(text)
    if of_vector is not None:
        name = next(group for group in of_vector.groups() if group)
        kinds = [source.node_code(kind) for kind, _ in _declared(source, launch.function, name)]
        return "a vector's" if kinds and all(_VECTOR.fullmatch("".join(kind.split())) for kind in kinds) else ""
    if argument.type != "identifier" or _SHARES.search(source.node_code(launch.function)):
        return ""
    declared = list(_declared(source, launch.function, text))
    if len(declared) != 1 or is_set(source, launch.function, text):
        return ""
    declarator = declared[0][1]
    if declarator.type == "array_declarator":
        return "a local array"
    value = declarator.child_by_field_name("value") if declarator.type == "init_declarator" else None
    inner = declarator.child_by_field_name("declarator")
    if value is None or inner is None:
        return ""
    if inner.type == "array_declarator":
        return "a local array"
    made = uncast(source, value)
    if made.type == "new_expression":
        return "that of `new`"
    called = made.child_by_field_name("function") if made.type == "call_expression" else None
    is_malloc = called is not None and _ALLOCATES.fullmatch(source.node_code(called)) is not None
    return "that of `malloc`" if is_malloc else ""


def _declared(source: Source, function: Node, name: str) -> Iterator[tuple[Node, Node]]:
    """The type and the declarator of each variable of that name that the function declares."""
    for declaration in descendants(function, "declaration", "parameter_declaration"):
        kind = declaration.child_by_field_name("type")
        for declarator in declaration.children_by_field_name("declarator"):
            inner: Node | None = declarator
            while inner is not None and inner.type != "identifier":
                inner = inner.child_by_field_name("declarator")
            if kind is not None and inner is not None and source.node_code(inner) == name:
                yield kind, declarator
