"""Declare a shared array with the shortest type that holds all that is stored in it.

## Before

```cuda
__global__ void edges(int *counts, const float *in) {
  __shared__ int rises[257];
  int t = threadIdx.x;
  rises[t] = in[blockIdx.x * 256 + t] > 0.5f;
  if (t == 0)
    rises[256] = 0;
  __syncthreads();
  int here = rises[t] - rises[t + 1];
  counts[blockIdx.x * 256 + t] = here * here;
}

void run(int *counts, const float *in) {
  edges<<<64, 256>>>(counts, in);
}
```

## After

```cuda
__global__ void edges(int *counts, const float *in) {
  __shared__ unsigned char rises[257];
  int t = threadIdx.x;
  rises[t] = in[blockIdx.x * 256 + t] > 0.5f;
  if (t == 0)
    rises[256] = 0;
  __syncthreads();
  int here = rises[t] - rises[t + 1];
  counts[blockIdx.x * 256 + t] = here * here;
}

void run(int *counts, const float *in) {
  edges<<<64, 256>>>(counts, in);
}
```

## Assumes

- The array is a static `__shared__` array of `int`, `unsigned int`, a 64-bit integer or `double`, used by its elements
  alone: no address, no atomic, no `sizeof`.
- Its elements are set with `=` alone, each time to a value whose range the kernel's text gives: flags, thread numbers,
  counts such as `__popc`, remainders and masks, loop counters between constants, values of shorter types; of a `double`
  array, values of type `float`, integers that `float` holds, and such literals.
- Where an element is read other than as an index or to be assigned, and the shorter type would change the arithmetic,
  it is cast to the type that it had.

## Cost

An instruction for each read of which the machine extends the value, and one for each conversion from `float` to
`double`. Results stay the same bit for bit.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.facts.lifts import size_words
from warpwright.facts.model import Kernel, SharedArray, Space
from warpwright.facts.types import DOUBLE, INT, LONG, UINT, ULONG, CType, builtin_type
from warpwright.rewrites._arrays import GRANULE, declarator_of, element_uses, misuse
from warpwright.rewrites._code import body, in_macro, overlaps
from warpwright.rewrites._gain import edited_kernel
from warpwright.rewrites._ranges import NOTHING, Range, Ranges
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import enclosing
from warpwright.syntax.source import Source, Span

NAME = "shorten-shared-type"
title = "Use a narrower type for the shared array"
goals = ("memory",)
relies_on = ()

_TYPES = {INT, UINT, LONG, ULONG, DOUBLE}
_SHORTER: tuple[tuple[Range, str, int], ...] = (
    ((0, 255), "unsigned char", 1),
    ((-128, 127), "signed char", 1),
    ((0, 65535), "unsigned short", 2),
    ((-32768, 32767), "short", 2),
    ((-(1 << 31), (1 << 31) - 1), "int", 4),
)
_KEEPS = ("subscript_argument_list", "condition_clause")
"""What takes an element as it is, whatever its integer type."""


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    arrays = [a for a in kernel.shared_arrays if not a.dynamic and a.dims and builtin_type(a.element_type) in _TYPES]
    if at is not None:
        arrays = [a for a in arrays if overlaps(a.span, at)]
    if not arrays:
        return Declined(NAME, f"{kernel.name} has no static shared array of whole numbers or doubles here.")
    results = [_shortened(kernel, array) for array in sorted(arrays, key=lambda a: a.bytes or 0, reverse=True)]
    return next((result for result in results if isinstance(result, Rewrite)), results[0])


def _shortened(kernel: Kernel, array: SharedArray) -> Rewrite | Declined:
    block, source, name, size = body(kernel), kernel.source, array.name, array.bytes
    declarator = declarator_of(block, source, name) if block is not None else None
    declaration = enclosing(declarator, "declaration") if declarator is not None else None
    kind = declaration.child_by_field_name("type") if declaration is not None else None
    old = builtin_type(source.node_text(kind)) if kind is not None else None
    if block is None or declarator is None or declaration is None or kind is None or not size:
        return Declined(NAME, f"The declaration of `{name}` in {kernel.name}, or its size, is not found.")
    if old is None:
        return Declined(NAME, f"`{name}` is declared with a type whose name is not CUDA's own.")
    if reason := misuse(block, source, name, len(array.dims), declarator):
        return Declined(NAME, reason)
    if len(declaration.children_by_field_name("declarator")) > 1 or in_macro(declaration):
        return Declined(NAME, f"`{name}` is declared together with other variables.")
    if found := re.search(r"volatile|align", source.node_code(declaration)):
        return Declined(NAME, f"`{name}` is declared `{found.group()}`.")
    uses = element_uses(block, source, name, declarator)
    new = _type_of_stores(Ranges(kernel, block, name), source, uses, old, name)
    if isinstance(new, str):
        return Declined(NAME, new)
    written, width = new
    saved = size - size // (old.size or 1) * width
    if saved < GRANULE:
        return Declined(
            NAME, f"Nothing to gain: `{written}` would save {saved} bytes of the {GRANULE} given at a time."
        )
    edits = [TextEdit(kind.start_byte, kind.end_byte, written)]
    cast = f"({source.node_text(kind)})"
    edits += [TextEdit(use.start_byte, use.start_byte, cast) for use in uses if _needs_cast(source, use, old)]
    if _wavefronts(edited_kernel(kernel, edits), name) > _wavefronts(kernel, name):
        return Declined(NAME, f"As `{written}`, the lanes of a warp would meet in the banks of `{name}` more often.")
    return Rewrite(
        rewrite=NAME,
        title=f"Declare {name} as {written}",
        source=source,
        edits=tuple(edits),
        explanation=(
            f"All that the kernel stores in {name} fits {written}, so the array takes {size_words(size - saved)} of "
            f"shared memory instead of {size_words(size)} and the results stay the same bit for bit. It costs an "
            "instruction where a read has to be widened."
        ),
    )


def _type_of_stores(ranges: Ranges, source: Source, uses: list[Node], old: CType, name: str) -> tuple[str, int] | str:
    """The shortest type of all that is stored and its bytes; a reason where there is none."""
    known = NOTHING
    for use in uses:
        line, text = source.position(use.start_byte)[0], source.node_text(use)
        parent = use.parent
        while parent is not None and parent.type == "parenthesized_expression":
            parent = parent.parent
        if parent is not None and parent.type in ("pointer_expression", "update_expression", "field_expression"):
            return f"`{source.node_text(parent)}` at line {line} does more than set or read an element of `{name}`."
        if in_macro(use):
            return f"`{name}` is used in a macro."
        if parent is None or parent.type != "assignment_expression" or parent.child_by_field_name("left") != use:
            continue
        operator, value = parent.child_by_field_name("operator"), parent.child_by_field_name("right")
        if operator is None or value is None or source.node_text(operator) != "=":
            return f"`{text}` is added to, or changed in another way, at line {line}."
        if _is_value_used(source, parent):
            return f"The assignment to `{text}` at line {line} is part of an expression, which takes its type."
        if old == DOUBLE:
            if not ranges.is_float(value):
                return f"What line {line} stores in `{name}` may be no value of float."
            known = (0, 0)
            continue
        found = ranges.range(value)
        if found is None:
            return f"How large the value is that line {line} stores in `{name}` does not follow from the text."
        known = (min(known[0], found[0]), max(known[1], found[1]))
    if known == NOTHING:
        return f"Nothing is stored in `{name}` here."
    if old == DOUBLE:
        return "float", 4
    for (low, high), written, width in _SHORTER:
        if low <= known[0] and known[1] <= high and width < (old.size or 0):
            return written, width
    return f"Nothing to gain: values from {known[0]} to {known[1]} need the type that `{name}` has."


def _is_value_used(source: Source, assignment: Node) -> bool:
    """Whether what an assignment gives is used other than to be assigned in turn: `(a[t] = x) << 40`."""
    outer = assignment.parent
    while outer is not None and outer.type == "parenthesized_expression":
        outer = outer.parent
    if outer is None or outer.type in ("expression_statement", "comma_expression", "for_statement"):
        return False
    operator = outer.child_by_field_name("operator") if outer.type == "assignment_expression" else None
    return operator is None or source.node_text(operator) != "="


def _needs_cast(source: Source, use: Node, old: CType) -> bool:
    """Whether a read of the shorter type could mean something else where it stands.

    An integer shorter than int is an int in arithmetic; every other type is cast wherever it is part of an expression.
    """
    child, parent = use, use.parent
    while parent is not None and parent.type == "parenthesized_expression":
        child, parent = parent, parent.parent
    if parent is None:
        return True
    match parent.type:
        case "assignment_expression":
            operator = parent.child_by_field_name("operator")
            if parent.child_by_field_name("left") == child:
                return False
            return old != INT and (operator is None or source.node_text(operator) != "=")
        case "init_declarator":
            declaration = parent.parent
            kind = declaration.child_by_field_name("type") if declaration is not None else None
            return kind is None or "auto" in source.node_code(kind)
        case "binary_expression" | "unary_expression":
            operator = parent.child_by_field_name("operator") or parent.children[0]
            return old != INT and source.node_text(operator) not in ("!", "&&", "||")
        case "cast_expression":
            return False
        case "expression_statement":
            return False
    return parent.type not in _KEEPS


def _wavefronts(kernel: Kernel | None, name: str) -> float:
    """Wavefronts of all requests to an array, as far as they are known."""
    accesses = kernel.accesses if kernel is not None else ()
    mine = [a for a in accesses if a.space is Space.SHARED and a.array == name]
    return sum((a.wavefronts_per_request or 0.0) * a.requests for a in mine)
