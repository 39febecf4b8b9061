"""A kernel is handed memory of the host.

## Why is this bad?

What `malloc`, `new`, `std::vector`, `thrust::host_vector` and local arrays give is the host's memory. A kernel that
uses it fails with an illegal address, except on systems that share all memory between host and device; there it is
slow.

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

- Of arguments for the kernel's pointers: local arrays and vectors of the function that launches, the addresses of its
  variables, what its `std::unique_ptr` of no other deleter keeps, and pointers that it sets once, to `malloc`,
  `calloc`, `aligned_alloc` or `new`, also in a struct whose member the kernel names.
  There is no fix to press.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from warpwright.facts.model import Kernel
from warpwright.facts.types import builtin_type
from warpwright.rules.base import Finding, Severity
from warpwright.rules.host._pointers import HostFunction, launches_of
from warpwright.syntax.nodes import parent_of, uncast
from warpwright.syntax.source import Source

severity = Severity.WARNING

_VECTOR = re.compile(r"(?:std::)?vector<[^,]*>|(?:thrust::)?host_vector<[^,]*>")
_OF_VECTOR = re.compile(r"(\w+)\.data\(\)|&(\w+)\[0\]|&(\w+)\.front\(\)")
_CAST = re.compile(r"(?:thrust::)?raw_pointer_cast\((.*)\)")
_ARRAY = re.compile(r"(?:std::)?array<.*>")
_VARIABLE = re.compile(r"&(\w+)")
_KEPT = re.compile(r"(\w+)\.get\(\)")
_KEEPS = re.compile(r"(?:std::)?unique_ptr<[^,]*>")
_MAKES = re.compile(r"(?:std::)?make_unique<[^()]*>\(.*\)")
_ALLOCATES = re.compile(r"(?:std::)?(?:[mc]|aligned_|v|mem)alloc|memalign")


def check(kernel: Kernel) -> Iterator[Finding]:
    for launch in launches_of(kernel):
        source = launch.function.source
        for argument, parameter in zip(launch.arguments, kernel.parameters, strict=False):
            what = _of_host(launch.function, argument) if parameter.is_pointer else ""
            if not parameter.is_pointer and argument.type == "identifier":
                yield from _of_members(kernel, launch.function, source.node_code(argument), parameter.name)
            if what:
                given = source.node_code(argument)
                yield Finding(
                    span=source.span(argument),
                    message=(
                        f"`{given}` is host memory ({what}), passed to the kernel as `{parameter.name}`"
                        "\nCopy it to device memory (cudaMalloc), or allocate it with cudaMallocManaged."
                    ),
                    evidence={"parameter": parameter.name, "argument": given},
                )


def _of_host(function: HostFunction, argument: Node) -> str:
    """What the argument is, in words; empty where it is not known to be the host's."""
    source = function.source
    text = "".join(source.node_code(argument).split())
    of_vector = _OF_VECTOR.fullmatch(_CAST.sub(r"\1", text))
    if of_vector is not None:
        name = next(group for group in of_vector.groups() if group)
        kinds = ["".join(source.node_code(kind).split()) for kind, _ in function.declared.get(name, ())]
        if kinds and all(map(_VECTOR.fullmatch, kinds)):
            return "a vector"
        return "an array" if kinds and all(map(_ARRAY.fullmatch, kinds)) else ""
    kept, variable = _KEPT.fullmatch(text), _VARIABLE.fullmatch(text)
    if kept is not None:
        return "a smart pointer" if _is_kept(function, kept[1]) else ""
    if variable is not None:
        return "a variable" if _is_variable(function, variable[1]) else ""
    declared = function.declared.get(text, ())
    if argument.type != "identifier" or function.registered or len(declared) != 1 or function.settings.get(text):
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
    return _made_by(source, value)


def _made_by(source: Source, value: Node) -> str:
    """What gives a pointer memory of the host; empty where it is something else."""
    made = uncast(source, value)
    if made.type == "new_expression":
        return "`new`"
    called = made.child_by_field_name("function") if made.type == "call_expression" else None
    is_malloc = called is not None and _ALLOCATES.fullmatch(source.node_code(called)) is not None
    return "`malloc`" if is_malloc else ""


def _of_members(kernel: Kernel, function: HostFunction, name: str, parameter: str) -> Iterator[Finding]:
    """Pointers in a struct that the launch is handed, which are set once and which the kernel names."""
    for member, values in function.assigned.items():
        owner, _, label = member.partition(".")
        what = _made_by(function.source, values[0]) if owner == name and label.isidentifier() else ""
        if not what or len(function.settings.get(member, ())) != 1 or function.registered:
            continue
        used = re.compile(rf"\b{re.escape(parameter)}\s*\.\s*{label}\b")
        texts = [kernel.span.text, *(each.source.node_text(each.node) for each in kernel.callees)]
        if any(used.search(text) for text in texts):
            yield Finding(
                span=function.source.span(values[0]),
                message=(
                    f"`{member}` is host memory ({what}), passed to the kernel as `{parameter}.{label}`"
                    "\nCopy it to device memory (cudaMalloc), or allocate it with cudaMallocManaged."
                ),
                evidence={"parameter": f"{parameter}.{label}", "argument": member},
            )


def _is_kept(function: HostFunction, name: str) -> bool:
    """Whether a name is that of the one smart pointer that frees its memory by `delete`."""
    declared, source = function.declared.get(name, ()), function.source
    if len(declared) != 1:
        return False
    kind, declarator = declared[0]
    value = declarator.child_by_field_name("value")
    made = "".join(source.node_code(value).split()) if value is not None else ""
    text = "".join(source.node_code(kind).split())
    return _KEEPS.fullmatch(text) is not None or (text == "auto" and _MAKES.fullmatch(made) is not None)


def _is_variable(function: HostFunction, name: str) -> bool:
    """Whether a name is that of one number of the function's own."""
    declared = function.declared.get(name, ())
    if len(declared) != 1 or function.registered:
        return False
    kind, declarator = declared[0]
    around = parent_of(kind)
    inner = declarator.child_by_field_name("declarator") if declarator.type == "init_declarator" else declarator
    is_local = around is not None and around.type == "declaration" and "__" not in function.source.node_code(around)
    plain = inner is not None and inner.type == "identifier"
    return is_local and plain and builtin_type(function.source.node_code(kind)) is not None
