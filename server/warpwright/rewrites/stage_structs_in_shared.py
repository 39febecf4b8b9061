"""Let a block copy its structures into shared memory word by word, so that consecutive lanes load neighbouring words.

## Before

```cuda
struct Point {
  float x, y, z;
};

__global__ void scale(Point *p, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    p[i].x *= factor;
    p[i].y *= factor;
    p[i].z *= factor;
  }
}

void run(Point *p, int n) {
  scale<<<(n + 127) / 128, 128>>>(p, 0.5f, n);
}
```

## After

```cuda
struct Point {
  float x, y, z;
};

__global__ void scale(Point *p, float factor, int n) {
  __shared__ Point p_staged[128];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int first = i - threadIdx.x;
  for (int word = threadIdx.x; word < 128 * 3; word += 128)
    if (first + word / 3 < n)
      reinterpret_cast<unsigned int *>(p_staged)[word] = reinterpret_cast<const unsigned int *>(p + first)[word];
  __syncthreads();
  if (i < n) {
    p_staged[threadIdx.x].x *= factor;
    p_staged[threadIdx.x].y *= factor;
    p_staged[threadIdx.x].z *= factor;
  }
  __syncthreads();
  for (int word = threadIdx.x; word < 128 * 3; word += 128)
    if (first + word / 3 < n)
      reinterpret_cast<unsigned int *>(p + first)[word] = reinterpret_cast<unsigned int *>(p_staged)[word];
}

void run(Point *p, int n) {
  scale<<<(n + 127) / 128, 128>>>(p, 0.5f, n);
}
```

What is stored goes to the L2 cache with each store, the sectors of a structure again for each member; copied back,
they go there once. Structures that are only read stay in the L1 cache from one member to the next, unless they are too
large for it.

## Assumes

- The kernel works on element i below a bound, and what it uses of the structures is `in[i]`; the structures are
  plain: whole words, without constructors or bases.
- All launches are in this file, with one-dimensional blocks of one known size.
- Arrays that are handed to different parameters do not overlap.

It is refused where no fewer sectors would be moved, as where only one member of many is used, where the L1 cache saves
them already, and where structures of that size would meet in the same banks: an odd number of words does not.

## Cost

Shared memory for one structure in each thread, and a barrier, or two. The size of the block is written into the kernel.
Results stay the same bit for bit.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.facts.host_scopes import written_names
from warpwright.facts.model import Access, AccessKind, Kernel, Parameter, Space, Structure
from warpwright.rewrites._code import body, by_cost, macros_naming, names, overlaps, squeezed
from warpwright.rewrites._elementwise import Elements, match_elements, not_the_thread, with_header
from warpwright.rewrites._gain import edited_kernel
from warpwright.rewrites._grids import launches_in_sight
from warpwright.rewrites._indent import end_with_comment
from warpwright.rewrites._layout import free_name, indent_unit
from warpwright.rewrites._limits import SHARED_BYTES
from warpwright.rewrites._movable import block_by_directive, unmovable
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import ancestors, descendants, node_at
from warpwright.syntax.source import Source, Span

NAME = "stage-structs-in-shared"
title = "Stage structures in shared memory"
goals = ("speed",)
relies_on = (Reliance.BLOCK, Reliance.APART, Reliance.SHARED)

STRIDED = 2.0
"""Sectors for each one needed from which lanes are taken to step over structures."""
WORTHWHILE = 0.75
"""Share of the sectors that may be left."""
CONFLICT = 2.0
"""Wavefronts for each one needed in shared memory from which nothing is won."""
WORD = 4
L1, RESIDENT = 256 * 1024, 2048
"""Bytes of a multiprocessor's L1 cache, and threads that use it at once, of compute capability 9.0 (CUDA C++
Programming Guide, "Technical Specifications per Compute Capability")."""

_VECTORS = re.compile(r"(?:float|int|uint)3|double3|(?:long|ulong|longlong|ulonglong)3")


class _RefusedError(Exception):
    """The message is the reason for the user."""


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    if reason := unmovable(kernel):
        return Declined(NAME, reason)
    strided = [
        a
        for a in by_cost([a for a in kernel.accesses if a.space is Space.GLOBAL and (a.excess or 0.0) >= STRIDED])
        if a.structure is not None and (at is None or overlaps(a.span, at))
    ]
    if not strided:
        return Declined(NAME, "No lanes are known to step over structures in global memory here.")
    elements = match_elements(kernel)
    if isinstance(elements, str):
        return Declined(NAME, elements)
    try:
        return _staged(kernel, elements, strided[0])
    except _RefusedError as refused:
        return Declined(NAME, str(refused))


def _staged(kernel: Kernel, elements: Elements, access: Access) -> Rewrite:
    source, structure = kernel.source, access.structure
    parameter = next((p for p in kernel.parameters if p.is_pointer and p.name == access.array), None)
    if structure is None or parameter is None:
        raise _RefusedError(f"`{access.expression}` is not in an array that {kernel.name} is given.")
    if kernel.shared_arrays or kernel.barriers:
        raise _RefusedError(f"{kernel.name} uses shared memory or barriers already.")
    launches = launches_in_sight(kernel)
    if isinstance(launches, str):
        raise _RefusedError(launches)
    sizes = {launch.block[0] or 0 for launch in launches}
    if len(sizes) > 1:
        raise _RefusedError(f"{kernel.name} is launched with blocks of different sizes.")
    if reason := block_by_directive(kernel) or not_the_thread(kernel, elements, launches):
        raise _RefusedError(reason)
    (threads,) = sizes
    if structure.bytes % WORD or structure.align % WORD:
        raise _RefusedError(f"A structure of {structure.bytes} bytes is no whole number of words.")
    if threads * structure.bytes > SHARED_BYTES:
        raise _RefusedError(f"{threads} structures of {structure.bytes} bytes do not fit into 48 KB of shared memory.")
    kind = _plain_type(source, parameter)
    uses = _uses(kernel, elements, parameter)
    stored = any(a.array == parameter.name and a.kind is not AccessKind.LOAD for a in kernel.accesses)
    if stored or not parameter.is_const:
        stored = _is_stored(source, uses) or stored
    _require_stays(source, elements, stored)
    edits = _edits(kernel, elements, parameter.name, kind, structure, threads, uses, stored=stored)
    before, after = _gain(kernel, edits, parameter.name, free_name(kernel.span.code, f"{parameter.name}_staged"))
    if not stored and structure.bytes * RESIDENT <= L1:
        raise _RefusedError(
            f"Nothing to gain: {parameter.name} is only read, and the L1 cache keeps a sector of it from one member of "
            f"the {structure.bytes} bytes to the next."
        )
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=source,
        edits=tuple(edits),
        explanation=(
            f"The lanes of a warp step over structures of {structure.bytes} bytes: a warp moves {before:g} sectors of "
            f"{parameter.name} for its members, one after the other; now it moves {after:g}. The block copies its "
            "structures word by word, consecutive lanes neighbouring words, and works on the copies. It costs "
            f"{threads * structure.bytes} bytes of shared memory for each block and "
            f"{'two barriers' if stored else 'a barrier'}."
        ),
    )


def _plain_type(source: Source, parameter: Parameter) -> str:
    """The structure's name, where it can lie in shared memory as it is."""
    skipped = ("const", "__restrict__", "__restrict", "restrict", "struct", parameter.name)
    kind = " ".join(word for word in parameter.type.replace("*", " ").split() if word not in skipped)
    if _VECTORS.fullmatch(kind):
        return kind
    found = [
        s
        for s in descendants(source.root, "struct_specifier")
        if s.child_by_field_name("body") is not None
        and (name := s.child_by_field_name("name")) is not None
        and source.node_text(name) == kind
    ]
    found += [
        s
        for alias in descendants(source.root, "type_definition")
        if any(source.node_text(d) == kind for d in alias.children_by_field_name("declarator"))
        for s in descendants(alias, "struct_specifier")
    ]
    if len(found) != 1:
        raise _RefusedError(f"The structure {kind} is not defined once in this file.")
    inner = ("function_definition", "function_declarator", "base_class_clause", "struct_specifier", "union_specifier")
    for part in descendants(found[0], *inner, "class_specifier", "reference_declarator"):
        if part != found[0]:
            line = source.position(part.start_byte)[0]
            raise _RefusedError(f"{kind} is more than plain members: see line {line}.")
    for member in descendants(found[0], "field_declaration"):
        if "volatile" in source.node_code(member):
            raise _RefusedError(f"{kind} has volatile members.")
        if member.child_by_field_name("default_value") is not None:
            raise _RefusedError(f"{kind} has members with initial values, which shared memory cannot have.")
    return kind


def _uses(kernel: Kernel, elements: Elements, parameter: Parameter) -> list[Node]:
    """Every `p[i]`; refused where the array is used in another way."""
    source, block, name = kernel.source, body(kernel), parameter.name
    for macro in macros_naming(source, re.compile(rf"\b{re.escape(name)}\b")):
        raise _RefusedError(f"The macro {macro} names `{name}`, so not every use of it can be seen.")
    found: list[Node] = []
    for use in names(block, source, name) if block is not None else ():
        element = use.parent
        index = element.child_by_field_name("indices") if element is not None else None
        at_index = index is not None and squeezed(source.node_code(index)[1:-1]) == elements.index
        inside = elements.start <= use.start_byte < elements.end
        if element is None or not at_index or not inside or element.child_by_field_name("argument") != use:
            line = source.position(use.start_byte)[0]
            raise _RefusedError(f"`{name}` is used at line {line} other than as one structure at [{elements.index}].")
        found.append(element)
    if any(source.node_text(n) == elements.index for s in elements.work for n in written_names(s)):
        raise _RefusedError(f"`{elements.index}` changes in the work on its element.")
    return found


def _is_stored(source: Source, uses: list[Node]) -> bool:
    """Whether a structure may be changed: assigned in whole or in part, its address taken, bound to a reference."""
    for use in uses:
        child = use
        for parent in ancestors(use):
            if parent.type in ("field_expression", "subscript_expression", "parenthesized_expression"):
                child = parent
                continue
            left = parent.type == "assignment_expression" and parent.child_by_field_name("left") == child
            taken = parent.type == "pointer_expression" and source.node_code(parent).startswith("&")
            if left or taken or parent.type in ("update_expression", "argument_list"):
                return True
            if parent.type == "init_declarator":
                target = parent.child_by_field_name("declarator")
                return target is None or target.type == "reference_declarator"
            break
    return False


def _require_stays(source: Source, elements: Elements, stored: bool) -> None:
    """All threads of the block come to the barriers."""
    leaving = [n for s in elements.before for n in descendants(s, "return_statement")]
    leaving += [n for s in elements.work for n in descendants(s, "return_statement")] if stored else []
    for leave in leaving:
        raise _RefusedError(f"Threads may leave at line {source.position(leave.start_byte)[0]}, before a barrier.")


def _edits(
    kernel: Kernel,
    elements: Elements,
    array: str,
    kind: str,
    structure: Structure,
    threads: int,
    uses: list[Node],
    *,
    stored: bool,
) -> list[TextEdit]:
    source, block, guard = kernel.source, body(kernel), elements.guard
    text = kernel.span.code
    staged, first, word = free_name(text, f"{array}_staged"), free_name(text, "first"), free_name(text, "word")
    words, bound = structure.bytes // WORD, source.node_text(elements.bound)
    unit = indent_unit(source, block) if block is not None else "  "
    indent = source.line_indent(guard.start_byte)
    declared = elements.declaration.child_by_field_name("type")
    of_index = source.node_text(declared) if declared is not None else "int"
    loop = [
        f"for (int {word} = threadIdx.x; {word} < {threads} * {words}; {word} += {threads})",
        f"{unit}if ({first} + {word} / {words} < {bound})",
    ]
    inside = f"reinterpret_cast<unsigned int *>({staged})[{word}]"
    outside = f"reinterpret_cast<{{}}unsigned int *>({array} + {first})[{word}]"
    lines = [
        f"const {of_index} {first} = {elements.index} - threadIdx.x;",
        *loop,
        f"{2 * unit}{inside} = {outside.format('const ')};",
        "__syncthreads();",
    ]
    opening = block.named_children[0] if block is not None else guard
    edits = [
        TextEdit(
            opening.start_byte,
            opening.start_byte,
            f"__shared__ {kind} {staged}[{threads}];\n{source.line_indent(opening.start_byte)}",
        ),
        TextEdit(guard.start_byte, guard.start_byte, "".join(f"{line}\n{indent}" for line in lines)),
        *(TextEdit(use.start_byte, use.end_byte, f"{staged}[threadIdx.x]") for use in uses),
    ]
    if stored:
        behind = ["__syncthreads();", *loop, f"{2 * unit}{outside.format('')} = {inside};"]
        new = "".join(f"\n{indent}{line}" for line in behind)
        end = end_with_comment(source, max(elements.end, 0 if elements.early else guard.end_byte))
        if elements.early:
            edits += with_header(kernel, elements, f"if ({elements.index} < {bound})", new)
        else:
            edits.append(TextEdit(end, end, new))
    return edits


def _gain(kernel: Kernel, edits: list[TextEdit], array: str, staged: str) -> tuple[float, float]:
    """Sectors of the array that one warp moves before and after."""
    edited = edited_kernel(kernel, edits)
    before, after = _sectors(kernel, array), _sectors(edited, array) if edited is not None else None
    if before is None or after is None or edited is None:
        raise _RefusedError("How many sectors the changed kernel would move cannot be counted from the text.")
    if after > WORTHWHILE * before:
        raise _RefusedError(
            f"Nothing to gain: a warp moves {before:g} sectors of {array}, and whole structures take {after:g}."
        )
    mine = [a for a in edited.accesses if a.space is Space.SHARED and a.array == staged]
    for access in mine:
        if (access.excess or 1.0) >= CONFLICT:
            raise _RefusedError(
                f"Such structures meet in the same banks: {access.wavefronts_per_request:g} wavefronts per request."
            )
    return before, after


def _sectors(kernel: Kernel, array: str) -> float | None:
    """Sectors of an array that the accesses of one warp move together; None where one is not known."""
    total = 0.0
    for access in kernel.accesses:
        if access.array != array or access.space is not Space.GLOBAL or access.launch != 0 or access.joined:
            continue
        if access.sectors_per_request is None:
            return None
        times = access.iterations if access.in_loop else 1.0
        total += access.sectors_per_request * times * _pieces(kernel, access)
    return total


def _pieces(kernel: Kernel, access: Access) -> int:
    """Requests for one value: of a structure that is copied into a variable, no more than the members used of it."""
    source, pieces = kernel.source, max(1, access.value_bytes // access.bytes)
    node = node_at(source.root, access.span.start, access.span.end) if access.span.source is source else None
    declarator = node.parent if node is not None else None
    if pieces == 1 or declarator is None or declarator.type != "init_declarator":
        return pieces
    target, block = declarator.child_by_field_name("declarator"), body(kernel)
    uses = names(block, source, source.node_text(target)) if block is not None and target is not None else ()
    parents = [use.parent for use in uses if use != target and use.parent is not None]
    members = {source.node_text(field) for p in parents if (field := p.child_by_field_name("field")) is not None}
    whole = any(parent.type != "field_expression" for parent in parents)
    return pieces if whole else min(pieces, max(1, len(members)))
