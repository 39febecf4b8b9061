"""A copy or a fill is given a number of elements where it wants bytes.

## Why is this bad?

`cudaMemcpy` and `cudaMemset` count bytes. Of an array of n floats, n bytes are its first quarter: the rest keeps what
was there before, and no call fails.

## Example

```cuda
__global__ void add(float *sums, const float *x) { sums[threadIdx.x] += x[threadIdx.x]; }

void run(const float *x, int n) {
  float *sums;
  cudaMalloc(&sums, n * sizeof(float));
  cudaMemset(sums, 0, n);
  add<<<1, n>>>(sums, x);
}
```

## Use instead

```cuda
__global__ void add(float *sums, const float *x) { sums[threadIdx.x] += x[threadIdx.x]; }

void run(const float *x, int n) {
  float *sums;
  cudaMalloc(&sums, n * sizeof(float));
  cudaMemset(sums, 0, n * sizeof(float));
  add<<<1, n>>>(sums, x);
}
```

## Limits

- Of pointers that the function hands to the kernel by their names and allocates once, as `n * sizeof(T)`: copies and
  fills of `n` bytes in so many words. Of copies and fills whose size is that of a pointer that they are handed:
  `sizeof(x)`. Of objects of classes that allocate n elements in their constructor, copies of n or `x.size()` bytes; of
  chunks that lie n elements apart, as in `x + i * n`, copies of n bytes. Of rows, those of `n` bytes whose pitch is
  `n * sizeof(T)`. Of a variable of the device that the kernel names, `T x[n]`, copies of `n` bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from tree_sitter import Node

from warpwright.cuda.owners import owners_in
from warpwright.facts.model import Kernel
from warpwright.rules.base import Finding, Fix, Related, Severity
from warpwright.rules.host._pointers import HostFunction, launches_of, pointers_of
from warpwright.syntax.encoding import decoded, encoded
from warpwright.syntax.nodes import uncast, uncommented
from warpwright.syntax.source import Source

severity = Severity.ERROR

FIXES = (Fix("copy-whole-array", "Ask for all bytes of the array"),)

_BYTES = re.compile(r"\b(?:u?int8_t|char|bool|byte|uchar)\b")


def check(kernel: Kernel) -> Iterator[Finding]:
    yield from _of_symbols(kernel)
    for function in {id(launch.function): launch.function for launch in launches_of(kernel)}.values():
        yield from _of_owners(function)
        yield from _of_chunks(function)
    for function, name in pointers_of(kernel):
        yield from _of_pointers(function, name)
        yield from _of_rows(function, name)
        allocated = _elements(function, name)
        if allocated is None:
            continue
        allocation, elements = allocated
        source = function.source
        for call in function.moves.get(name, ()):
            if len(call.arguments) < 3 or _words(source, call.arguments[2]) != elements:
                continue
            found = _counted(source, call.arguments[2], name, f"`{name}`")
            yield replace(found, related=(Related(source.span(allocation), "allocated here"),))


def _counted(source: Source, size: Node, name: str, what: str) -> Finding:
    """A size in elements of `what`, in place of bytes."""
    bytes_of = source.node_code(size)
    return Finding(
        span=source.span(size),
        message=(
            f"{what} has `{bytes_of}` elements of several bytes, and the call counts bytes."
            "\nThe rest keeps what was there before: multiply by the size of an element."
        ),
        evidence={"pointer": name, "bytes": bytes_of},
        fixes=FIXES,
    )


def _of_pointers(function: HostFunction, name: str) -> Iterator[Finding]:
    """Copies and fills of as many bytes as a pointer has."""
    source = function.source
    for call in function.moves.get(name, ()):
        size = call.arguments[2] if len(call.arguments) > 2 else None
        if size is None or size.type != "sizeof_expression":
            continue
        sized = _words(source, size).removeprefix("sizeof").strip("()")
        declared = function.declared.get(sized, ())
        handed = sized in (_words(source, each) for each in call.arguments[:2])
        if handed and len(declared) == 1 and _is_pointer(declared[0][1]):
            yield Finding(
                span=source.span(size),
                message=(
                    f"`{source.node_code(size)}` is the size of the pointer, not that of the array"
                    "\nThe rest keeps what was there before: multiply the elements by the size of one."
                ),
                evidence={"pointer": name, "bytes": source.node_code(size)},
                fixes=FIXES,
            )


def _of_rows(function: HostFunction, name: str) -> Iterator[Finding]:
    """Copies and fills of rows of as many bytes as a row has elements."""
    source = function.source
    for call in function.row_moves.get(name, ()):
        copies = "cpy" in source.node_code(call.node).partition("(")[0]
        pitches, at = ((1, 3), 4) if copies else ((1,), 3)
        if len(call.arguments) <= at:
            continue
        width = call.arguments[at]
        elements = [_elements_in(source, call.arguments[pitch]) for pitch in pitches]
        if _words(source, width) in elements:
            yield _counted(source, width, name, "A row")


def _of_owners(function: HostFunction) -> Iterator[Finding]:
    """Copies and fills of as many bytes as an object that owns its memory has elements."""
    source = function.source
    for owner in owners_in(source, function.node):
        if _BYTES.search(owner.element):
            continue
        counts = {owner.name + each for each in owner.kind.counts} | {_words(source, owner.elements)}
        for pointer in sorted(owner.kind.pointers):
            for call in function.moves.get(owner.name + pointer, ()):
                if len(call.arguments) > 2 and _words(source, call.arguments[2]) in counts:
                    yield _counted(source, call.arguments[2], owner.name, f"`{owner.name}`")


def _of_chunks(function: HostFunction) -> Iterator[Finding]:
    """Copies and fills of chunks that lie as many elements apart as the call asks for bytes: `x + c * chunk`."""
    source = function.source
    for call in function.all_moves:
        if len(call.arguments) < 3 or call.arguments[2].type != "identifier":
            continue
        size = _words(source, call.arguments[2])
        for place in call.arguments[:2]:
            name, apart = _chunks(source, place)
            declared = function.declared.get(name, [])
            is_wide = (
                len(declared) == 1
                and _is_pointer(declared[0][1])
                and not _BYTES.search(source.node_code(declared[0][0]))
            )
            if is_wide and size in apart and "void" not in source.node_code(declared[0][0]):
                yield _counted(source, call.arguments[2], name, f"A chunk of `{name}`")
                break


def _chunks(source: Source, place: Node) -> tuple[str, list[str]]:
    """The pointer and the factors of its offset in `x + c * chunk`, or in `&x[c * chunk]`."""
    if place.type == "pointer_expression":
        inner = uncommented(place)[-1]
        pointer, index = inner.child_by_field_name("argument"), inner.child_by_field_name("indices")
        sides = [pointer, *(uncommented(index) if index is not None else [])]
    elif place.type == "binary_expression" and source.node_code(place.children[1]) == "+":
        sides = [place.child_by_field_name("left"), place.child_by_field_name("right")]
    else:
        return "", []
    if len(sides) != 2 or sides[0] is None or sides[1] is None or sides[0].type != "identifier":
        return "", []
    offset = uncast(source, sides[1])
    if offset.type != "binary_expression" or source.node_code(offset.children[1]) != "*":
        return "", []
    return source.node_code(sides[0]), [_words(source, each) for each in uncommented(offset) if each.is_named]


def _of_symbols(kernel: Kernel) -> Iterator[Finding]:
    """Copies to variables of the device of as many bytes as they have elements."""
    text = kernel.span.source.code[kernel.span.start : kernel.span.end]
    seen: set[int] = set()
    for launch in launches_of(kernel):
        source = launch.function.source
        for name, calls in launch.function.symbol_copies.items():
            array = re.search(
                rf"\b__(?:constant|device)__\s+([^;{{}}()]*?)\b{name}\s*\[([^\]]*)\]\s*[;={{]", decoded(source.code)
            )
            if array is None or _BYTES.search(array[1]) or not re.search(rb"\b%s\b" % encoded(name), text):
                continue
            for call in calls:
                size = call.arguments[2] if len(call.arguments) > 2 else None
                if size is None or size.start_byte in seen or _words(source, size) != "".join(array[2].split()):
                    continue
                seen.add(size.start_byte)
                yield _counted(source, size, name, f"`{name}`")


def _is_pointer(declarator: Node) -> bool:
    inner = declarator.child_by_field_name("declarator") if declarator.type == "init_declarator" else declarator
    return inner is not None and inner.type == "pointer_declarator"


def _elements(function: HostFunction, name: str) -> tuple[Node, str] | None:
    """The one allocation of a pointer, and how many elements of several bytes each it asks for, in words."""
    found, source = function.allocations.get(name, ()), function.source
    if len(found) != 1 or len(found[0].arguments) < 2:
        return None
    elements = _elements_in(source, found[0].arguments[1])
    return (found[0].node, elements) if elements else None


def _elements_in(source: Source, product: Node) -> str:
    """The words for n in `n * sizeof(T)`, of elements of several bytes; none for another size."""
    if product.type != "binary_expression" or source.node_code(product.children[1]) != "*":
        return ""
    sides = [uncast(source, side) for side in uncommented(product) if side.is_named]
    sizes = [side for side in sides if side.type == "sizeof_expression"]
    if len(sides) != 2 or len(sizes) != 1 or _BYTES.search(source.node_code(sizes[0])):
        return ""
    return _words(source, sides[0] if sides[1] is sizes[0] else sides[1])


def _words(source: Source, node: Node) -> str:
    return "".join(source.node_code(uncast(source, node)).split())
