"""Take a division out of a loop: a reciprocal before it, or a counter that wraps around in it.

## Before

```cuda
__global__ void normalize(float *out, const float *in, float scale, int columns) {
  int row = blockIdx.x * columns;
  for (int i = threadIdx.x; i < columns; i += blockDim.x)
    out[row + i] = in[row + i] / scale;
}

void run(float *out, const float *in, float scale, int rows, int columns) {
  normalize<<<rows, 128>>>(out, in, scale, columns);
}
```

```cuda
__global__ void filter(float *out, const float *ring, int n, unsigned int length) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float sum = 0.0f;
    for (int k = 0; k < 8; k++) {
      sum += ring[(i + k) % length];
    }
    out[i] = sum;
  }
}

void run(float *out, const float *ring, int n, unsigned int length) {
  filter<<<(n + 255) / 256, 256>>>(out, ring, n, length);
}
```

## After

```cuda
__global__ void normalize(float *out, const float *in, float scale, int columns) {
  int row = blockIdx.x * columns;
  const float scale_inverse = 1.0f / scale;
  for (int i = threadIdx.x; i < columns; i += blockDim.x)
    out[row + i] = in[row + i] * scale_inverse;
}

void run(float *out, const float *in, float scale, int rows, int columns) {
  normalize<<<rows, 128>>>(out, in, scale, columns);
}
```

```cuda
__global__ void filter(float *out, const float *ring, int n, unsigned int length) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float sum = 0.0f;
    auto wrapped = i % length;
    for (int k = 0; k < 8; k++) {
      sum += ring[wrapped];
      if (++wrapped == length) wrapped = 0;
    }
    out[i] = sum;
  }
}

void run(float *out, const float *ring, int n, unsigned int length) {
  filter<<<(n + 255) / 256, 256>>>(out, ring, n, length);
}
```

A quotient of the same operands becomes a second counter, which steps when the first wraps around.

## Assumes

- The divisor is a variable that keeps its value over the loop.
- A floating-point divisor is large enough that its reciprocal is finite: above 3e-39 for float, 6e-309 for double.
  Where it is smaller and not 0, 0 by it would be NaN. The dividend is of no wider type.
- No whole number is made of a floating-point quotient (`floorf`, a cast to `int`): its last bit may decide which.
- An integer dividend grows by 1 with each step of the loop from what numbers of threads and blocks make it, so that it
  is not negative and does not wrap around. Its divisor is unsigned, and no step ends early by `continue`.

## Cost

A register. Integers stay exact. A quotient by a reciprocal is rounded twice: it is at most 1.5 units in the last place
off, where a division is rounded to the nearest (CUDA C++ Programming Guide, "Mathematical Functions": 1 / x and x * y
have an error of half a unit each).
"""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.algebra.sums import as_number, coefficient, symbols
from warpwright.facts.model import Kernel
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import NoMatchError, body, overlaps, squeezed, with_names
from warpwright.rewrites._indices import Indices, indices_of
from warpwright.rewrites._layout import before_statement, free_name, indent_unit, line_of
from warpwright.rewrites._locals import changed_names, declared_names
from warpwright.rewrites._loops import CountedLoop, counted_loop, pragmas_before
from warpwright.rewrites._movable import movable_body
from warpwright.rewrites._quotients import computed_from_data, made_whole, wider_than_float
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import LOOPS, descendants, enclosing, uncommented
from warpwright.syntax.source import Source, Span

NAME = "replace-division"
title = "Strength-reduce the division"
goals = ("speed",)
relies_on = ()


FEWEST_STEPS = 4
"""Of a loop: a reciprocal or a remainder before it costs as much as one division in it."""

LARGEST_FACTOR = 64
"""Of a thread's index in a dividend that is taken not to wrap around: `i * 2654435761u` is a hash."""


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = movable_body(kernel)
    source, indices = kernel.source, indices_of(kernel, None)
    reason = "No loop here divides by a value that stays the same."
    for division in descendants(block, "binary_expression", "assignment_expression"):
        operator = division.child_by_field_name("operator")
        if operator is None or operator.type not in ("/", "%", "/="):
            continue
        loop = enclosing(division, *LOOPS)
        if loop is None or (at is not None and not overlaps(source.span(division), at)):
            continue
        try:
            divisor = _divisor(source, indices, division, loop)
            kind = builtin_type(indices.variables.types.get(divisor, ""))
            _require_line_before(source, loop)
            if kind is not None and kind.kind == "float" and kind.name in ("float", "double"):
                return _reciprocals(kernel, indices, division, loop, at)
            return _counter(kernel, indices, division, loop, divisor)
        except NoMatchError as mismatch:
            reason = str(mismatch) or reason
    return Declined(NAME, reason)


def _divisor(source: Source, indices: Indices, division: Node, loop: Node) -> str:
    """The variable that a division divides by, which the loop does not change."""
    right = division.child_by_field_name("right")
    if right is None or right.type != "identifier":
        raise NoMatchError
    name = source.node_text(right)
    if as_number(indices.named(name)) is not None:
        raise NoMatchError(f"Nothing to gain: the compiler divides by the constant {name} with a product and a shift.")
    within = declared_names(source, loop)
    if name in within or name in set(changed_names(source, loop)):
        raise NoMatchError(f"`{name}` changes in the loop at line {line_of(source, loop)}.")
    if name not in indices.variables.types:
        raise NoMatchError(f"What `{name}` is does not stand in the kernel.")
    counted = counted_loop(source, loop)
    steps = indices.number(counted.bound) if counted is not None else None
    if steps is not None and steps < FEWEST_STEPS:
        raise NoMatchError(f"Nothing to gain: the loop at line {line_of(source, loop)} has {steps} steps at most.")
    return name


def _require_line_before(source: Source, loop: Node) -> None:
    first = next(iter(pragmas_before(source, loop)), loop)
    alone = not source.text(0, first.start_byte).rpartition("\n")[2].strip()
    if loop.parent is None or loop.parent.type != "compound_statement" or not alone:
        raise NoMatchError(f"No statement can be inserted before the loop at line {line_of(source, loop)}.")


def _reciprocals(kernel: Kernel, indices: Indices, division: Node, loop: Node, at: Span | None) -> Rewrite:
    """The reciprocals of a divisor and of others, before the outermost loop that does not change it."""
    source = kernel.source
    while (outer := enclosing(loop, *LOOPS)) is not None:
        try:
            _divisor(source, indices, division, outer)
            _require_line_before(source, outer)
        except NoMatchError:
            break
        loop = outer
    divisor = _divisor(source, indices, division, loop)
    found = {divisor: _reciprocal(kernel, indices, loop, divisor)}
    for other in descendants(loop, "binary_expression", "assignment_expression"):
        operator = other.child_by_field_name("operator")
        if at is None and operator is not None and operator.type in ("/", "/="):
            try:
                name = _divisor(source, indices, other, loop)
                if name not in found:
                    found[name] = _reciprocal(kernel, indices, loop, name)
            except NoMatchError:
                continue
    lines = [line for line, _ in found.values()]
    listed = " and ".join(found)
    data = next((name for name in found if computed_from_data(source, indices, name)), "")
    assumed = (
        f" {data} is computed from data: where it is below 3e-39 (6e-309 for double) and not 0, its reciprocal is "
        "infinite, and a quotient of 0 would be NaN."
        if data
        else ""
    )
    return Rewrite(
        NAME,
        f"Multiply by the reciprocal of {listed}",
        source,
        (before_statement(source, loop, lines), *(edit for _, edits in found.values() for edit in edits)),
        f"A division is some ten instructions, a product one. {listed} stays the same over the loop, so its "
        "reciprocal is computed once. The result is rounded twice: at most 1.5 units in the last place off, where a "
        "division is rounded to the nearest (CUDA C++ Programming Guide, Mathematical Functions). It costs a register."
        f"{assumed}",
        safe=False,
    )


def _reciprocal(kernel: Kernel, indices: Indices, loop: Node, divisor: str) -> tuple[str, list[TextEdit]]:
    """The declaration of a divisor's reciprocal, and the edits that multiply by it."""
    source, kind = kernel.source, builtin_type(indices.variables.types.get(divisor, ""))
    if kind is None or kind.kind != "float" or kind.name not in ("float", "double"):
        raise NoMatchError(f"`{divisor}` is neither float nor double.")
    name = free_name(source.code_text(), f"{divisor}_inverse")
    edits: list[TextEdit] = []
    for division in descendants(loop, "binary_expression", "assignment_expression"):
        operator, left = division.child_by_field_name("operator"), division.child_by_field_name("left")
        right = division.child_by_field_name("right")
        if operator is None or left is None or right is None or operator.type not in ("/", "/="):
            continue
        if source.node_text(right) != divisor:
            continue
        if whole := made_whole(source, indices, division):
            raise NoMatchError(
                f"`{whole}` at line {line_of(source, division)} makes a whole number of the quotient, and would jump "
                "to the next where the quotient is off by its last bit."
            )
        if kind.name == "float" and (wider := wider_than_float(kernel, indices, left)):
            raise NoMatchError(f"`{wider}` at line {line_of(source, left)} is not known to be a float.")
        edits.append(TextEdit(operator.start_byte, operator.end_byte, operator.type.replace("/", "*")))
        edits.append(TextEdit(right.start_byte, right.end_byte, name))
    return f"const {kind.name} {name} = {'1.0f' if kind.name == 'float' else '1.0'} / {divisor};", edits


def _counter(kernel: Kernel, indices: Indices, division: Node, loop: Node, divisor: str) -> Rewrite:
    source, counted = kernel.source, counted_loop(kernel.source, loop)
    dividend = division.child_by_field_name("left")
    line = line_of(source, division)
    if counted is None or counted.step is not None or dividend is None:
        raise NoMatchError(f"The loop around line {line} does not count by steps of 1.")
    if division.type != "binary_expression":
        raise NoMatchError(f"What is divided at line {line} is a variable of its own.")
    kind = builtin_type(indices.variables.types.get(divisor, ""))
    if kind is None or kind.kind != "uint":
        raise NoMatchError(f"`{divisor}` is not unsigned, so it may be negative.")
    _require_grows(source, indices, counted, dividend)
    for leave in descendants(counted.body, "continue_statement"):
        raise NoMatchError(f"An iteration may end early at line {line_of(source, leave)}.")
    if counted.body.type != "compound_statement":
        raise NoMatchError(f"The body of the loop at line {line_of(source, loop)} has no braces for a counter.")
    text = squeezed(source.node_code(dividend))
    uses: dict[str, list[Node]] = {"%": [], "/": []}
    for other in descendants(counted.body, "binary_expression"):
        operator, left = other.child_by_field_name("operator"), other.child_by_field_name("left")
        right = other.child_by_field_name("right")
        same = left is not None and right is not None and source.node_text(right) == divisor
        if operator is not None and operator.type in uses and same and left is not None:
            uses[operator.type] += [other] if squeezed(source.node_code(left)) == text else []
    rest, quotient = free_name(source.code_text(), "wrapped"), free_name(source.code_text(), "quotient")
    start = source.node_text(counted.start)
    first = _at_start(source, dividend, counted.name, start)
    lines = [f"auto {rest} = {first} % {divisor};"]
    step = f"if (++{rest} == {divisor}) {rest} = 0;"
    if uses["/"]:
        lines.append(f"auto {quotient} = {first} / {divisor};")
        step = f"if (++{rest} == {divisor}) {{ {rest} = 0; {quotient}++; }}"
    edits = [before_statement(source, loop, lines)]
    edits += [TextEdit(n.start_byte, n.end_byte, rest) for n in uses["%"]]
    edits += [TextEdit(n.start_byte, n.end_byte, quotient) for n in uses["/"]]
    last = counted.body.named_children[-1]
    inner = source.line_indent(last.start_byte)
    if line_of(source, last) == line_of(source, loop):
        inner = source.line_indent(loop.start_byte) + indent_unit(source, body(kernel) or counted.body)
    edits.append(TextEdit(last.end_byte, last.end_byte, f"\n{inner}{step}"))
    return Rewrite(
        NAME,
        f"Count instead of dividing by {divisor}",
        source,
        tuple(edits),
        f"GPUs have no instruction for integer division: by {divisor}, which is known only at run time, it takes 6 to "
        "30 instructions per iteration. The dividend grows by 1, so a counter that wraps around has the same values "
        "for a comparison and an addition. It costs a register.",
    )


def _at_start(source: Source, dividend: Node, name: str, start: str) -> str:
    """The dividend before the first step: `i` for `(i + k)` with k from 0."""
    inner = dividend
    while inner.type == "parenthesized_expression" and len(uncommented(inner)) == 1:
        inner = uncommented(inner)[0]
    left, right = inner.child_by_field_name("left"), inner.child_by_field_name("right")
    operator = inner.child_by_field_name("operator")
    if start == "0" and left is not None and right is not None and operator is not None and operator.type == "+":
        for step, rest in ((left, right), (right, left)):
            if source.node_text(step) == name:
                text = source.node_text(rest)
                return f"({text})" if rest.type == "binary_expression" else text
    return with_names(source, dividend, {name: start if re.fullmatch(r"\w+", start) else f"({start})"})


def _require_grows(source: Source, indices: Indices, loop: CountedLoop, dividend: Node) -> None:
    """The dividend grows by 1 with each step, from a value that is not negative."""
    value, start = indices.read(dividend), indices.number(loop.start)
    line = line_of(source, dividend)
    within = declared_names(source, loop.body)
    for use in descendants(dividend, "identifier"):
        if source.node_text(use) in within:
            raise NoMatchError(f"`{source.node_text(use)}` at line {line} is another one at each step.")
    if value is None or coefficient(value, loop.name) != 1:
        raise NoMatchError(f"`{source.node_text(dividend)}` at line {line} does not grow by 1 with each step.")
    changed = set(changed_names(source, loop.body))
    for name in symbols(value) - {loop.name}:
        if "." not in name:
            raise NoMatchError(
                f"`{name}` in the dividend at line {line} may be negative, or so large that it wraps around."
            )
        if name in changed or loop.name in changed:
            raise NoMatchError(f"`{name if name in changed else loop.name}` changes in the loop.")
    if any(n > LARGEST_FACTOR for n in value.values()):
        raise NoMatchError(f"`{source.node_text(dividend)}` at line {line} may be so large that it wraps around.")
    if start is None or start < 0 or any(n < 0 for n in value.values()):
        raise NoMatchError(f"`{source.node_text(dividend)}` at line {line} may be negative.")
