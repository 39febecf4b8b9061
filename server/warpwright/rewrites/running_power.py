"""Keep the power of a loop's exponent as a product that grows, instead of a call of pow for each term.

## Before

```cuda
__global__ void polynomial(float *out, const float *in, const float *factors, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float sum = 0.0f;
    for (int k = 0; k < 6; k++)
      sum += factors[k] * powf(in[i], k);
    out[i] = sum;
  }
}

void run(float *out, const float *in, const float *factors, int n) {
  polynomial<<<(n + 255) / 256, 256>>>(out, in, factors, n);
}
```

## After

```cuda
__global__ void polynomial(float *out, const float *in, const float *factors, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float sum = 0.0f;
    const float base = in[i];
    float power = 1.0f;
    for (int k = 0; k < 6; k++) {
      sum += factors[k] * power;
      power *= base;
    }
    out[i] = sum;
  }
}

void run(float *out, const float *in, const float *factors, int n) {
  polynomial<<<(n + 255) / 256, 256>>>(out, in, factors, n);
}
```

## Assumes

- The exponent is the loop's counter, which starts at a small number and grows by 1, to a bound or with it; no step
  ends early.
- The base stays the same over the loop: its variables do, and the loop stores to no array. It is read before the loop
  where the loop is known to run, or where it reads no memory.
- The call means CUDA's own pow or powf.

## Cost

Two registers for each base. Each product is rounded to the nearest, so that the k-th power is off by up to k / 2 units
in the last place, where powf is off by up to 4 and pow by up to 2 (CUDA C++ Programming Guide, "Mathematical
Functions").
"""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.facts.known_functions import KNOWN_FUNCTIONS
from warpwright.facts.model import Kernel
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import NoMatchError, functions_of, macro_texts, overlaps, squeezed
from warpwright.rewrites._indices import Indices, indices_of
from warpwright.rewrites._layout import before_statement, free_name, indent_unit, line_of
from warpwright.rewrites._locals import changed_names, declared_names
from warpwright.rewrites._loops import CountedLoop, counter_of
from warpwright.rewrites._movable import movable_body
from warpwright.rewrites._quotients import made_whole
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import LOOPS, descendants, enclosing, uncommented, walk
from warpwright.syntax.source import Source, Span

NAME = "running-power"
title = "Replace the power by a running product"
goals = ("speed",)
relies_on = ()

LARGEST_START = 4
"""The first exponent that is written as a product."""
_PURE = frozenset((
    "identifier", "field_expression", "field_identifier", "subscript_expression", "subscript_argument_list",
    "parenthesized_expression", "binary_expression", "unary_expression", "number_literal",
))  # fmt: skip
"""What a base may consist of."""
_MEMORY = ("subscript_expression", "field_expression", "pointer_expression")


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = movable_body(kernel)
    source = kernel.source
    reason = "No pow with the counter of a loop as its exponent is called here."
    for call in descendants(block, "call_expression"):
        if called_name(call, source) not in ("pow", "powf") or (at and not overlaps(source.span(call), at)):
            continue
        node = enclosing(call, *LOOPS)
        loop = _loop(source, node) if node is not None and node.type == "for_statement" else None
        try:
            if loop is not None:
                return _rewrite(kernel, block, loop, call)
        except NoMatchError as refused:
            reason = str(refused) or reason
    return Declined(NAME, reason)


def _loop(source: Source, node: Node) -> CountedLoop | None:
    """A counted loop that ends before its bound, or with it: `k <= n`."""
    counter, condition = counter_of(source, node), node.child_by_field_name("condition")
    inside = node.child_by_field_name("body")
    if counter is None or condition is None or inside is None or condition.type != "binary_expression":
        return None
    left, bound = condition.child_by_field_name("left"), condition.child_by_field_name("right")
    operator = condition.child_by_field_name("operator")
    if operator is None or operator.type not in ("<", "<=") or left is None or bound is None:
        return None
    if source.node_text(left) != counter.name:
        return None
    return CountedLoop(node, counter.name, counter.type, counter.start, bound, counter.step, inside)


def _rewrite(kernel: Kernel, block: Node, loop: CountedLoop, call: Node) -> Rewrite:
    source, indices = kernel.source, indices_of(kernel, None)
    name = called_name(call, source)
    kind = "float" if name == "powf" else "double"
    base = _steady_base(kernel, indices, loop, call)
    bases = {squeezed(source.node_code(base)): base}
    calls = [c for c in descendants(loop.body, "call_expression") if called_name(c, source) == name]
    for other in calls:
        try:
            base = _steady_base(kernel, indices, loop, other)
        except NoMatchError:
            continue
        bases.setdefault(squeezed(source.node_code(base)), base)
    start = indices.number(loop.start) or 0
    taken = source.code_text()
    lines: list[str] = []
    steps: list[str] = []
    edits: list[TextEdit] = []
    for text, base in bases.items():
        once, power = free_name(taken, "base"), free_name(taken, "power")
        taken += f" {once} {power}"
        first = " * ".join([once] * start) if start else ("1.0f" if kind == "float" else "1.0")
        lines += [f"const {kind} {once} = {source.node_text(base)};", f"{kind} {power} = {first};"]
        steps.append(f"{power} *= {once};")
        same = [c for c in calls if _is_same(source, loop, c, text)]
        edits += [TextEdit(c.start_byte, c.end_byte, power) for c in same]
    return Rewrite(
        NAME,
        title,
        source,
        (before_statement(source, loop.node, lines), *edits, *_at_the_end(source, block, loop, steps)),
        f"{name} takes some {75 if kind == 'float' else 200} instructions for any exponent. The exponent grows by 1 "
        "from step to step, so one product gives the next power. Each product is rounded, so that the k-th power "
        f"is off by up to k / 2 units in the last place, where {name} is off by up to {4 if kind == 'float' else 2} "
        "(CUDA C++ Programming Guide, Mathematical Functions).",
        safe=False,
    )


def _steady_base(kernel: Kernel, indices: Indices, loop: CountedLoop, call: Node) -> Node:
    """The base of a power that can be multiplied on from step to step. Raises NoMatchError where it cannot."""
    source, name = kernel.source, called_name(call, kernel.source)
    base = _base(source, loop, call)
    _require_steps(source, indices, loop)
    _require_steady(kernel, indices, loop, base)
    if name in functions_of(source) or name in macro_texts(source):
        raise NoMatchError(f"{name} at line {line_of(source, call)} is the program's own.")
    if whole := made_whole(source, indices, call):
        raise NoMatchError(f"`{whole}` is a whole number, which the last bit of a power may decide.")
    if enclosing(call, *LOOPS) != loop.node:
        raise NoMatchError
    return base


def _base(source: Source, loop: CountedLoop, call: Node) -> Node:
    """The base of a power whose exponent is the loop's counter."""
    arguments = uncommented(call.child_by_field_name("arguments"))
    if len(arguments) != 2 or not _is_counter(source, loop, call, arguments[1]):
        raise NoMatchError
    base, line = arguments[0], line_of(source, call)
    if any(n.is_named and n.type not in _PURE for n in walk(base)):
        raise NoMatchError(f"`{source.node_text(base)}` at line {line} is more than a value that is read.")
    return base


def _is_counter(source: Source, loop: CountedLoop, call: Node, exponent: Node) -> bool:
    """`k`, and for powf, whose result is a float whatever it is given, `(float)k` and `float(k)`."""
    text = squeezed(source.node_code(exponent))
    if called_name(call, source) == "powf":
        text = re.sub(r"^(?:\(float\)|float(?=\()|static_cast<float>)", "", text)
    known = builtin_type(loop.type)
    return squeezed(text) == loop.name and known is not None and known.is_integer


def _is_same(source: Source, loop: CountedLoop, call: Node, base: str) -> bool:
    arguments = uncommented(call.child_by_field_name("arguments"))
    inner = enclosing(call, *LOOPS) == loop.node
    return (
        len(arguments) == 2
        and inner
        and squeezed(source.node_code(arguments[0])) == base
        and _is_counter(source, loop, call, arguments[1])
    )


def _require_steps(source: Source, indices: Indices, loop: CountedLoop) -> None:
    line = line_of(source, loop.node)
    start = indices.number(loop.start)
    if loop.step is not None:
        raise NoMatchError(f"The loop at line {line} does not count by steps of 1.")
    if start is None or not 0 <= start <= LARGEST_START:
        raise NoMatchError(f"The loop at line {line} does not start at a number from 0 to {LARGEST_START}.")
    if loop.name in set(changed_names(source, loop.body)):
        raise NoMatchError(f"`{loop.name}` changes in the loop at line {line}.")
    for leave in descendants(loop.body, "continue_statement"):
        raise NoMatchError(f"An iteration may end early at line {line_of(source, leave)}.")
    if loop.node.parent is None or loop.node.parent.type != "compound_statement":
        raise NoMatchError(f"No statement can be inserted before the loop at line {line}.")


def _require_steady(kernel: Kernel, indices: Indices, loop: CountedLoop, base: Node) -> None:
    """The base has one value over the loop, and may be read before it."""
    source, line = kernel.source, line_of(kernel.source, base)
    declared = declared_names(source, loop.node)
    changed = declared | set(changed_names(source, loop.body))
    for name in descendants(base, "identifier") if base.type != "identifier" else [base]:
        if source.node_text(name) in changed:
            raise NoMatchError(f"`{source.node_text(name)}` changes in the loop at line {line}.")
    if not any(True for _ in descendants(base, *_MEMORY)):
        return
    for store in descendants(loop.body, "assignment_expression", "update_expression", "call_expression"):
        target = store.child_by_field_name("left") or store.child_by_field_name("argument")
        if store.type == "call_expression":
            called = called_name(store, source)
            known = KNOWN_FUNCTIONS.fullmatch(called) is not None and called not in functions_of(source)
            if not known or re.match(r"atomic|__sync|printf", called):
                raise NoMatchError(f"{called} may change memory at line {line_of(source, store)}, in the loop.")
        elif target is not None and target.type != "identifier":
            raise NoMatchError(f"The loop stores to memory at line {line_of(source, store)}.")
    start, last = indices.number(loop.start), indices.number(loop.bound)
    if start is None or last is None or last <= start:
        read = source.node_text(base)
        raise NoMatchError(f"The loop at line {line_of(source, loop.node)} may not run, and `{read}` would be read.")


def _at_the_end(source: Source, block: Node, loop: CountedLoop, lines: list[str]) -> list[TextEdit]:
    """Statements at the end of each step; braces where the body has none."""
    indent, inside = source.line_indent(loop.node.start_byte), loop.body
    if inside.type == "compound_statement":
        close = inside.children[-1]
        statements = uncommented(inside)
        if not statements:
            raise NoMatchError
        own = source.position(close.start_byte)[0] != source.position(statements[-1].end_byte)[0]
        if own:
            at = source.line_starts[source.position(close.start_byte)[0] - 1]
            own_indent = source.line_indent(statements[-1].start_byte)
            return [TextEdit(at, at, "".join(f"{own_indent}{line}\n" for line in lines))]
        return [TextEdit(close.start_byte, close.start_byte, f"{' '.join(lines)} ")]
    before = inside.prev_sibling
    while before is not None and before.type == "comment":
        before = before.prev_sibling
    if before is None:
        raise NoMatchError
    inner = indent + indent_unit(source, block)
    return [
        TextEdit(before.end_byte, inside.start_byte, f" {{\n{inner}"),
        TextEdit(inside.end_byte, inside.end_byte, "".join(f"\n{inner}{line}" for line in lines) + f"\n{indent}}}"),
    ]
