"""Stage in shared memory what all threads of a block load, one element after the other.

## Before

```cuda
__global__ void potential(float *out, const float *at, const float *mass, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float own = at[i], sum = 0.0f;
  for (int j = 0; j < n; j++) {
    float d = at[j] - own;
    sum += mass[j] * d * d;
  }
  out[i] = sum;
}

void run(float *out, const float *at, const float *mass, int n) {
  potential<<<(n + 255) / 256, 256>>>(out, at, mass, n);
}
```

## After

```cuda
__global__ void potential(float *out, const float *at, const float *mass, int n) {
  __shared__ float at_tile[256];
  __shared__ float mass_tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  const bool inside = i < n;
  float own = inside ? at[i] : 0.0f, sum = 0.0f;
  for (int j_start = 0; j_start < n; j_start += 256) {
    const int j_end = n - j_start < 256 ? n : j_start + 256;
    for (int j = j_start + threadIdx.x; j < j_end; j += blockDim.x) {
      at_tile[j - j_start] = at[j];
      mass_tile[j - j_start] = mass[j];
    }
    __syncthreads();
    if (inside) {
      for (int j = j_start; j < j_end; j++) {
        float d = at_tile[j - j_start] - own;
        sum += mass_tile[j - j_start] * d * d;
      }
    }
    __syncthreads();
  }
  if (!inside) return;
  out[i] = sum;
}

void run(float *out, const float *at, const float *mass, int n) {
  potential<<<(n + 255) / 256, 256>>>(out, at, mass, n);
}
```

The block may have any shape and size.

## Assumes

- What picks the elements is the loop's variable and what is the same for all threads of the block, and so is how often
  the loop runs. Each iteration loads them.
- The loop stands at the kernel's outermost level, or in one `if` of comparisons, or after one that leaves the kernel.
  What stands between that and the loop sets variables alone; threads outside of the data load nothing there.
- The kernel does not write these arrays, nor does it through another pointer. The loop leaves by its end alone.

## Cost

Shared memory for 256 elements of each array, and two barriers for 256 iterations. The order of the computation stays,
so the result is the same bit for bit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.facts.aliasing import changes, is_plain_load, restricted
from warpwright.facts.model import WARP, Access, Kernel
from warpwright.rewrites._code import NoMatchError, condition_of, in_macro, overlaps, squeezed
from warpwright.rewrites._conditions import deciding_conditions, jumps_before
from warpwright.rewrites._early import is_integer_text
from warpwright.rewrites._entry import Entry, entry_of, made_of
from warpwright.rewrites._layout import free_name, indent_unit, line_of, reindented
from warpwright.rewrites._limits import SHARED_BYTES
from warpwright.rewrites._locals import Locals, changed_names, declared_names, locals_of
from warpwright.rewrites._loops import CountedLoop, counted_loop, counted_outside, pragmas_before
from warpwright.rewrites._movable import movable_body
from warpwright.rewrites._shared_types import require_plain
from warpwright.rewrites._threads import unfit_call
from warpwright.rewrites._uniform import is_uniform
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit, apply_edits
from warpwright.syntax.encoding import decoded
from warpwright.syntax.nodes import BREAKABLE, ancestors, descendants, uncommented
from warpwright.syntax.source import Source, Span

NAME = "stage-common-loads"
title = "Stage uniform loads in shared memory"
goals = ("speed",)
relies_on = (Reliance.BLOCK, Reliance.APART, Reliance.SHARED)

TILE = 256
"""Iterations whose elements are staged at once: some KB of shared memory, and two barriers that weigh little."""
MOST = 8
"""Arrays that are staged at once."""


@dataclass(frozen=True, slots=True)
class Staged:
    """One element of an iteration: `nodes` are the texts that load it, `index` what picks it."""

    array: str
    type: str
    index: Node
    nodes: tuple[Node, ...]
    bytes: int


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = movable_body(kernel)
    reason = "No loop here loads what is the same for all threads of a block."
    for node in descendants(block, "for_statement"):
        if at is not None and not overlaps(kernel.source.span(node), at):
            continue
        try:
            return _rewrite(kernel, block, node)
        except NoMatchError as mismatch:
            reason = str(mismatch) or reason
    return Declined(NAME, reason)


def _rewrite(kernel: Kernel, block: Node, node: Node) -> Rewrite:
    source, variables = kernel.source, locals_of(kernel)
    loop = counted_loop(source, node) or counted_outside(source, variables.types, block, node)
    if loop is None or loop.step is not None:
        raise NoMatchError
    uniform = _uniform_loads(kernel, node)
    staged = _staged(kernel, variables, loop, uniform)
    if not staged:
        raise NoMatchError
    _require_even(kernel, variables, loop)
    arrays = list(dict.fromkeys(each.array for each in staged))
    _require_unwritten(kernel, arrays)
    used = kernel.shared_bytes
    dynamic = [launch.dynamic_shared_bytes for launch in kernel.launches]
    size = TILE * sum(each.bytes for each in staged)
    if (used or 0) + max((each or 0 for each in dynamic), default=0) + size > SHARED_BYTES:
        raise NoMatchError(f"The tiles need {size} bytes of shared memory, and the block uses {used} already.")
    entry = entry_of(kernel, block, node)
    fill = [_condition_of_block(kernel, variables, each, entry) for each in staged]
    edits = _edits(kernel, block, loop, staged, entry, list(dict.fromkeys(each for each in fill if each)))
    stored = {access.array for access in kernel.accesses if changes(access)}
    apart = stored <= restricted(kernel) or set(arrays) <= restricted(kernel)
    listed = ", ".join(arrays)
    assumed = "" if apart else f" It assumes that what the kernel stores is not part of {listed}."
    if used is None or None in dynamic:
        assumed += f" How much shared memory {kernel.name} uses already is not known from the text."
    return Rewrite(
        NAME,
        title,
        source,
        tuple(edits),
        f"All threads of a block load the same elements of {listed}, one after the other, so that a warp fetches "
        f"{staged[0].bytes} bytes with a request that could bring {WARP} elements, and each warp all of them again. "
        f"Now the block loads {TILE} elements at once, consecutive threads neighbouring ones, and each thread reads "
        f"them from shared memory. It costs {size} bytes of shared memory and two barriers for {TILE} iterations."
        f"{assumed}",
        safe=not assumed,
    )


def _uniform_loads(kernel: Kernel, node: Node) -> list[Access]:
    """The loads of a loop of which all lanes want one address, in as many iterations as make a tile worth while."""
    found = [
        a
        for a in kernel.accesses
        if is_plain_load(a)
        and a.span.source is kernel.source
        and node.start_byte <= a.span.start < node.end_byte
        and a.addresses_per_request == 1
        and a.iterations >= WARP
        and a.loop_step
    ]
    if not found:
        raise NoMatchError
    return found


def _staged(kernel: Kernel, variables: Locals, loop: CountedLoop, uniform: list[Access]) -> list[Staged]:
    """What every iteration loads for all threads alike, in order of the text."""
    source = kernel.source
    pointers = {p.name: p for p in kernel.parameters if p.is_pointer}
    found: dict[str, Staged] = {}
    for element in descendants(loop.body, "subscript_expression"):
        array, indices = element.child_by_field_name("argument"), element.child_by_field_name("indices")
        name = source.node_text(array) if array is not None else ""
        index = uncommented(indices)[0] if indices is not None and len(uncommented(indices)) == 1 else None
        if name not in pointers or index is None or name in variables.changed or in_macro(element):
            continue
        if not any(source.node_text(n) == loop.name for n in descendants(index, "identifier")):
            continue
        if not is_uniform(kernel, variables, index, {loop.name}) or not any(a.array == name for a in uniform):
            continue
        key, whole = f"{name}[{squeezed(source.node_code(index))}]", _whole(source, element)
        if whole is None:
            raise NoMatchError(
                f"The address of `{source.node_text(element)}` is taken at line {line_of(source, element)}."
            )
        known = next(a for a in uniform if a.array == name)
        size = known.structure.bytes if known.structure is not None else known.value_bytes
        require_plain(kernel, name, variables.types.get(name, "auto"), is_structure=known.structure is not None)
        before = found.get(key)
        nodes = (*(before.nodes if before is not None else ()), whole)
        found[key] = Staged(name, variables.types[name], index, nodes, size)
    always = [
        each for each in found.values() if any(_is_always_loaded(kernel, variables, loop, node) for node in each.nodes)
    ]
    if found and not always:
        first = next(iter(found.values())).nodes[0]
        raise NoMatchError(
            f"`{source.node_text(first)}` at line {line_of(source, first)} is not loaded in each iteration."
        )
    if len(always) > MOST:
        raise NoMatchError(
            f"The loop at line {line_of(source, loop.node)} loads more than {MOST} elements an iteration."
        )
    return always


def _is_always_loaded(kernel: Kernel, variables: Locals, loop: CountedLoop, node: Node) -> bool:
    """Whether each iteration of some thread comes to a load: a thread may leave out the element of its own number."""
    jumps = [(j, *ancestors(j)) for j in jumps_before(node, loop.node)]
    branches = [next((n for n in around if n.type == "if_statement"), around[0]) for around in jumps]
    return all(
        _leaves_out_own(kernel, variables, loop, branch)
        for branch in (*deciding_conditions(node, loop.node), *branches)
    )


def _leaves_out_own(kernel: Kernel, variables: Locals, loop: CountedLoop, branch: Node) -> bool:
    """`if (j == i) continue;` or `if (j != i) ...`, where i is another one in each thread."""
    source, test = kernel.source, condition_of(branch) if branch.type == "if_statement" else None
    one, other = (test.child_by_field_name(side) if test is not None else None for side in ("left", "right"))
    if test is None or one is None or other is None or not any(c.type in ("==", "!=") for c in test.children):
        return False
    leaves = any(True for _ in descendants(branch, "continue_statement"))
    fits = any(c.type == ("==" if leaves else "!=") for c in test.children)
    sides = {source.node_text(one): other, source.node_text(other): one}
    own = sides.get(loop.name)
    return fits and own is not None and any(w.startswith("threadIdx.") for w in made_of(source, variables, own))


def _whole(source: Source, element: Node) -> Node | None:
    """The text that loads an element: itself, or `__ldg(&a[i])`; None where its address is used otherwise, or it is
    stored to."""
    parent = element.parent
    if parent is not None and parent.type == "pointer_expression" and source.node_code(parent).startswith("&"):
        call = parent.parent.parent if parent.parent is not None else None
        is_load = call is not None and call.type == "call_expression" and called_name(call, source) == "__ldg"
        return call if is_load else None
    return element


def _require_even(kernel: Kernel, variables: Locals, loop: CountedLoop) -> None:
    """All threads of a block go round the loop as often, and could wait for each other. Raises NoMatchError."""
    source, line = kernel.source, line_of(kernel.source, loop.node)
    for part in (loop.start, loop.bound):
        if not is_integer_text(source, part, variables.types):
            raise NoMatchError(f"`{source.node_text(part)}` at line {line} is not known to be a whole number.")
        if not is_uniform(kernel, variables, part):
            raise NoMatchError(
                f"The loop at line {line} may run more often for one thread of a block than for another."
            )
    if loop.name in set(changed_names(source, loop.body)) or loop.name in declared_names(source, loop.body):
        raise NoMatchError(f"`{loop.name}` changes in the loop at line {line}.")
    if any((launch.block[2] or 1) != 1 for launch in kernel.launches):
        raise NoMatchError(f"{kernel.name} is launched with blocks of three dimensions.")
    if reason := unfit_call(kernel, loop.body):
        raise NoMatchError(reason)
    for leave in descendants(loop.body, "return_statement", "goto_statement", "break_statement"):
        around = next(
            (n for n in ancestors(leave) if n.type in BREAKABLE),
            None,
        )
        if leave.type != "break_statement" or around == loop.node:
            raise NoMatchError(f"A thread may leave the loop at line {line_of(source, leave)}.")
    for call in descendants(loop.body, "call_expression"):
        if re.match(r"__sync|__shfl|__ballot|__any|__all|__activemask|sync$", called_name(call, source)):
            raise NoMatchError(f"{called_name(call, source)} at line {line_of(source, call)} ties threads together.")


def _require_unwritten(kernel: Kernel, arrays: list[str]) -> None:
    written = {access.array for access in kernel.accesses if changes(access)}
    for array in arrays:
        if array in written:
            raise NoMatchError(f"The kernel writes `{array}`, so what a tile holds could be old.")


def _condition_of_block(kernel: Kernel, variables: Locals, each: Staged, entry: Entry) -> str:
    """What holds for a block that has elements to load, empty where every block has. Raises NoMatchError where that is
    not the same for all of its threads."""
    source = kernel.source
    axes = {word for word in made_of(source, variables, each.index) if word.startswith("blockIdx.")}
    tests: list[str] = []
    for condition in entry.conditions if axes else ():
        sides = (condition.left, condition.right)
        words = {word for side in sides for word in made_of(source, variables, side)}
        if all(is_uniform(kernel, variables, side) for side in sides):
            tests.append(condition.text(source))
        elif axes & words:
            raise NoMatchError(
                f"Whether a block has elements `{each.array}[{source.node_text(each.index)}]` to load is decided by "
                f"`{condition.text(source)}`, which its threads may not agree on."
            )
    return " && ".join(tests)


def _edits(
    kernel: Kernel, block: Node, loop: CountedLoop, staged: list[Staged], entry: Entry, tests: list[str]
) -> list[TextEdit]:
    source, unit, outer = kernel.source, indent_unit(kernel.source, block), entry.indent
    taken, name = source.code_text(), loop.name
    first, last = free_name(taken, f"{loop.name}_start"), free_name(taken, f"{loop.name}_end")
    tiles: list[str] = []
    for each in staged:
        tiles.append(free_name(f"{taken} {' '.join(tiles)}", f"{each.array}_tile"))
    bound, start = source.node_text(loop.bound), source.node_text(loop.start)
    factor = bound if re.fullmatch(r"[\w.]+", bound) else f"({bound})"
    flat = any(launch.block[1:] != (1, 1) for launch in kernel.launches)
    own = "threadIdx.y * blockDim.x + threadIdx.x" if flat else "threadIdx.x"
    all_of = "blockDim.x * blockDim.y" if flat else "blockDim.x"
    begin = next((p.start_byte for p in pragmas_before(source, loop.node)), loop.node.start_byte)
    inner = [
        TextEdit(n.start_byte - begin, n.end_byte - begin, f"{tile}[{loop.name} - {first}]")
        for each, tile in zip(staged, tiles, strict=True)
        for n in each.nodes
    ]
    inner.append(TextEdit(loop.start.start_byte - begin, loop.start.end_byte - begin, first))
    inner.append(TextEdit(loop.bound.start_byte - begin, loop.bound.end_byte - begin, last))
    text = decoded(apply_edits(source.data[begin : loop.node.end_byte], inner))
    depth = 2 if entry.inside else 1
    text = reindented(text, source.line_indent(loop.node.start_byte), outer + unit * depth)
    one, two, three = outer + unit, outer + 2 * unit, outer + unit * depth
    work = [f"{one}if ({entry.inside}) {{", f"{three}{text}", f"{one}}}"] if entry.inside else [f"{one}{text}"]
    runs = " && ".join([f"{name} < {last}", *tests])
    lines = [
        f"for ({loop.type} {first} = {start}; {first} < {bound}; {first} += {TILE}) {{",
        f"{one}const {loop.type} {last} = {factor} - {first} < {TILE} ? {bound} : {first} + {TILE};",
        f"{one}for ({loop.type} {name} = {first} + {own}; {runs}; {name} += {all_of}) {{",
        *(
            f"{two}{tile}[{loop.name} - {first}] = {each.array}[{source.node_text(each.index)}];"
            for each, tile in zip(staged, tiles, strict=True)
        ),
        f"{one}}}",
        f"{one}__syncthreads();",
        *work,
        f"{one}__syncthreads();",
        f"{outer}}}",
    ]
    here = source.line_indent(begin)
    lead = outer[len(here) :] if outer.startswith(here) else ""  # of a directive at the start of its line
    opening = uncommented(block)[0]
    indent = source.line_indent(opening.start_byte)
    declared = "".join(
        f"__shared__ {each.type} {tile}[{TILE}];\n{indent}" for each, tile in zip(staged, tiles, strict=True)
    )
    return [
        TextEdit(opening.start_byte, opening.start_byte, declared),
        *entry.edits,
        TextEdit(begin, loop.node.end_byte, lead + "\n".join(lines) + entry.behind),
    ]
