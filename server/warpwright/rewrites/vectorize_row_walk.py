"""Let each thread that walks a row of its own move four consecutive elements of it as one `float4`.

## Before

```cuda
__global__ void decay(float *out, const float *in, const float *rate, int rows, int length) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float level = 0.0f;
  for (int t = 0; t < length; t++) {
    level = level * rate[row] + in[row * length + t];
    out[row * length + t] = level;
  }
}

void run(float *out, const float *in, const float *rate, int rows, int length) {
  decay<<<(rows + 127) / 128, 128>>>(out, in, rate, rows, length);
}
```

## After

```cuda
__global__ void decay(float *out, const float *in, const float *rate, int rows, int length) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float level = 0.0f;
  if ((length % 4 |
       (reinterpret_cast<size_t>(&in[row * length]) | reinterpret_cast<size_t>(&out[row * length])) % 16) == 0) {
    for (int t = 0; t < length; t += 4) {
      alignas(16) float in_values[4];
      *reinterpret_cast<float4 *>(in_values) = *reinterpret_cast<const float4 *>(&in[row * length + t]);
      alignas(16) float out_values[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        level = level * rate[row] + in_values[k];
        out_values[k] = level;
      }
      *reinterpret_cast<float4 *>(&out[row * length + t]) = *reinterpret_cast<const float4 *>(out_values);
    }
  } else {
    for (int t = 0; t < length; t++) {
      level = level * rate[row] + in[row * length + t];
      out[row * length + t] = level;
    }
  }
}

void run(float *out, const float *in, const float *rate, int rows, int length) {
  decay<<<(rows + 127) / 128, 128>>>(out, in, rate, rows, length);
}
```

A `double` goes in pairs, elements of two bytes or one go by eights, those of a template's type as an aligned structure.
The launches stay as they are, so that they may be in other files. A loop that counts down takes the elements of a
vector in that order.

## Assumes

- The loop counts by 1 and runs to its end, and its threads have nothing to do with each other in it. What is moved are
  numbers at an index that goes along with the loop, such as `row * length + t`, in every iteration.
- What the loop stores of an array that it moves, it stores at the same element. Other arrays that it stores to do not
  overlap those that it loads.
- Whether rows start at a multiple of 16 bytes and hold a multiple of four elements is asked at run time. Where they do
  not, elements go one by one.

## Cost

Registers for the elements of a vector, and the loop's work stands in the text twice. Each lane still is in a row of its
own: where a warp can share a row, `warp-per-row` gains more. Results stay the same bit for bit.
"""

from __future__ import annotations

from tree_sitter import Node

from warpwright.facts.aliasing import loop_around, restricted
from warpwright.facts.model import Access, AccessKind, Kernel, Space
from warpwright.rewrites._code import NoMatchError, body_of, names, overlaps
from warpwright.rewrites._counted_walk import CountedWalk, at_counter, counted_walk
from warpwright.rewrites._element_arrays import ELEMENT_SIZES
from warpwright.rewrites._layout import free_name, indent_unit, line_of, reindented
from warpwright.rewrites._loops import header_of, pragmas_before
from warpwright.rewrites._movable import unmovable_part
from warpwright.rewrites._walked import Moved, require_vectors_apart, stored_by, walked_elements
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit, apply_edits
from warpwright.syntax.encoding import decoded, encoded
from warpwright.syntax.nodes import ancestors
from warpwright.syntax.source import Source, Span

NAME = "vectorize-row-walk"
title = "Vectorize row loads (float4)"
goals = ("speed",)
relies_on = (Reliance.APART,)

WORTHWHILE = 4.0
"""Sectors for each one needed from which the lanes are taken to be in rows of their own."""
WIDEST = 16
"""Bytes that one lane can load or store at once (CUDA C++ Programming Guide, "Device Memory Accesses")."""
MOST = 8
"""Elements of one vector: more of one byte each would only cost registers."""
LINE_LENGTH = 120


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = body_of(kernel)
    loops: dict[int, tuple[Node, list[Access]]] = {}
    for access in kernel.accesses:
        loop = loop_around(access.span) if _walks_a_row(kernel, access) else None
        if loop is not None and not _is_rest(kernel.source, loop) and (at is None or overlaps(access.span, at)):
            loops.setdefault(loop.start_byte, (loop, []))[1].append(access)
    if not loops:
        return Declined(NAME, "Nothing to gain: no loop here is known to walk a row of its own in each lane.")
    edits: list[TextEdit] = []
    moved: list[Moved] = []
    taken: list[Node] = []
    refused = ""
    for _, (loop, walking) in sorted(loops.items()):  # a loop before those in it: a test within a loop costs more
        if any(o.start_byte < loop.end_byte and loop.start_byte < o.end_byte for o in taken):
            continue
        try:
            if reason := unmovable_part(kernel, loop):
                raise NoMatchError(reason)
            walk = counted_walk(kernel, loop)
            elements = walked_elements(kernel, walk, walking)
            factor = _factor(kernel, walk, elements, walking)
            require_vectors_apart(kernel, walk, elements)
            edits.append(_edit(kernel, block, walk, elements, factor))
        except NoMatchError as unfit:
            refused = refused or str(unfit)
            continue
        moved += elements
        taken.append(loop)
    if not edits:
        return Declined(NAME, refused)
    stored = {n for loop in taken for n in stored_by(kernel, loop)}
    listed = " and ".join(dict.fromkeys(each.array.name for each in moved))
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=kernel.source,
        edits=tuple(edits),
        explanation=(
            f"Each lane walks a row of its own, so every request for an element of {listed} touches a sector in "
            f"each of 32 rows. As vectors of {WIDEST} bytes at most, the same sectors are asked for several times less "
            "often, and more bytes are in flight. Rows that do not start at a multiple of a vector's bytes, or do not "
            "hold a whole number of vectors, go one by one as before."
        ),
        safe=stored <= set(restricted(kernel)),
    )


def _walks_a_row(kernel: Kernel, access: Access) -> bool:
    """Whether each lane moves along numbers one by one while its neighbours are far away."""
    own = access.span.source is kernel.source and kernel.span.start <= access.span.start < kernel.span.end
    return (
        own
        and access.space is Space.GLOBAL
        and access.kind is not AccessKind.ATOMIC
        and access.structure is None
        and access.type in ELEMENT_SIZES
        and access.bytes == access.value_bytes == ELEMENT_SIZES[access.type]
        and abs(access.loop_step or 0) == access.bytes
        and access.iterations >= 2
        and (access.excess or 0.0) >= WORTHWHILE
    )


def _is_rest(source: Source, loop: Node) -> bool:
    """Whether a loop goes through rows that a test of alignment leaves to it."""
    for around in ancestors(loop):
        branch = around.parent
        condition = branch.child_by_field_name("condition") if branch is not None else None
        text = source.node_code(condition) if condition is not None else ""
        if around.type == "else_clause" and "reinterpret_cast<size_t>(&" in text:
            return True
    return False


def _factor(kernel: Kernel, walk: CountedWalk, elements: list[Moved], walking: list[Access]) -> int:
    """Elements of a vector: as many as every lane's row can start with a whole one."""
    size = max(each.array.size for each in elements)
    factor = min(MOST, WIDEST // size)
    while factor > 1:
        starts = all(_aligned(a, factor * a.bytes) for a in walking)
        if starts and (walk.known is None or (walk.known >= factor and walk.known % factor == 0)):
            return factor
        factor //= 2
    line = line_of(kernel.source, walk.node)
    raise NoMatchError(
        f"Nothing to gain: the rows that the loop at line {line} walks do not start at multiples of two."
    )


def _aligned(access: Access, width: int) -> bool:
    known = [a for a in access.lanes.addresses if a is not None] if access.lanes is not None else []
    return len(known) > 1 and all((a - known[0]) % width == 0 for a in known)


def _edit(kernel: Kernel, block: Node, walk: CountedWalk, elements: list[Moved], factor: int) -> TextEdit:
    """The loop over vectors behind a test of the rows, with the loop as it was for the others."""
    source, loop = kernel.source, walk.node
    unit, indent = indent_unit(source, block), source.line_indent(loop.start_byte)
    text, first = kernel.span.code, source.node_text(walk.start)
    counter = free_name(text, "k")
    back = f"{walk.name} - {factor - 1}" if walk.down else walk.name
    begin = f"{first} - {factor - 1}" if walk.down else first
    step = f"{walk.name} {'-' if walk.down else '+'}= {factor}"
    update = loop.child_by_field_name("update")
    header = header_of(source, loop)
    if update is not None:
        at = update.start_byte - loop.start_byte
        data = encoded(header)
        header = decoded(data[:at] + encoded(step) + data[update.end_byte - loop.start_byte :])
    out = [f"{unit}{reindented(header, indent, indent + unit)} {{"]
    stores: list[str] = []
    edits: list[TextEdit] = []
    addresses: dict[str, list[str]] = {}
    taken = text
    widest = max((each.array.size for each in elements if not each.of_template), default=0) * factor
    for each in elements:
        array, values = each.array, free_name(taken, f"{each.array.name}_values")
        taken += f" {values} "
        vector, width, bound = array.vector(factor), str(array.size * factor), str(widest)
        index = at_counter(*each.index, walk, back)
        place = f"&{array.name}[{index}]"
        if each.of_template:
            vector = free_name(text, f"{each.written}x{factor}")
            width = f"{factor} * sizeof({each.written})"
            bound = f"({width})"
            declared = f"{2 * unit}struct alignas({width}) {vector} {{ {each.written} elements[{factor}]; }};"
            out += [declared] if declared not in out else []
        size_test = f'{2 * unit}static_assert(sizeof({each.written}) == {array.size}, "the vectors are made for it");'
        if each.written not in ELEMENT_SIZES and not each.of_template and size_test not in out:
            out.append(size_test)
        out.append(f"{2 * unit}alignas({width}) {each.written} {values}[{factor}];")
        if array.is_loaded:
            out.append(
                f"{2 * unit}*reinterpret_cast<{vector} *>({values}) = *reinterpret_cast<const {vector} *>({place});"
            )
        if array.is_stored:
            stores.append(
                f"{2 * unit}*reinterpret_cast<{vector} *>({place}) = *reinterpret_cast<const {vector} *>({values});"
            )
        first_place = f"&{array.name}[{at_counter(*each.index, walk, begin)}]"
        addresses.setdefault(bound, []).append(f"reinterpret_cast<size_t>({first_place})")
        own = f"{factor - 1} - {counter}" if walk.down else counter
        edits += [TextEdit(use.start_byte, use.end_byte, f"{values}[{own}]") for use in array.uses]
    number = f"{walk.name} {'-' if walk.down else '+'} {counter}"
    for use in names(walk.body, source, walk.name):
        if not any(edit.start <= use.start_byte < edit.end for edit in edits):
            around = use.parent.type if use.parent is not None else ""
            alone = around in (
                "subscript_argument_list",
                "argument_list",
                "init_declarator",
                "parenthesized_expression",
            )
            edits.append(TextEdit(use.start_byte, use.end_byte, number if alone else f"({number})"))
    out += ["#pragma unroll", f"{2 * unit}for (int {counter} = 0; {counter} < {factor}; ++{counter}) {{"]
    out += [f"{3 * unit}{_work(source, walk.body, edits, indent + 3 * unit)}", f"{2 * unit}}}", *stores]
    joined = {width: " | ".join(places) for width, places in addresses.items()}
    rests = [f"{f'({rows})' if ' | ' in rows else rows} % {width}" for width, rows in joined.items()]
    if walk.known is None:
        rests.insert(0, f"{walk.count} % {factor}")
    # One test of all: where a part were tested before, lanes would part, or the compiler would write the loops twice.
    is_long = len(f"{indent}if (({' | '.join(rests)}) == 0) {{") > LINE_LENGTH
    whole = (f" |\n{indent}     " if is_long else " | ").join(rests)
    test = f"if ({f'({whole})' if len(rests) > 1 else whole} == 0) {{"
    start = next((p.start_byte for p in pragmas_before(source, loop)), loop.start_byte)
    rest = reindented(source.text(start, loop.end_byte), indent, indent + unit)
    lines = [test, *out, f"{unit}}}", "} else {", f"{unit}{rest}", "}"]
    new = "\n".join(line if n == 0 or line.startswith("#") else f"{indent}{line}" for n, line in enumerate(lines))
    return TextEdit(start, loop.end_byte, new)


def _work(source: Source, inside: Node, edits: list[TextEdit], indent: str) -> str:
    """The statements of a loop's body with some expressions replaced, at another indent, none in the first line."""
    statements = inside.named_children if inside.type == "compound_statement" else [inside]
    if not statements:
        return ";"
    start, end = statements[0].start_byte, statements[-1].end_byte
    shifted = [TextEdit(edit.start - start, edit.end - start, edit.new_text) for edit in edits]
    work = decoded(apply_edits(source.data[start:end], shifted))
    return reindented(work, source.line_indent(start), indent)
