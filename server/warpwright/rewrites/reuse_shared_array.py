"""Let shared arrays that are used one after the other share their memory.

## Before

```cuda
__global__ void standardize(float *data) {
  __shared__ float sums[256];
  __shared__ float squares[256];
  int t = threadIdx.x;
  float value = data[blockIdx.x * 256 + t];
  sums[t] = value;
  __syncthreads();
  for (int s = 128; s > 0; s >>= 1) {
    if (t < s)
      sums[t] += sums[t + s];
    __syncthreads();
  }
  float centred = value - sums[0] / 256;
  squares[t] = centred * centred;
  __syncthreads();
  for (int s = 128; s > 0; s >>= 1) {
    if (t < s)
      squares[t] += squares[t + s];
    __syncthreads();
  }
  data[blockIdx.x * 256 + t] = centred * rsqrtf(squares[0] / 256 + 1e-5f);
}

void run(float *data) {
  standardize<<<64, 256>>>(data);
}
```

## After

```cuda
__global__ void standardize(float *data) {
  __shared__ float sums[256];
  float *squares = sums;
  int t = threadIdx.x;
  float value = data[blockIdx.x * 256 + t];
  sums[t] = value;
  __syncthreads();
  for (int s = 128; s > 0; s >>= 1) {
    if (t < s)
      sums[t] += sums[t + s];
    __syncthreads();
  }
  float centred = value - sums[0] / 256;
  __syncthreads();
  squares[t] = centred * centred;
  __syncthreads();
  for (int s = 128; s > 0; s >>= 1) {
    if (t < s)
      squares[t] += squares[t + s];
    __syncthreads();
  }
  data[blockIdx.x * 256 + t] = centred * rsqrtf(squares[0] / 256 + 1e-5f);
}

void run(float *data) {
  standardize<<<64, 256>>>(data);
}
```

## Assumes

- The arrays are static `__shared__` arrays of one element type, declared at the top of the kernel and used by their
  elements alone: no address other than an atomic's, no `sizeof`, no array passed on.
- In the kernel's body, the last statement that uses one comes before the first that uses the other.
- A barrier that the whole block reaches stands between the two, or can be put there: no thread returns before it.

## Cost

A barrier between the two uses, where there was none. Results stay the same bit for bit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from tree_sitter import Node

from warpwright.facts.lifts import size_words
from warpwright.facts.model import Kernel, SharedArray
from warpwright.rewrites._arrays import GRANULE, declarator_of, element_uses, extents_of, misuse
from warpwright.rewrites._code import body, in_macro, overlaps
from warpwright.rewrites._gain import edited_kernel
from warpwright.rewrites._layout import before_statement, without_lines
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import descendants, enclosing
from warpwright.syntax.source import Source, Span

NAME = "reuse-shared-array"
title = "Share memory between shared arrays"
goals = ("memory",)
relies_on = ()

_UNORDERED = re.compile(r"\basm\b|memcpy_async|__pipeline_|\bpipeline\b|\bgoto\b|\bvolatile\b|#\s*pragma\s+omp")
"""What may still touch an array behind the last statement that names it, or comes back to one before it."""


@dataclass(frozen=True, slots=True)
class _Phase:
    """An array, and the places among the body's statements of the first and the last that use it."""

    array: SharedArray
    declaration: Node
    declarator: Node
    first: int
    last: int

    @property
    def bytes(self) -> int:
        return self.array.bytes or 0


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = body(kernel)
    arrays = [a for a in kernel.shared_arrays if not a.dynamic and a.dims]
    if block is None or len(arrays) < 2:
        return Declined(NAME, f"{kernel.name} does not have two static shared arrays.")
    if found := _UNORDERED.search(kernel.source.node_code(block)):
        return Declined(NAME, f"{kernel.name} uses `{found.group()}`, so when an array is used last is not certain.")
    phases, reason = [], ""
    for array in arrays:
        phase = _phase(kernel, block, array)
        if isinstance(phase, str):
            reason = reason or phase
        else:
            phases.append(phase)
    groups = [_group(phases, largest) for largest in phases]
    groups = [g for g in groups if len(g) > 1 and (at is None or any(overlaps(p.array.span, at) for p in g))]
    if not groups:
        together = f"No two shared arrays of {kernel.name} have one element type and are used one after the other."
        return Declined(NAME, reason or together)
    return _shared(kernel, block, max(groups, key=_saved))


def _phase(kernel: Kernel, block: Node, array: SharedArray) -> _Phase | str:
    """Where an array is used; a reason where that is not certain."""
    source = kernel.source
    declarator = declarator_of(block, source, array.name)
    declaration = enclosing(declarator, "declaration") if declarator is not None else None
    if declarator is None or declaration is None or declaration.parent != block or array.bytes is None:
        return f"`{array.name}` is not declared at the top of {kernel.name}, or its size is not known."
    if reason := misuse(block, source, array.name, len(array.dims), declarator):
        return reason
    if re.search(r"align", source.node_code(declaration)):
        return f"`{array.name}` is declared with an alignment of its own."
    used = [_statement(block, use) for use in element_uses(block, source, array.name, declarator)]
    if not used:
        return f"`{array.name}` is not used."
    return _Phase(array, declaration, declarator, min(used), max(used))


def _statement(block: Node, node: Node) -> int:
    """The place among the body's children of the one that holds a node."""
    return next(i for i, child in enumerate(block.children) if child.start_byte <= node.start_byte < child.end_byte)


def _group(phases: list[_Phase], largest: _Phase) -> list[_Phase]:
    """That array and those no larger of its type whose uses overlap none of the others', in the order of their uses."""
    found = [largest]
    for phase in sorted(phases, key=lambda p: p.bytes, reverse=True):
        same = phase.array.element_type == largest.array.element_type and phase.bytes <= largest.bytes
        if same and phase is not largest and all(phase.last < p.first or p.last < phase.first for p in found):
            found.append(phase)
    return sorted(found, key=lambda p: p.first)


def _saved(group: list[_Phase]) -> int:
    sizes = [p.bytes for p in group]
    return sum(sizes) - max(sizes)


def _shared(kernel: Kernel, block: Node, group: list[_Phase]) -> Rewrite | Declined:
    source, saved = kernel.source, _saved(group)
    if saved < GRANULE:
        return Declined(NAME, f"Nothing to gain: one array would save {saved} bytes of the {GRANULE} given at a time.")
    edits = _declarations(source, group)
    if isinstance(edits, str):
        return Declined(NAME, edits)
    added = 0
    for before, after in pairwise(group):
        if _has_barrier(kernel, block, before.last, after.first):
            continue
        statement = block.children[after.first]
        if left := next(
            (r for r in descendants(block, "return_statement") if r.end_byte <= statement.start_byte), None
        ):
            line = source.position(left.start_byte)[0]
            return Declined(NAME, f"Threads may leave at line {line}, so no barrier can be put behind it.")
        if not statement.type.endswith(("statement", "declaration")) or in_macro(statement):
            return Declined(NAME, f"No barrier can be put before the first use of `{after.array.name}`.")
        edits.append(before_statement(source, statement, ["__syncthreads();"]))
        added += 1
    again = edited_kernel(kernel, edits)
    if again is None or any(b.divergent for b in again.barriers):
        return Declined(NAME, "A barrier between the uses would be reached by a part of the block alone.")
    names = [p.array.name for p in group]
    listed = f"{', '.join(names[:-1])} and {names[-1]}"
    barrier = {0: "A barrier between them is there already.", 1: "The barrier that this needs is added."}
    return Rewrite(
        rewrite=NAME,
        title=f"Share memory between {listed}",
        source=source,
        edits=tuple(edits),
        explanation=(
            f"{listed} are used one after the other, so one array holds both and a block takes {size_words(saved)} "
            "less "
            f"shared memory. {barrier.get(added, f'The {added} barriers that this needs are added.')} No thread may "
            "write "
            "to the next one while another still reads the last."
        ),
    )


def _has_barrier(kernel: Kernel, block: Node, after: int, before: int) -> bool:
    """Whether a statement between two is a barrier for the whole block."""
    barriers = {b.span.start for b in kernel.barriers if b.span.source is kernel.source and not b.divergent}
    return any(
        statement.type == "expression_statement" and statement.start_byte in barriers
        for statement in block.children[after + 1 : before]
    )


def _declarations(source: Source, group: list[_Phase]) -> list[TextEdit] | str:
    """The largest array stays, or comes to the place of the first that is declared; the others point to it."""
    declared = sorted(group, key=lambda p: p.declarator.start_byte)
    largest = max(p.bytes for p in group)
    host = next(p for p in declared if p.bytes == largest)
    edits: list[TextEdit] = []
    for phase in declared:
        if len(phase.declaration.children_by_field_name("declarator")) > 1:
            return f"`{phase.array.name}` is declared together with other variables."
        if phase is not host:
            edits.append(_replaced(phase.declaration, _pointer(source, phase, host)))
    first = declared[0]
    if first is host:
        return edits
    between = source.text(first.declaration.end_byte, host.declaration.start_byte)
    named = {source.node_text(n) for e in extents_of(host.declarator) for n in descendants(e, "identifier")}
    named |= {source.node_text(e) for e in extents_of(host.declarator) if e.type == "identifier"}
    if any(re.search(rf"\b{re.escape(name)}\b", between) for name in named):
        return f"The extent of `{host.array.name}` is not known where `{first.array.name}` is declared."
    indent = source.line_indent(first.declaration.start_byte)
    moved = f"{source.node_text(host.declaration)}\n{indent}{_pointer(source, first, host)}"
    return [_replaced(first.declaration, moved), without_lines(source, host.declaration), *edits[1:]]


def _replaced(declaration: Node, text: str) -> TextEdit:
    return TextEdit(declaration.start_byte, declaration.end_byte, text)


def _pointer(source: Source, phase: _Phase, host: _Phase) -> str:
    """The declaration that lets an array's name mean the memory of another: `float (*tile)[17] = ...;`."""
    written = phase.declaration.child_by_field_name("type")
    kind = source.node_text(written) if written is not None else phase.array.element_type
    name = phase.array.name
    rows = [f"[{source.node_text(extent)}]" for extent in extents_of(phase.declarator)[1:]]
    own = [f"[{source.node_text(extent)}]" for extent in extents_of(host.declarator)[1:]]
    inner = "".join(rows)
    declared = f"{kind} (*{name}){inner}" if rows else f"{kind} *{name}"
    if rows == own:
        return f"{declared} = {host.array.name};"
    if not rows:
        return f"{declared} = &{host.array.name}{'[0]' * len(host.array.dims)};"
    return f"{declared} = reinterpret_cast<{kind} (*){inner}>({host.array.name});"
