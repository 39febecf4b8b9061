"""Copy or fill as many bytes as the array was allocated with.

## Before

```cuda
__global__ void add(float *sums, const float *x) { sums[threadIdx.x] += x[threadIdx.x]; }

void run(const float *x, int n) {
  float *sums;
  cudaMalloc(&sums, n * sizeof(float));
  cudaMemset(sums, 0, n);
  add<<<1, n>>>(sums, x);
}
```

## After

```cuda
__global__ void add(float *sums, const float *x) { sums[threadIdx.x] += x[threadIdx.x]; }

void run(const float *x, int n) {
  float *sums;
  cudaMalloc(&sums, n * sizeof(float));
  cudaMemset(sums, 0, n * sizeof(float));
  add<<<1, n>>>(sums, x);
}
```

## Assumes

- The function allocates the array once, before, and nothing between gives the variables of its size other values. A row
  of a copy by rows is as long as the distance of the rows that the call gives; a `T x[n]` of the device has n elements.
- The memory on the host's side has as many bytes.

## Cost

The bytes that were left out.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.cuda.owners import owners_in
from warpwright.facts.host_scopes import written_names
from warpwright.facts.model import Kernel
from warpwright.rewrites._allocations import pointer_set_by
from warpwright.rewrites._code import as_factor, in_macro, overlaps
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import descendants, enclosing, uncast, uncommented
from warpwright.syntax.source import Source, Span

NAME = "copy-whole-array"
title = "Ask for all bytes of the array"
goals = ("fix",)
relies_on = ()

_MOVES = re.compile(r"cudaMem(?:cpy|set)(?:Async)?")
_ROWS = re.compile(r"cudaMem(cpy|set)2D(?:Async)?")
_SYMBOLS = re.compile(r"cudaMemcpyToSymbol(?:Async)?")


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    source = kernel.source
    edits: list[TextEdit] = []
    for call in descendants(source.root, "call_expression"):
        found = _sizes(source, call)
        if found is not None:
            size, bytes_of = found
            if overlaps(source.span(size), at) if at is not None else _counts_elements(source, size, bytes_of):
                edits.append(TextEdit(size.start_byte, size.end_byte, source.node_text(bytes_of)))
        else:
            edits += _in_bytes(source, call, at)
    if not edits:
        return Declined(NAME, f"No copy around {kernel.name} is known to have another size than its array.")
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=source,
        edits=tuple(edits),
        explanation=(
            "cudaMemcpy and cudaMemset take a size in bytes: with too few, no call fails and the rest of the array "
            "is left out. The size is now that of the allocation."
        ),
    )


def _sizes(source: Source, call: Node) -> tuple[Node, Node] | None:
    """The size that a copy or a fill asks for, and the one of the allocation of its array."""
    given = [uncast(source, each) for each in uncommented(call.child_by_field_name("arguments"))]
    function = enclosing(call, "function_definition")
    if function is None or len(given) < 3 or in_macro(call) or not _MOVES.fullmatch(called_name(call, source)):
        return None
    named = {source.node_text(each) for each in given[:2] if each.type == "identifier"}
    made = [c for c in descendants(function, "call_expression") if pointer_set_by(source, c) in named]
    if len(made) != 1 or made[0].start_byte > call.start_byte:
        return None
    bytes_of = uncommented(made[0].child_by_field_name("arguments"))[1]
    used = {source.node_text(each) for each in descendants(bytes_of, "identifier")}
    changed = any(
        made[0].end_byte <= name.start_byte < call.start_byte and source.node_text(name) in used
        for name in written_names(function)
    )
    return None if changed or _words(source, given[2]) == _words(source, bytes_of) else (given[2], bytes_of)


def _in_bytes(source: Source, call: Node, at: Span | None) -> list[TextEdit]:
    """The size at a place in bytes: of a row by the distance of rows, which counts elements; of a symbol by itself."""
    name = called_name(call, source)
    given = [uncast(source, each) for each in uncommented(call.child_by_field_name("arguments"))]
    rows, symbol = _ROWS.fullmatch(name), _SYMBOLS.fullmatch(name)
    place = 2 if rows is None else 4 if rows[1] == "cpy" else 3
    function = enclosing(call, "function_definition")
    if function is None or in_macro(call) or len(given) <= place or given[place].type == "sizeof_expression":
        return []
    size, text = given[place], ""
    if at is not None and not overlaps(source.span(size), at):
        return []
    if rows is not None:
        pitches = (given[n] for n in ((1, 3) if rows[1] == "cpy" else (1,)))
        text = next((source.node_text(each) for each in pitches if _counts_elements(source, size, each)), "")
    elif symbol is not None:
        text = f"sizeof({source.node_text(given[0])})" if at is not None else ""
    elif _MOVES.fullmatch(name):
        handed = {_words(source, each) for each in given[:2]}
        owned = (o for o in owners_in(source, function) if handed & {o.name + each for each in o.kind.pointers})
        owner = next(owned, None)
        counts = {_words(source, owner.elements), *(owner.name + each for each in owner.kind.counts)} if owner else ()
        if owner is not None and _words(source, size) in counts:
            text = f"{as_factor(source.node_text(size))} * sizeof({owner.element})"
    return [TextEdit(size.start_byte, size.end_byte, text)] if text else []


def _counts_elements(source: Source, size: Node, bytes_of: Node) -> bool:
    """Whether one is `n` where the other is `n * sizeof(T)`."""
    sides = [_words(source, side) for side in uncommented(bytes_of)] if bytes_of.type == "binary_expression" else []
    return _words(source, size) in sides and any(side.startswith("sizeof") for side in sides)


def _words(source: Source, node: Node) -> str:
    return "".join(source.node_code(uncast(source, node)).split())
