"""Keep a thread's small array in shared memory, where data picks its elements.

## Before

```cuda
__global__ void histograms(int *out, const unsigned char *in, int rows, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  int bins[16];
  for (int b = 0; b < 16; b++)
    bins[b] = 0;
  for (int c = 0; c < columns; c++)
    bins[in[c * rows + row] % 16]++;
  for (int b = 0; b < 16; b++)
    out[b * rows + row] = bins[b];
}

void run(int *out, const unsigned char *in, int rows, int columns) {
  histograms<<<(rows + 127) / 128, 128>>>(out, in, rows, columns);
}
```

## After

```cuda
__global__ void histograms(int *out, const unsigned char *in, int rows, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  __shared__ int bins[16][128];
  for (int b = 0; b < 16; b++)
    bins[b][threadIdx.x] = 0;
  for (int c = 0; c < columns; c++)
    bins[in[c * rows + row] % 16][threadIdx.x]++;
  for (int b = 0; b < 16; b++)
    out[b * rows + row] = bins[b][threadIdx.x];
}

void run(int *out, const unsigned char *in, int rows, int columns) {
  histograms<<<(rows + 127) / 128, 128>>>(out, in, rows, columns);
}
```

## Assumes

- Every launch is found, with one-dimensional blocks of one size.
- The array holds numbers, every use of it names one element, and it is set before it is read.
- With the rest of the block's shared memory it fits in 48 KB, and blocks enough for half of the threads that a
  multiprocessor can hold have room.

## Cost

Shared memory for each thread of the block. Each thread has a column of its own, so lanes use different banks whichever
elements they want, and no barrier is needed. Results stay the same bit for bit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from tree_sitter import Node

from warpwright.cuda.numbers import number_at
from warpwright.facts.model import Dim3, Kernel
from warpwright.facts.types import CType, builtin_type
from warpwright.rewrites._arrays import element_uses, extents_of, misuse
from warpwright.rewrites._code import NoMatchError, body_of, host_launches, matched, overlaps, squeezed
from warpwright.rewrites._launched import block_of_all_launches
from warpwright.rewrites._layout import after_statement, free_name, indent_unit, line_of
from warpwright.rewrites._limits import SHARED_BYTES
from warpwright.rewrites._movable import block_by_directive, unmovable
from warpwright.rewrites._names import assignments
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import LOOPS, ancestors, declared_name, descendants, uncommented
from warpwright.syntax.source import Source, Span

NAME = "thread-array-in-shared"
title = "Move the local array to shared memory"
goals = ("speed",)
relies_on = (Reliance.BLOCK, Reliance.SHARED)

MOST = 144
"""Bytes of a thread up to which 1,024 threads, in blocks of 128, have room in the 164 KB of compute capability 8.0, of
which each block takes 1 KB besides (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability")."""
FEWEST = 3
"""Elements from which the compiler is taken to do more than pick one of two."""


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = body_of(kernel)
    reason = "No thread here has an array whose elements data pick in a loop."
    for declaration in descendants(block, "declaration"):
        declarators = declaration.children_by_field_name("declarator")
        inner = [d.child_by_field_name("declarator") if d.type == "init_declarator" else d for d in declarators]
        if len(inner) != 1 or inner[0] is None or inner[0].type != "array_declarator":
            continue
        name = declared_name(kernel.source, inner[0])
        if any(kernel.source.node_text(child) == "__shared__" for child in declaration.children):
            continue
        if at is not None and not any(overlaps(kernel.source.span(n), at) for n in _uses(kernel, block, name)):
            continue
        if not _is_picked_by_data(kernel, block, name, inner[0]):
            continue
        try:
            return _rewrite(kernel, block, declaration, inner[0], name)
        except NoMatchError as mismatch:
            reason = str(mismatch)
    return Declined(NAME, reason)


def _uses(kernel: Kernel, block: Node, name: str) -> list[Node]:
    source = kernel.source
    return [n for n in descendants(block, "subscript_expression") if source.node_code(n).startswith(name)]


def _is_picked_by_data(kernel: Kernel, block: Node, name: str, declarator: Node) -> bool:
    """Whether memory decides, in a loop, which element is used."""
    source = kernel.source
    given = assignments(block, source)
    for element in element_uses(block, source, name, declarator):
        looped = any(n.type in LOOPS for n in ancestors(element) if n.start_byte > block.start_byte)
        if looped and any(_is_loaded(source, given, index, 4) for index in _subscripts(element)):
            return True
    return False


def _subscripts(element: Node) -> list[Node]:
    found: list[Node] = []
    node: Node | None = element
    while node is not None and node.type == "subscript_expression":
        found += uncommented(node.child_by_field_name("indices"))
        node = node.child_by_field_name("argument")
    return found


def _is_loaded(source: Source, given: Mapping[str, list[Node]], node: Node, depth: int) -> bool:
    """Whether something that is read from memory goes into an expression."""
    if any(True for _ in descendants(node, "subscript_expression", "pointer_expression")):
        return True
    values = (v for n in descendants(node, "identifier") for v in _values(source, given, n))
    return depth > 0 and any(_is_loaded(source, given, value, depth - 1) for value in values)


def _values(source: Source, given: Mapping[str, list[Node]], use: Node) -> list[Node]:
    """What a variable is set to: of one that a loop around declares, where it starts."""
    name = source.node_text(use)
    for around in ancestors(use):
        initializer = around.child_by_field_name("initializer") if around.type == "for_statement" else None
        for declared in descendants(initializer, "init_declarator") if initializer is not None else ():
            value = declared.child_by_field_name("value")
            if declared_name(source, declared) == name and value is not None:
                return [value]
    return given.get(name, [])


def _rewrite(kernel: Kernel, block: Node, declaration: Node, declarator: Node, name: str) -> Rewrite:
    source, extents = kernel.source, extents_of(declarator)
    if reason := unmovable(kernel):
        raise NoMatchError(reason)
    kind = _kind(source, declaration, name)
    if reason := misuse(block, source, name, len(extents), declarator):
        raise NoMatchError(reason)
    sizes = [number_at(source, declaration, source.node_code(extent)) for extent in extents]
    known = [size for size in sizes if size]
    if not known or len(known) != len(sizes):
        raise NoMatchError(f"How many elements `{name}` has is not known from the text.")
    shape = _shape(kernel)
    if math.prod(known) < FEWEST:
        raise NoMatchError(f"Nothing to gain: `{name}` has {math.prod(known)} elements.")
    own = math.prod(known) * (kind.size or 0)
    others = [launch.dynamic_shared_bytes for launch in host_launches(kernel)]
    shared = kernel.shared_bytes
    taken = own * shape[0]
    if shared is None or None in others or shared + max(o or 0 for o in others) + taken > SHARED_BYTES or own > MOST:
        raise NoMatchError(
            f"`{name}` of all {shape[0]} threads takes {taken} bytes: too much, with the block's other shared memory, "
            "for blocks enough on a multiprocessor."
        )
    edits = [
        TextEdit(declaration.start_byte, declaration.start_byte, "__shared__ "),
        *(TextEdit(e.end_byte, e.end_byte, "[threadIdx.x]") for e in element_uses(block, source, name, declarator)),
        *_declared(kernel, block, declaration, declarator, f"[{shape[0]}]"),
    ]
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=source,
        edits=tuple(edits),
        explanation=(
            f"Data pick the elements of `{name}`, so it cannot be kept in registers: each use is a load or store of "
            f"local memory, at as many places as the lanes want different elements, or a chain of selects. In shared "
            f"memory each of the {shape[0]} threads has a column of its own: one wavefront, whichever elements the "
            f"lanes want. {taken} bytes for each block."
        ),
    )


def _kind(source: Source, declaration: Node, name: str) -> CType:
    """The type of the elements; refuses what cannot be a __shared__ array of numbers."""
    written = declaration.child_by_field_name("type")
    kind = builtin_type(source.node_text(written)) if written is not None else None
    if kind is None or kind.kind not in ("int", "uint", "float") or (kind.size or 0) > 8:
        what = source.node_text(written) if written is not None else "something"
        raise NoMatchError(f"`{name}` holds {what}, which is not known to be a number.")
    qualifiers = [
        source.node_text(c) for c in declaration.children if c.type in ("type_qualifier", "storage_class_specifier")
    ]
    if qualifiers:
        raise NoMatchError(f"`{name}` is declared as {' '.join(qualifiers)}.")
    return kind


def _shape(kernel: Kernel) -> Dim3:
    shape = matched(block_of_all_launches(kernel))
    if reason := block_by_directive(kernel):
        raise NoMatchError(reason)
    if shape[1:] != (1, 1):
        raise NoMatchError(f"{kernel.name} is launched with blocks of more than one dimension.")
    return shape


def _declared(kernel: Kernel, block: Node, declaration: Node, declarator: Node, more: str) -> list[TextEdit]:
    """One more extent, and a loop in place of `= {0}`, which no __shared__ array can have."""
    source, outer, name = kernel.source, declarator.parent, declared_name(kernel.source, declarator)
    if outer is None or outer.type != "init_declarator":
        return [TextEdit(declarator.end_byte, declarator.end_byte, more)]
    value, extents = outer.child_by_field_name("value"), extents_of(declarator)
    listed = squeezed(source.node_code(value)) if value is not None else ""
    if not re.fullmatch(r"\{(?:0(?:\.0*)?[fFuU]?)?\}", listed) or len(extents) != 1:
        line = line_of(source, declaration)
        raise NoMatchError(
            f"`{name}` is initialised with `{listed}` at line {line}, which a __shared__ array cannot be."
        )
    counter = free_name(kernel.span.code, "k")
    unit = indent_unit(source, block)
    head = f"for (int {counter} = 0; {counter} < {source.node_text(extents[0])}; {counter}++)"
    return [
        TextEdit(declarator.end_byte, outer.end_byte, more),
        after_statement(source, declaration, [head, f"{unit}{name}[{counter}][threadIdx.x] = 0;"]),
    ]
