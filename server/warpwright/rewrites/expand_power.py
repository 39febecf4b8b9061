"""Write pow with a small constant exponent as products, a quotient or a square root.

## Before

```cuda
__global__ void energy(float *out, const float *v, const float *m, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = 0.5f * m[i] * powf(v[i], 2.0f);
}
```

## After

```cuda
__global__ void energy(float *out, const float *v, const float *m, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = 0.5f * m[i] * (v[i] * v[i]);
}
```

## Assumes

- The base can be written several times: it calls nothing and changes nothing. Otherwise the rewrite is refused, as it
  is for an integer base, whose product could overflow, and inside a macro.
- The call means CUDA's own pow or powf; one that the program defines has no such finding.

## Cost

The last digits can change, and `pow(x, 2)` of a float becomes a float where it was a double. `sqrt` gives -0 for -0 and
NaN for -infinity where pow gives 0 and infinity.
"""

from __future__ import annotations

from tree_sitter import Node

from warpwright.facts.model import Kernel, Power
from warpwright.rewrites._code import overlaps
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import node_at, uncommented
from warpwright.syntax.source import Span

NAME = "expand-power"
title = "Expand the power"
goals = ("speed",)
relies_on = ()

_PURE = frozenset((
    "identifier", "field_expression", "field_identifier", "subscript_expression", "subscript_argument_list",
    "parenthesized_expression", "binary_expression", "unary_expression", "number_literal", "cast_expression",
    "type_descriptor", "primitive_type", "type_identifier", "pointer_expression", "sized_type_specifier", "this",
    "qualified_identifier", "namespace_identifier",
))  # fmt: skip
"""What a base that is written twice may consist of."""
_PRIMARY = ("identifier", "subscript_expression", "field_expression", "parenthesized_expression", "call_expression")
_ALONE = ("assignment_expression", "init_declarator", "argument_list", "return_statement", "parenthesized_expression")
"""What can stand around a product without parentheses."""
_ONCE = (-1.0, 0.5, -0.5)


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    here = [p for p in kernel.powers if at is None or overlaps(p.span, at)]
    refusal = Declined(NAME, "No pow with a small constant exponent is called here.")
    edits: list[TextEdit] = []
    done: list[Power] = []
    for power in here:
        result = _expanded(power)
        if isinstance(result, Declined):
            refusal = result if not edits else refusal
        elif all(power.span.source is other.span.source and not overlaps(power.span, other.span) for other in done):
            edits.append(TextEdit(power.span.start, power.span.end, result))
            done.append(power)
    if not edits:
        return refusal
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=done[0].span.source,
        edits=tuple(edits),
        explanation=(
            "pow is the general function for any exponent, and the compiler calls it for a constant one too: some 75 "
            "instructions in float and 200 in double. A product is one or two; results can change in the last digits."
        ),
        safe=False,
    )


def _expanded(power: Power) -> str | Declined:
    """What the call is replaced by."""
    source = power.span.source
    call = node_at(source.root, power.span.start, power.span.end)
    while call is not None and call.type != "call_expression" and call.end_byte <= power.span.end:
        call = call.parent
    arguments = uncommented(call.child_by_field_name("arguments")) if call is not None else []
    if call is None or (call.start_byte, call.end_byte) != (power.span.start, power.span.end) or len(arguments) != 2:
        return Declined(NAME, f"`{power.span.text}` is a macro's, which other code may use.")
    if power.base_type not in ("float", "double"):
        return Declined(NAME, f"The base is of the type {power.base_type}, and its product could overflow.")
    base = arguments[0]
    if power.exponent not in _ONCE and not _is_pure(base):
        return Declined(NAME, f"`{source.node_text(base)}` would be evaluated more than once.")
    text = source.node_text(base)
    whole = _formula(power, text if base.type in _PRIMARY else f"({text})")
    if whole is None:
        return Declined(NAME, f"There is nothing short to write for the exponent {power.exponent:g}.")
    around = call.parent
    loose = around is None or around.type not in _ALONE
    return f"({whole})" if loose and not whole.startswith(("sqrt", "rsqrt")) else whole


def _formula(power: Power, x: str) -> str | None:
    small = power.base_type == "float"
    one, root = ("1.0f", "sqrtf") if small else ("1.0", "sqrt")
    return {
        2.0: f"{x} * {x}",
        3.0: f"{x} * {x} * {x}",
        4.0: f"({x} * {x}) * ({x} * {x})",
        -1.0: f"{one} / {x}",
        -2.0: f"{one} / ({x} * {x})",
        0.5: f"{root}({_bare(x)})",
        -0.5: f"r{root}({_bare(x)})",
        1.5: f"{x} * {root}({_bare(x)})",
    }.get(power.exponent)


def _bare(text: str) -> str:
    """Without the parentheses that were put around."""
    inner = text[1:-1] if text.startswith("(") and text.endswith(")") else text
    return inner if inner.count("(") == inner.count(")") and ")" not in inner.partition("(")[0] else text


def _is_pure(node: Node) -> bool:
    return node.type in _PURE and all(_is_pure(child) for child in node.named_children if child.type != "comment")
