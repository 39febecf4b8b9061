"""Load what does not change in a loop once, before the loop.

## Before

```cuda
__global__ void normalize(float *out, const float *in, const float *scale, int columns) {
  int row = blockIdx.x;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    out[row * columns + i] = in[row * columns + i] * scale[row];
  }
}
```

## After

```cuda
__global__ void normalize(float *out, const float *in, const float *scale, int columns) {
  int row = blockIdx.x;
  const auto scale_value = scale[row];
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    out[row * columns + i] = in[row * columns + i] * scale_value;
  }
}
```

## Assumes

The array does not overlap what the loop stores to, and no other kernel changes it meanwhile. The load is allowed where
the loop runs no iteration.

## Cost

A register for as long as the loop runs.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.facts.aliasing import changes, has_volatile, is_plain_load, loop_around
from warpwright.facts.model import Access, Kernel
from warpwright.rewrites._code import in_macro, overlaps
from warpwright.rewrites._conditions import deciding_conditions, jumps_before
from warpwright.rewrites._layout import line_of
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.encoding import encoded
from warpwright.syntax.nodes import descendants, node_at, walk
from warpwright.syntax.source import Source, Span

title = "Hoist the load out of the loop"
goals = ("speed",)
relies_on = (Reliance.APART,)

NAME = "hoist-loop-invariant-load"
_THROUGH_POINTER = ("subscript_expression", "field_expression", "pointer_expression")


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    loads = [a for a in kernel.accesses if is_plain_load(a) and a.loop_step == 0 and a.launch == 0]
    chosen = [a for a in loads if at is None or overlaps(a.span, at)]
    if not chosen:
        return Declined(NAME, "No load of global memory is seen to stay at one address over a loop.")
    refusal: Declined | None = None
    for load in sorted(chosen, key=lambda a: a.requests, reverse=True):
        result = _hoisted(kernel, load, loads)
        if isinstance(result, Rewrite):
            return result
        refusal = refusal or result
    return refusal or Declined(NAME, "No load can be moved.")


def _hoisted(kernel: Kernel, load: Access, others: list[Access]) -> Rewrite | Declined:
    """The load, and with it the others of its array in its loop."""
    source, loop = load.span.source, loop_around(load.span)
    own = source is kernel.source and kernel.span.start <= load.span.start < kernel.span.end
    if loop is None or not own:
        return Declined(NAME, f"The loop around {load.expression} is not in the kernel's own text.")
    if has_volatile(kernel):
        return Declined(NAME, "The kernel reads or writes volatile memory, which may not be read less often.")
    if any(changes(a) and a.array == load.array for a in kernel.accesses):
        return Declined(NAME, f"The kernel changes {load.array}, so what it holds may change during the loop.")
    if loop.parent is None or loop.parent.type != "compound_statement":
        return Declined(
            NAME, "The loop is the body of another statement without braces, so there is no line before it."
        )
    if reason := _refusal(kernel, load, loop):
        return Declined(NAME, reason)
    while (outer := _next_loop(loop, source)) is not None and not _refusal(kernel, load, outer):
        loop = outer
    together = [load, *(a for a in others if a.array == load.array and a.span.source is source and _is_in(a, loop))]
    texts = dict.fromkeys(a.span.text for a in together if not _refusal(kernel, a, loop))
    line = source.line_text(line_of(source, loop))
    indent = line[: len(line) - len(line.lstrip())]
    names: list[str] = []
    before, edits = "", []
    for text in texts:
        names.append(_new_name(kernel, load.array, text, names))
        before += f"const auto {names[-1]} = {text};\n{indent}"
        edits += [TextEdit(n.start_byte, n.end_byte, names[-1]) for n in _uses(loop, text, source)]
    return Rewrite(
        NAME,
        title,
        source,
        (TextEdit(loop.start_byte, loop.start_byte, before), *edits),
        f"{load.expression} is at one address for the whole loop. It is loaded once, into {', '.join(names)}, and no "
        "store through another pointer makes the kernel load it again. It costs a register.",
        safe=False,
    )


def _next_loop(loop: Node, source: Source) -> Node | None:
    """The loop around a loop, where there is a line before it."""
    outer = loop_around(source.span(loop))
    return (
        outer if outer is not None and outer.parent is not None and outer.parent.type == "compound_statement" else None
    )


def _is_in(access: Access, loop: Node) -> bool:
    return loop.start_byte <= access.span.start < loop.end_byte


def _refusal(kernel: Kernel, load: Access, loop: Node) -> str:
    """Why a load cannot be moved before a loop around it; empty where it can."""
    source = load.span.source
    node = node_at(source.root, load.span.start, load.span.end)
    if node is None or in_macro(node) or source.node_text(node) != load.span.text:
        return f"{load.expression} comes from a macro."
    deciding = [*deciding_conditions(node, loop), *jumps_before(node, loop)]
    if condition := next(iter(deciding), None):
        return f"{load.expression} is read only as line {line_of(source, condition)} decides."
    pointers = {p.name for p in kernel.parameters if p.is_pointer}
    changed = _changed_in(node, loop, source, pointers)
    return f"{changed} is set in the loop." if changed else ""


def _uses(loop: Node, text: str, source: Source) -> list[Node]:
    """Where the loop reads that expression; what its `init` reads, it reads once."""
    initial = loop.child_by_field_name("initializer")
    found: dict[int, Node] = {}
    size = len(encoded(text))
    for node in walk(loop):
        once = initial is not None and initial.start_byte <= node.start_byte < initial.end_byte
        fits = node.is_named and not once and node.end_byte - node.start_byte == size
        if fits and source.node_text(node) == text:
            found.setdefault(node.start_byte, node)
    return [n for n in found.values() if n.parent is None or n.parent.type != "pointer_expression"]


def _changed_in(node: Node, loop: Node, source: Source, pointers: set[str]) -> str:
    """A variable of the expression that the loop declares or assigns; empty where there is none.

    What is stored through one of the kernel's pointers does not change the pointer.
    """
    used = {source.node_text(n) for n in descendants(node, "identifier")}
    if any(True for _ in descendants(node, "call_expression", "assignment_expression", "update_expression")):
        return "A value that the expression computes"
    for target in _targets(loop):
        for name in descendants(target, "identifier"):
            text = source.node_text(name)
            if text in used and not (target.type in _THROUGH_POINTER and text in pointers):
                return text
            if target.type != "structured_binding_declarator":
                break
    return ""


def _targets(loop: Node) -> list[Node]:
    """What the loop assigns, steps, declares, or takes the address of."""
    found: list[Node] = []
    for n in descendants(loop, "assignment_expression", "update_expression", "declaration", "pointer_expression"):
        match n.type:
            case "assignment_expression":
                found += [left] if (left := n.child_by_field_name("left")) is not None else []
            case "update_expression":
                found += [a] if (a := n.child_by_field_name("argument")) is not None else []
            case "pointer_expression" if n.children and n.children[0].type == "&":
                found += [a] if (a := n.child_by_field_name("argument")) is not None else []
            case "declaration":
                for declarator in n.children_by_field_name("declarator"):
                    inner = (
                        declarator.child_by_field_name("declarator") if declarator.type == "init_declarator" else None
                    )
                    found.append(inner or declarator)
    return found


def _new_name(kernel: Kernel, array: str | None, expression: str, taken: list[str]) -> str:
    """A name that the kernel's text does not use: `scale_value` for `scale[row]`, `points_x` for `points[row].x`."""
    stem = re.sub(r"\W+", "_", array or "loaded").strip("_")
    member = re.search(r"(?:\.|->)\s*(\w+)$", expression)
    wanted = f"{stem}_{member.group(1) if member else 'value'}"
    text = kernel.span.code
    names = [wanted, *(f"{wanted}{i}" for i in range(2, 100))]
    return next(name for name in names if name not in taken and not re.search(rf"\b{name}\b", text))
