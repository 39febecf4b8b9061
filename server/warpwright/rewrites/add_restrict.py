"""Declare a kernel's pointers `__restrict__`.

## Before

```cuda
__global__ void square(float *out, const float *in, int columns) {
  int row = blockIdx.x * columns;
  for (int i = threadIdx.x; i < columns; i += 256) {
    out[row + i] = in[row + i] * in[row + i];
  }
}
```

## After

```cuda
__global__ void square(float *__restrict__ out, const float *__restrict__ in, int columns) {
  int row = blockIdx.x * columns;
  for (int i = threadIdx.x; i < columns; i += 256) {
    out[row + i] = in[row + i] * in[row + i];
  }
}
```

## Assumes

No launch hands the kernel two pointers to the same memory, where it stores through one of them. The launches found
are looked at; whether pointers of different names overlap is not known.

## Cost

More registers, for loads that are issued earlier.
"""

from __future__ import annotations

from warpwright.facts.aliasing import restrictable, restricted
from warpwright.facts.model import Kernel
from warpwright.rewrites._code import body, in_macro
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import descendants
from warpwright.syntax.source import Span

title = "Declare the pointers __restrict__"
goals = ("speed",)
relies_on = (Reliance.APART,)

NAME = "add-restrict"


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    source, inside = kernel.source, body(kernel)
    if kernel.node is None or inside is None:
        return Declined(NAME, f"{kernel.name} is defined elsewhere.")
    if in_macro(kernel.node):
        return Declined(NAME, f"{kernel.name} is defined by a macro.")
    pointers = restrictable(kernel)
    if not pointers or len(pointers) + len(restricted(kernel)) < 2:
        return Declined(NAME, "The kernel has no two pointers that the compiler cannot tell apart.")
    for assignment in descendants(inside, "assignment_expression"):
        target, operator = assignment.child_by_field_name("left"), assignment.child_by_field_name("operator")
        assigned = source.node_text(target) if target is not None else ""
        if assigned in pointers and operator is not None and source.node_text(operator) == "=":
            return Declined(NAME, f"The kernel assigns another address to {assigned}.")
    return Rewrite(
        NAME,
        title,
        source,
        tuple(TextEdit(n.start_byte, n.start_byte, "__restrict__ ") for n in pointers.values()),
        f"The compiler may take {', '.join(pointers)} for separate arrays, so that a load need not wait for the stores "
        "before it. That must be true of every launch. Loads that are issued earlier need registers.",
        safe=False,
    )
