"""Let each block do the work of several, one after the other, where very many small blocks are launched.

## Before

```cuda
__global__ void means(float *mean, const float *in, int rows) {
  __shared__ float part[4];
  int row = blockIdx.x;
  float sum = in[row * 128 + threadIdx.x];
  for (int offset = 16; offset > 0; offset /= 2)
    sum += __shfl_down_sync(0xffffffff, sum, offset);
  if (threadIdx.x % 32 == 0)
    part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0)
    mean[row] = (part[0] + part[1] + part[2] + part[3]) / 128;
}

void run(float *mean, const float *in, int rows) {
  means<<<rows, 128>>>(mean, in, rows);
}
```

## After

```cuda
__global__ void means(float *mean, const float *in, int rows) {
  for (unsigned int block = blockIdx.x; block < rows; block += gridDim.x) {
    __shared__ float part[4];
    int row = block;
    float sum = in[row * 128 + threadIdx.x];
    for (int offset = 16; offset > 0; offset /= 2)
      sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (threadIdx.x % 32 == 0)
      part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0)
      mean[row] = (part[0] + part[1] + part[2] + part[3]) / 128;
    __syncthreads();
  }
}

void run(float *mean, const float *in, int rows) {
  means<<<(rows < 2048 ? rows : 2048), 128>>>(mean, in, rows);
}
```

## Assumes

- All launches are in this file, and the kernel can compute the number of blocks from its parameters and constants as
  they do. The grid's x is used for nothing else, and blockIdx.x is read in the kernel's own text.
- Blocks do not wait for each other, and all threads of a block come to its end, or all leave before they use shared
  memory.
- The number of blocks and 4096 together stay under the largest unsigned int.

## Cost

A barrier more for each block's work, so that shared memory is filled again only when all threads have read it. Results
stay the same bit for bit.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.cuda.numbers import number_at
from warpwright.facts.model import Kernel, Launch
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import (
    NoMatchError,
    body_of,
    functions_of,
    macro_texts,
    macros_naming,
    matched,
    names,
    require_marked,
)
from warpwright.rewrites._grids import call_of, capped, extent, launches_along_x
from warpwright.rewrites._guards import is_early_return
from warpwright.rewrites._launched import in_header
from warpwright.rewrites._layout import free_name, indent_unit, line_of, with_comment
from warpwright.rewrites._limits import THREADS
from warpwright.rewrites._locals import changed_names, locals_of
from warpwright.rewrites._movable import block_by_directive, unmovable
from warpwright.rewrites._thread_numbers import OF_GRID
from warpwright.rewrites._uniform import is_uniform
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import declared_name, descendants, enclosing, uncommented
from warpwright.syntax.source import Source, Span

NAME = "loop-over-blocks"
title = "Coarsen: one block does the work of several"
goals = ("speed",)
relies_on = (Reliance.GRID, Reliance.SIZES)

MOST = 128 * 32
"""Blocks that 128 multiprocessors hold at once."""
MANY = 4
"""Times as many blocks as a GPU holds from which their starts are taken to cost something."""
_TIED = re.compile(
    r"\b(?:__threadfence\w*|cooperative_groups|cg|this_grid|this_thread_block|tiled_partition|__nanosleep|clock|clock64"
    r"|__cluster\w*|gridDim|volatile)\b"
)


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = body_of(kernel)
    require_marked(kernel, at)
    return _rewrite(kernel, block)


def _rewrite(kernel: Kernel, block: Node) -> Rewrite:
    source = kernel.source
    if not kernel.barriers or not kernel.shared_arrays:
        raise NoMatchError(f"Nothing to gain: the threads of a block of {kernel.name} do not work together.")
    if reason := unmovable(kernel):
        raise NoMatchError(reason)
    _require_alone(kernel, block)
    launches = matched(launches_along_x(kernel))
    if reason := in_header(kernel):
        raise NoMatchError(reason)
    if reason := block_by_directive(kernel):
        raise NoMatchError(reason)
    counts = {_count(kernel, launch) for launch in launches}
    if len(counts) != 1:
        raise NoMatchError(f"The launches of {kernel.name} make the number of blocks in different ways.")
    edits: list[TextEdit] = []
    for launch in launches:
        most = min(THREADS // (launch.block[0] or 1), MOST)
        blocks = launch.grid[0]
        if blocks is not None and blocks < MANY * most:
            raise NoMatchError(f"Nothing to gain: the {blocks} blocks at {launch.source} hardly wait for others.")
        edit = matched(capped(source, launch, most))
        edits.append(edit)
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=source,
        edits=(*edits, *_kernel_edits(kernel, block, counts.pop())),
        explanation=(
            f"{kernel.name} is launched with one block for each piece of work, far more than a GPU holds at once, and "
            "each block takes time to start. Now the grid has no more blocks than the GPU holds, and each block walks "
            "over the pieces of work in a grid-stride loop."
        ),
    )


def _require_alone(kernel: Kernel, block: Node) -> None:
    """A block does not see which other blocks there are, and its threads reach its end together."""
    source, text, variables = kernel.source, kernel.source.node_code(block), locals_of(kernel)
    if tied := _TIED.search(text):
        raise NoMatchError(f"{kernel.name} uses `{tied.group()}`, so what a block does may depend on the others.")
    for use in names(block, source, "blockIdx"):
        if use.parent is None or use.parent.type != "field_expression":
            raise NoMatchError(f"`blockIdx` is used as a whole at line {line_of(source, use)}.")
    for parameter in kernel.parameters:
        if not variables.is_fixed(parameter.name):
            raise NoMatchError(f"{kernel.name} changes `{parameter.name}`, which the next piece of work starts from.")
    called = {
        name
        for name, found in functions_of(source).items()
        if name != kernel.name and any(OF_GRID.search(source.node_code(function)) for function in found)
    }
    for hidden in [*macros_naming(source, OF_GRID), *sorted(called)]:
        if re.search(rf"\b{re.escape(hidden)}\b", text):
            raise NoMatchError(f"{kernel.name} uses {hidden}, which reads the block's index.")
    shared = {array.name for array in kernel.shared_arrays}
    used = [n.start_byte for n in descendants(block, "identifier") if source.node_text(n) in shared]
    for leave in descendants(block, "return_statement"):
        early = enclosing(leave, "if_statement")
        clause = early.child_by_field_name("condition") if early is not None else None
        test = clause.child_by_field_name("value") if clause is not None else None
        whole = early is not None and early.parent == block and is_early_return(early)
        if not whole or test is None or not is_uniform(kernel, variables, test):
            raise NoMatchError(f"Threads may leave at line {line_of(source, leave)}.")
        if any(start < leave.start_byte and not _declares(source, block, start) for start in used):
            raise NoMatchError(f"The block may leave at line {line_of(source, leave)}, in the middle of its work.")


def _declares(source: Source, block: Node, start: int) -> bool:
    node = block.named_descendant_for_byte_range(start, start + 1)
    around = enclosing(node, "declaration") if node is not None else None
    return around is not None and any(source.node_text(child) == "__shared__" for child in around.children)


def _count(kernel: Kernel, launch: Launch) -> str:
    """The number of blocks in x as the kernel can compute it."""
    source, unknown = (
        kernel.source,
        f"How many blocks there are at {launch.source} cannot be computed in {kernel.name}.",
    )
    written = extent(source, launch)
    call = call_of(launch)
    function = enclosing(call, "function_definition") if call is not None else None
    if written is None or call is None or function is None or written[1] != source.node_text(written[0]):
        raise NoMatchError(unknown)
    node, changed, types = written[0], set(changed_names(source, function)), locals_of(kernel).types
    given = uncommented(call.child_by_field_name("arguments"))
    parameters = {
        source.node_text(argument): parameter
        for parameter, argument in zip(kernel.parameters, given, strict=False)
        if argument.type == "identifier" and not parameter.is_pointer and locals_of(kernel).is_fixed(parameter.name)
    }
    if node.type == "identifier" and source.node_text(node) not in parameters:
        node = _value(source, function, source.node_text(node)) or node
    if any(True for _ in descendants(node, "subscript_expression", "field_expression", "pointer_expression")):
        raise NoMatchError(unknown)
    out, at = "", node.start_byte
    for use in descendants(node, "identifier"):
        name = source.node_text(use)
        parameter, new = parameters.get(name), None
        if parameter is not None and name not in changed:
            kinds = builtin_type(types.get(parameter.name, "")), builtin_type(_type(source, function, name))
            new = parameter.name if kinds[0] is not None and kinds[0] == kinds[1] else None
        new = new or _in_kernel(kernel, name)
        if new is None:
            raise NoMatchError(unknown)
        out += source.text(at, use.start_byte) + new
        at = use.end_byte
    text = out + source.text(at, node.end_byte)
    return f"({text})" if re.search(r"[<>&|?=^]", text) else text


def _in_kernel(kernel: Kernel, name: str) -> str | None:
    """A constant of the file, or a macro in front of the kernel, as it can be written in the kernel; else None."""
    source, start = kernel.source, kernel.span.start
    for macro in descendants(source.root, "preproc_def", "preproc_function_def"):
        defined = macro.child_by_field_name("name")
        if defined is not None and source.node_text(defined) == name:
            plain = macro.type == "preproc_function_def" or number_at(source, source.root, name) is not None
            once = len(macro_texts(source).get(name, [])) == 1
            return name if macro.start_byte < start and plain and once else None
    of_file = [
        declarator
        for declarator in descendants(source.root, "init_declarator")
        if declared_name(source, declarator) == name and enclosing(declarator, "function_definition") is None
    ]
    known = number_at(source, source.root, name) is not None
    return name if known and len(of_file) == 1 and of_file[0].start_byte < start else None


def _value(source: Source, function: Node, name: str) -> Node | None:
    """What a variable of a function is set to where it is declared, once and for all."""
    if name in set(changed_names(source, function)):
        return None
    found = [d for d in descendants(function, "init_declarator") if declared_name(source, d) == name]
    value = found[0].child_by_field_name("value") if len(found) == 1 else None
    return value if value is not None and value.type not in ("initializer_list", "argument_list") else None


def _type(source: Source, function: Node, name: str) -> str:
    found = [
        declaration
        for declaration in descendants(function, "declaration", "parameter_declaration")
        for d in declaration.children_by_field_name("declarator")
        if declared_name(source, d) == name
    ]
    kind = found[0].child_by_field_name("type") if len(found) == 1 else None
    return source.node_text(kind) if kind is not None else ""


def _kernel_edits(kernel: Kernel, block: Node, count: str) -> list[TextEdit]:
    source, unit = kernel.source, indent_unit(kernel.source, block)
    statements = uncommented(block)
    name = free_name(kernel.span.code, "block")
    indent = source.line_indent(statements[0].start_byte)
    first = block.named_children[0]
    edits = [
        TextEdit(use.parent.start_byte, use.parent.end_byte, name)
        for use in names(block, source, "blockIdx")
        if use.parent is not None and source.node_text(use.parent) == "blockIdx.x"
    ]
    edits += [TextEdit(n.start_byte, n.end_byte, "continue;") for n in descendants(block, "return_statement")]
    head = f"for (unsigned int {name} = blockIdx.x; {name} < {count}; {name} += gridDim.x) {{\n{indent}{unit}"
    edits.append(TextEdit(first.start_byte, first.start_byte, head))
    end = with_comment(source, statements[-1])[1]
    last = source.position(end)[0]
    for line in range(source.position(first.start_byte)[0] + 1, last + 1):
        if source.line_text(line).strip() and not source.line_text(line).lstrip().startswith("#"):
            start = source.line_starts[line - 1]
            edits.append(TextEdit(start, start, unit))
    edits.append(TextEdit(end, end, f"\n{indent}{unit}__syncthreads();\n{indent}}}"))
    return edits
