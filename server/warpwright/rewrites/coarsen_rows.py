"""Give each thread of a grid with two dimensions several rows, so that they share what they load.

## Before

```cuda
__global__ void smooth(float *__restrict__ out, const float *__restrict__ in, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  int at = y * width + x;
  if (x == 0 || y == 0 || x == width - 1 || y == height - 1) {
    out[at] = in[at];
  } else {
    out[at] = 0.2f * (in[at] + in[at - 1] + in[at + 1] + in[at - width] + in[at + width]);
  }
}

void run(float *out, const float *in, int width, int height) {
  dim3 block(32, 8);
  dim3 grid((width + 31) / 32, (height + 7) / 8);
  smooth<<<grid, block>>>(out, in, width, height);
}
```

## After

```cuda
__global__ void smooth(float *__restrict__ out, const float *__restrict__ in, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y_first = (blockIdx.y * blockDim.y + threadIdx.y) * 4;
  bool inner = true;
  #pragma unroll
  for (int r = 0; r < 4; r++) {
    int y = y_first + r;
    inner = inner && !(x >= width || y >= height) && !(x == 0 || y == 0 || x == width - 1 || y == height - 1);
  }
  if (inner) {
    #pragma unroll
    for (int r = 0; r < 4; r++) {
      int y = y_first + r;
      int at = y * width + x;
      out[at] = 0.2f * (in[at] + in[at - 1] + in[at + 1] + in[at - width] + in[at + width]);
    }
    return;
  }
  #pragma unroll 1
  for (int r = 0; r < 4; r++) {
    int y = y_first + r;
    if (x >= width || y >= height) continue;
    int at = y * width + x;
    if (x == 0 || y == 0 || x == width - 1 || y == height - 1) {
      out[at] = in[at];
    } else {
      out[at] = 0.2f * (in[at] + in[at - 1] + in[at + 1] + in[at - width] + in[at + width]);
    }
  }
}

void run(float *out, const float *in, int width, int height) {
  dim3 block(32, 8);
  dim3 grid((width + 31) / 32, (height + 7) / 8);
  smooth<<<dim3(grid.x, (grid.y + 3) / 4), block>>>(out, in, width, height);
}
```

Where all rows of a thread pass the guards, and lie within the borders, they are done without tests, and with loops of
known ends unrolled: the compiler issues their loads together and keeps what two rows have in common in registers.

## Assumes

- Every launch is in this file. Rows beyond the old grid find nothing to do: the kernel tests its row against the number
  that the grid is made of, or the grid is a multiple of the new number of rows.
- The thread's place in x and in y is one variable each. Threads have nothing to do with each other: no shared memory,
  barrier, atomic or exchange.
- The compiler may load before it stores: `__restrict__` tells each array that is read from those that are written.
- Indices of 32 bits have room for the rows of 4 blocks more.

## Cost

Registers for the rows that are on their way, code for both ways, and fewer blocks. Results stay the same bit for bit.
"""

from __future__ import annotations

import re
from dataclasses import replace

from tree_sitter import Node

from warpwright.facts.aliasing import restricted
from warpwright.facts.model import AccessKind, Kernel, Space
from warpwright.rewrites._code import NoMatchError, host_launches, matched
from warpwright.rewrites._elements import (
    Elements,
    Variable,
    element_text,
    elements_of,
    is_number,
    require_covered,
    require_repeatable,
)
from warpwright.rewrites._guards import Condition, comparisons, is_early_return, leading, loads_nothing
from warpwright.rewrites._indices import Indices, indices_of
from warpwright.rewrites._interior import Way, interior, unrolled
from warpwright.rewrites._launch_shape import grid_divided_by
from warpwright.rewrites._launched import block_of_all_launches
from warpwright.rewrites._layout import free_name, indent_unit, reindented, with_comment
from warpwright.rewrites._movable import movable_body
from warpwright.rewrites._names import reached_names
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import descendants
from warpwright.syntax.source import Span

NAME = "coarsen-rows"
title = "Coarsen: several rows per thread"
goals = ("speed",)
relies_on = (Reliance.GRID, Reliance.BLOCK, Reliance.SIZES)

ROWS = 4
_TOUCHES = ("subscript_expression", "pointer_expression", "call_expression")
FEWEST_BLOCKS = 1024
"""Of a grid that is known: with fewer, a quarter of it leaves multiprocessors idle (an H200 has 132)."""


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = movable_body(kernel)
    _require_gain(kernel, block)
    shape = matched(block_of_all_launches(kernel))
    return _rewrite(kernel, block, indices_of(kernel, shape))


def _require_gain(kernel: Kernel, block: Node) -> None:
    """Loads of several rows can be on their way together, and a quarter of the blocks is enough."""
    if "atomic" in kernel.source.node_code(block):
        raise NoMatchError(f"{kernel.name} uses atomics, so its threads are not independent.")
    accesses = [a for a in kernel.accesses if a.space is Space.GLOBAL]
    loads = {a.array or "" for a in accesses if a.kind is AccessKind.LOAD and a.by_thread}
    stored = {a.array or "" for a in accesses if a.kind is AccessKind.STORE}
    if not loads or not stored:
        raise NoMatchError("Nothing to gain: the kernel does not load elements and store others.")
    apart = restricted(kernel)
    for load in sorted(loads):
        for array in sorted(stored):
            if load == array or not {load, array} & apart:
                raise NoMatchError(
                    f"Nothing to gain: the compiler must assume that a store to {array} may change {load}, so it would "
                    "load one row after the other."
                )
    for launch in host_launches(kernel):
        x, y, z = launch.grid
        if x is not None and y is not None and z is not None and x * y * z < FEWEST_BLOCKS:
            raise NoMatchError(
                f"Nothing to gain: the grid at {launch.source} has {x * y * z} blocks, and {ROWS} times fewer would "
                "leave multiprocessors idle."
            )


def _rewrite(kernel: Kernel, block: Node, indices: Indices) -> Rewrite:
    source = kernel.source
    statements = [n for n in block.named_children if n.type != "comment"]
    head = leading(source, statements)
    elements = _of_rows(kernel, block, elements_of(kernel, indices, block, head, statements[len(head) :]), head)
    per_row = [s for s in statements if s not in elements.hoisted]
    require_repeatable(source, per_row)
    conditions = _tested_first(kernel, block, per_row, elements.own["y"])
    launches = host_launches(kernel)
    require_covered(kernel, indices, conditions, (1, ROWS), launches)
    way = interior(indices, [s for s in per_row if s.type != "declaration" or s not in head])
    way = replace(way, edits=(*way.edits, *unrolled(indices, way)))
    edits = [_text(block, elements, per_row, [s for s in per_row if s in head], way)]
    for launch in launches:
        divided = matched(grid_divided_by(kernel, launch, (1, ROWS)))
        edits += divided
    row = elements.own["y"]
    return Rewrite(
        NAME,
        f"Give each thread {ROWS} rows",
        source,
        tuple(edits),
        f"A thread of {kernel.name} loaded what one element needs and waited for it. Now it does {ROWS} consecutive "
        f"values of {row}. Where no border is near they are done without tests: their loads are issued together, and "
        f"what two rows both need is loaded once. The grid has {ROWS} times fewer blocks; each thread needs more "
        "registers.",
    )


def _tested_first(kernel: Kernel, block: Node, statements: list[Node], row: str) -> list[Condition]:
    """The comparisons that are made of a row before anything is stored, or loaded for that row."""
    source, found = kernel.source, list[Condition]()
    for statement in statements:
        own = row in reached_names(block, source, statement)
        if loads_nothing(source, statement) or (statement.type == "declaration" and not own):
            continue
        clause = statement.child_by_field_name("condition")
        touched = next(descendants(clause, *_TOUCHES), None) if clause is not None else None
        guards = _guards(kernel, statement, statement is statements[-1])
        found += [c for c in guards if touched is None or c.right.end_byte <= touched.start_byte]
        if touched is not None or not is_early_return(statement):
            break
    return found


def _guards(kernel: Kernel, statement: Node, is_last: bool) -> list[Condition]:
    """The comparisons that hold where a row is worked on: of `if (...) return;`, or an `if` around all of the work."""
    if statement.type != "if_statement" or statement.child_by_field_name("alternative") is not None:
        return []
    clause = statement.child_by_field_name("condition")
    test = clause.child_by_field_name("value") if clause is not None else None
    early = is_early_return(statement)
    return (comparisons(kernel.source, test, leaves=early) or []) if early or is_last else []


def _of_rows(kernel: Kernel, block: Node, elements: Elements, head: list[Node]) -> Elements:
    """The same where the index in y alone changes: what does not depend on it is declared once."""
    source, row = kernel.source, elements.own["y"]
    to_row = elements.declared(row)
    feeds = reached_names(block, source, to_row.value) if to_row.value is not None else frozenset()

    def once(variable: Variable) -> bool:
        indices = elements.indices
        if variable.name in (row, *indices.variables.changed) or not is_number(indices, variable):
            return False
        return variable.name in feeds or row not in reached_names(block, source, variable.declarator)

    variables = [v for v in elements.each if v.statement in head]
    hoisted = {v.name for v in variables if once(v)}
    whole = [s for s in head if s.type == "declaration" and s not in elements.hoisted
             and all(v.name in hoisted for v in variables if v.statement == s)]  # fmt: skip
    mixed = frozenset(v.name for v in variables if v.name in hoisted and v.statement not in whole)
    return replace(elements, own={"y": row}, hoisted=(*elements.hoisted, *whole), dropped=mixed)


def _text(block: Node, elements: Elements, per_row: list[Node], head: list[Node], way: Way) -> TextEdit:
    """The kernel's statements for several rows: without tests where all rows lie within, else row by row."""
    source = elements.indices.kernel.source
    text = source.code_text()
    counter, inner = free_name(text, "r"), free_name(text, "inner")
    row = elements.declared(elements.own["y"])
    first = free_name(text, f"{row.name}_first")
    outer = [n for n in block.named_children if n.type != "comment"]
    indent, unit = source.line_indent(outer[0].start_byte), indent_unit(source, block)
    values = {row.name: f"{first} + {counter}"}
    kind = elements.indices.variables.types[row.name]
    once = [(s.start_byte, source.text(*with_comment(source, s))) for s in outer if s in elements.hoisted]
    for variable in (v for v in elements.each if v.name in elements.dropped):
        declarators = variable.statement.children_by_field_name("declarator")
        prefix = source.text(variable.statement.start_byte, declarators[0].start_byte)
        once.append((variable.declarator.start_byte, f"{prefix}{source.node_text(variable.declarator)};"))
    lines = [text for _, text in sorted(once)]
    whole = source.node_text(row.value) if row.value is not None else ""
    lines.append(f"const {kind} {first} = ({whole}) * {ROWS};")
    loop = f"for (int {counter} = 0; {counter} < {ROWS}; {counter}++) {{"
    declared = [s for s in head if s.type == "declaration"]

    def piece(statement: Node, edits: tuple[TextEdit, ...] = ()) -> list[str]:
        inside = [e for e in edits if statement.start_byte <= e.start and e.end <= statement.end_byte]
        new = element_text(elements, [statement], values, inside)
        return reindented(new, source.line_indent(statement.start_byte), "").split("\n")

    names = re.findall(r"[A-Za-z_]\w*", " ".join(way.conditions))
    needed = {v.statement.id for v in elements.needed(names, ())} | {row.statement.id}
    lines += [f"bool {inner} = true;", "#pragma unroll", loop]
    lines += [f"{unit}{line}" for s in declared if s.id in needed for line in piece(s)]
    lines += [f"{unit}{inner} = {' && '.join((inner, *way.conditions))};", "}"]
    lines += [f"if ({inner}) {{", f"{unit}#pragma unroll", f"{unit}{loop}"]
    for statement in (*declared, *way.statements):
        lines += [f"{unit}{unit}{line}" for line in piece(statement, way.edits)]
    lines += [f"{unit}}}", f"{unit}return;", "}"]
    rest = element_text(elements, per_row, values)
    lines += ["#pragma unroll 1", loop, *(f"{unit}{line}" for line in reindented(rest, indent, "").split("\n")), "}"]
    new = re.sub(r"[ \t]+$", "", "\n".join(lines).replace("\n", f"\n{indent}"), flags=re.MULTILINE)
    return TextEdit(outer[0].start_byte, with_comment(source, outer[-1])[1], new)
