"""Arrays whose values a kernel looks at before it uses them, as one does that knows marks for "no index".

Example: `index` of `int j = index[i]; out[i] = j >= 0 ? table[j] : 0.0f;`. A comparison in the head of a loop, as in
`for (int k = rows[r]; k < rows[r + 1]; k++)`, looks at nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from warpwright.cuda.walks import nodes_below
from warpwright.syntax.nodes import LOOPS, walk
from warpwright.syntax.source import Source

_LOOKING = {"binary_expression": ("<", "<=", ">", ">=", "==", "!="), "unary_expression": ("!", "~")}
"""What looks at a value, by the type of the expression."""


def guarded_arrays(source: Source, function: Node, names: frozenset[str]) -> tuple[str, ...]:
    """Those of the arrays `names` that a comparison in the function names, or a variable that was made of them."""
    if not names:
        return ()
    made_of = {name: {name} for name in names}
    for _ in range(2):  # of a variable that was made of a variable
        for name, value in _assigned(source, function):
            found = {array for word in _words(source, value) for array in made_of.get(word, ())}
            if found and name not in names:
                made_of.setdefault(name, set()).update(found)
    guarded = {
        array
        for condition in _conditions(source, function)
        for word in _words(source, condition)
        for array in made_of.get(word, ())
    }
    return tuple(sorted(guarded))


def _assigned(source: Source, function: Node) -> Iterator[tuple[str, Node]]:
    for node in nodes_below(source, function, "init_declarator", "assignment_expression"):
        target = node.child_by_field_name("declarator") or node.child_by_field_name("left")
        value = node.child_by_field_name("value") or node.child_by_field_name("right")
        if target is not None and value is not None and target.type == "identifier":
            yield source.node_text(target), value


def _conditions(source: Source, function: Node) -> Iterator[Node]:
    """Comparisons and negations outside of loops' heads."""
    heads = [
        (head.start_byte, head.end_byte)
        for loop in walk(function)
        if loop.type in LOOPS and (head := loop.child_by_field_name("condition")) is not None
    ]
    for node in walk(function):
        operators = _LOOKING.get(node.type)
        operator = node.child_by_field_name("operator") if operators else None
        if operator is not None and operators is not None and source.node_text(operator) in operators:
            is_of_a_loop = any(start <= node.start_byte and node.end_byte <= end for start, end in heads)
            yield from () if is_of_a_loop else (node,)


def _words(source: Source, node: Node) -> Iterator[str]:
    """Names, and members as `view.index`."""
    for each in walk(node):
        if each.type in ("identifier", "field_expression"):
            yield source.node_text(each)
