"""Make an atomic function of an update that several threads race for.

## Before

```cuda
__global__ void count(int *bins, const int *keys, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    bins[0] += keys[i];
}

void run(int *bins, const int *keys, int n) {
  count<<<(n + 255) / 256, 256>>>(bins, keys, n);
}
```

## After

```cuda
__global__ void count(int *bins, const int *keys, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    atomicAdd(&bins[0], keys[i]);
}

void run(int *bins, const int *keys, int n) {
  count<<<(n + 255) / 256, 256>>>(bins, keys, n);
}
```

## Assumes

- The text shows, or a run has shown, that threads race for the update and nothing else: both sides of the race stand in
  one statement, whose result nobody takes.
- The update is `+=`, `-=`, `&=`, `|=`, `^=`, `++`, `--`, or `x = max(x, value)` and `min`, of a type that the atomic
  function takes.

## Cost

Threads that update one word take turns. Without it updates are lost.
"""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.facts.model import Kernel
from warpwright.facts.profile import FaultKind
from warpwright.rewrites._code import in_macro, overlaps
from warpwright.rewrites.base import Declined, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import descendants, enclosing, node_at, uncommented
from warpwright.syntax.source import Source, Span

NAME = "update-atomically"
title = "Update it with an atomic function"
goals = ("fix",)
relies_on = ()

_RACES = (FaultKind.SHARED_RACE, FaultKind.GLOBAL_RACE, FaultKind.MISSING_SYNCWARP)
_WHOLE = frozenset({"int", "unsigned", "unsigned int"})
_ADDED = _WHOLE | {"float", "double", "unsigned long long", "unsigned long long int"}
_FUNCTIONS = {"+=": "atomicAdd", "-=": "atomicAdd", "&=": "atomicAnd", "|=": "atomicOr", "^=": "atomicXor"}
_CHOICES = {"max": "atomicMax", "min": "atomicMin"}
_UNARY = ("identifier", "subscript_expression", "call_expression", "parenthesized_expression")
"""What a sign binds less than."""
_STEPS = {"++": "1", "--": "-1"}


@dataclass(frozen=True, slots=True)
class _Update:
    """A statement that changes one element: by which function, and by what."""

    statement: Node
    element: Node
    function: str
    value: str


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    source = kernel.source
    found: list[_Update] = []
    for span, array in _raced(kernel):
        if span.source is not source or (at is not None and not overlaps(span, at)):
            continue
        update = _update(source, span)
        if update is not None and _element_type(kernel, array) in (_ADDED if update.function == _ADD else _WHOLE):
            found.append(update)
    updates = list({update.statement.id: update for update in found}.values())
    if not updates:
        return Declined(NAME, f"No update in {kernel.name} is known that threads race for and an atomic function does.")
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=source,
        edits=tuple(_edit(source, update) for update in updates),
        explanation=(
            "A thread reads the element, changes the value and writes it back; what another thread writes in between "
            "is lost. The atomic function does all three at once."
        ),
    )


_ADD = "atomicAdd"


def _raced(kernel: Kernel) -> list[tuple[Span, str]]:
    """Places at which threads race with each other, in the text and in runs, each with its array."""
    read = [(race.other, race.array) for race in kernel.races if _in_one_line(race.write, race.other)]
    ran = [
        (fault.span, fault.array)
        for fault in kernel.faults
        if fault.kind in _RACES and fault.array and (fault.other is None or _in_one_line(fault.span, fault.other))
    ]
    return [*read, *ran]


def _in_one_line(one: Span, other: Span) -> bool:
    return (one.path, one.line) == (other.path, other.line)


def _update(source: Source, span: Span) -> _Update | None:
    """The one update whose statement a place stands in, or that stands in it, as a line of a run does."""
    node = node_at(source.root, span.start, span.end)
    around = enclosing(node, "expression_statement") if node is not None else None
    statements = [around] if around is not None else [*descendants(node, "expression_statement")] if node else []
    statements = [each for each in statements if source.span(each).line == span.line]
    if len(statements) != 1 or in_macro(statements[0]):
        return None
    (statement,) = statements
    inner = uncommented(statement)[0]
    if inner.type == "update_expression":
        element, operator = inner.child_by_field_name("argument"), inner.child_by_field_name("operator")
        if element is None or operator is None:
            return None
        return _Update(statement, element, _ADD, _STEPS[operator.type])
    left, operator, right = (inner.child_by_field_name(name) for name in ("left", "operator", "right"))
    if inner.type != "assignment_expression" or left is None or operator is None or right is None:
        return None
    name, value = source.node_text(left), source.node_text(right)
    if operator.type in _FUNCTIONS and name not in value:
        taken = f"-{value}" if right.type in _UNARY else f"-({value})"
        return _Update(statement, left, _FUNCTIONS[operator.type], taken if operator.type == "-=" else value)
    if operator.type == "=" and right.type == "call_expression" and called_name(right, source) in _CHOICES:
        given = [source.node_text(each) for each in uncommented(right.child_by_field_name("arguments"))]
        others = [each for each in given if each != name]
        if len(given) == 2 and len(others) == 1 and name not in others[0]:
            return _Update(statement, left, _CHOICES[called_name(right, source)], others[0])
    return None


def _element_type(kernel: Kernel, array: str) -> str:
    for shared in kernel.shared_arrays:
        if shared.name == array:
            return shared.element_type
    for parameter in kernel.parameters:
        if parameter.name == array:
            words = parameter.type.replace("*", " ").split()
            return " ".join(word for word in words if word not in (*_QUALIFIERS, array))
    return _declared_type(kernel.source, array)


_QUALIFIERS = ("__restrict__", "__restrict", "restrict")


def _declared_type(source: Source, name: str) -> str:
    """The type of a variable of the device."""
    for declaration in source.root.named_children:
        if declaration.type == "declaration" and "__device__" in source.node_code(declaration):
            kind = declaration.child_by_field_name("type")
            if kind is not None and any(
                source.node_text(each) == name for each in descendants(declaration, "identifier")
            ):
                return source.node_text(kind)
    return ""


def _edit(source: Source, update: _Update) -> TextEdit:
    element = source.node_text(update.element)
    is_deref = update.element.type == "pointer_expression" and element.startswith("*")
    address = element[1:].strip() if is_deref else f"&{element}"
    text = f"{update.function}({address}, {update.value});"
    return TextEdit(update.statement.start_byte, update.statement.end_byte, text)
