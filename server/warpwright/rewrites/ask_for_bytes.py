"""Ask for memory in bytes, not in elements.

## Before

```cuda
__global__ void ramp(int *x) { x[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x; }

void run() {
  int *x;
  cudaMalloc(&x, 512);
  ramp<<<2, 256>>>(x);
}
```

## After

```cuda
__global__ void ramp(int *x) { x[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x; }

void run() {
  int *x;
  cudaMalloc(&x, 512 * sizeof(int));
  ramp<<<2, 256>>>(x);
}
```

## Assumes

- The launch uses just as many elements as the size asks for bytes: of a cudaMalloc in the function that launches, or of
  the launch's dynamic shared memory.

## Cost

The memory that was meant.
"""

from __future__ import annotations

from tree_sitter import Node

from warpwright.facts.model import Kernel, Launch, OutOfBounds
from warpwright.rewrites._allocations import pointer_set_by
from warpwright.rewrites._code import as_factor, in_macro, overlaps
from warpwright.rewrites._grids import call_of
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import descendants, enclosing, launch_configuration, uncommented
from warpwright.syntax.source import Source, Span

NAME = "ask-for-bytes"
title = "Multiply by the size of an element"
goals = ("fix",)
relies_on = ()


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    source = kernel.source
    for access in kernel.outside:
        if (at is None or overlaps(access.span, at)) and access.address + access.bytes == access.size * access.bytes:
            found = _size_of(kernel, access)
            if found is not None:
                size, element = found
                text = f"{as_factor(source.node_text(size))} * sizeof({element})"
                return Rewrite(
                    rewrite=NAME,
                    title=title,
                    source=source,
                    edits=(TextEdit(size.start_byte, size.end_byte, text),),
                    explanation=(
                        f"Memory is asked for in bytes. The launch uses {access.size:,} elements of `{access.array}`, "
                        f"and {access.size:,} bytes were asked for."
                    ),
                )
    return Declined(NAME, f"No size around {kernel.name} is known to count elements where it should count bytes.")


def _size_of(kernel: Kernel, access: OutOfBounds) -> tuple[Node, str] | None:
    """The size that an array was asked for with, and the type of its elements."""
    launch = kernel.launches[access.launch] if 0 <= access.launch < len(kernel.launches) else None
    call = call_of(launch) if launch is not None else None
    if launch is None or call is None or launch.span is None or launch.span.source is not kernel.source:
        return None
    shared = next((each for each in kernel.shared_arrays if each.name == access.array and each.dynamic), None)
    found = _dynamic(call) if shared is not None else _allocated(kernel, launch, call, access.array)
    if found is None or in_macro(found) or any(True for _ in descendants(found, "sizeof_expression")):
        return None
    parameter = next((each for each in kernel.parameters if each.name == access.array), None)
    element = shared.element_type if shared is not None else _element(parameter.type) if parameter is not None else ""
    return (found, element) if element else None


def _element(pointer: str) -> str:
    """The type that a pointer's type points to.

    >>> _element("const float *__restrict__"), _element("int")
    ('float', '')
    """
    pointed, star, _ = pointer.partition("*")
    words = [word for word in pointed.split() if word not in ("const", "volatile", "__restrict__", "restrict")]
    return " ".join(words) if star else ""


def _dynamic(call: Node) -> Node | None:
    given = uncommented(launch_configuration(call))
    return given[2] if len(given) > 2 else None


def _allocated(kernel: Kernel, launch: Launch, call: Node, array: str) -> Node | None:
    source: Source = kernel.source
    function, given = enclosing(call, "function_definition"), uncommented(call.child_by_field_name("arguments"))
    place = next((n for n, each in enumerate(kernel.parameters) if each.name == array), len(given))
    if function is None or place >= len(given) or given[place].type != "identifier":
        return None
    name = source.node_text(given[place])
    made = [each for each in descendants(function, "call_expression") if pointer_set_by(source, each) == name]
    return uncommented(made[0].child_by_field_name("arguments"))[1] if len(made) == 1 else None
