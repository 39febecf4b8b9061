"""What is the same for all threads of a block, read from the text alone: certain where it says yes."""

from __future__ import annotations

from collections.abc import Collection

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.cuda.numbers import number_at
from warpwright.facts.model import Kernel
from warpwright.rewrites._code import macro_texts
from warpwright.rewrites._locals import Locals, locals_of
from warpwright.rewrites._row_loop import targets
from warpwright.syntax.nodes import declared_name, descendants

_OF_BLOCK = frozenset({"blockIdx", "blockDim", "gridDim", "warpSize"})
_PURE = frozenset({"min", "max", "abs", "fminf", "fmaxf", "fabsf", "sizeof", "ceilf", "floorf"})


def is_uniform(kernel: Kernel, variables: Locals, node: Node, known: Collection[str] = ()) -> bool:
    """Whether an expression has one value for all threads of a block wherever it is evaluated.

    It is made of literals, constants, parameters that never change, blockIdx, blockDim, gridDim, and variables that are
    set once, to such a value. `known` are names that the caller vouches for. Nothing that is read from memory counts.
    """
    source = kernel.source
    if any(True for _ in descendants(node, "subscript_expression", "pointer_expression", "lambda_expression")):
        return False
    if any(called_name(call, source) not in _PURE for call in descendants(node, "call_expression")):
        return False
    if any(True for _ in descendants(node, "assignment_expression", "update_expression")):
        return False
    for field in descendants(node, "field_expression"):
        argument = field.child_by_field_name("argument")
        through_pointer = "->" in source.node_code(field)
        if argument is None or argument.type != "identifier" or through_pointer:
            return False
    return all(_is_uniform_name(kernel, variables, name, known) for name in descendants(node, "identifier"))


def is_even_loop(kernel: Kernel, loop: Node) -> bool:
    """Whether all threads of a block run a `for` equally often: its header is made of what is the same for all."""
    source, variables = kernel.source, locals_of(kernel)
    initializer, inside = loop.child_by_field_name("initializer"), loop.child_by_field_name("body")
    declarators = initializer.children_by_field_name("declarator") if initializer is not None else []
    if initializer is None or initializer.type != "declaration" or inside is None:
        return False
    own = {declared_name(source, d) for d in declarators}
    if any(source.node_text(t) in own for t in targets(inside, source)):
        return False
    starts = [d.child_by_field_name("value") for d in declarators]
    condition, update = loop.child_by_field_name("condition"), loop.child_by_field_name("update")
    if (
        condition is None
        or update is None
        or not all(s is not None and is_uniform(kernel, variables, s) for s in starts)
    ):
        return False
    steps = [update] if update.type != "comma_expression" else []
    by = [u.child_by_field_name("right") for u in steps if u.type == "assignment_expression"]
    plain = bool(steps) and all(u.type in ("assignment_expression", "update_expression") for u in steps)
    return (
        plain
        and all(b is not None and is_uniform(kernel, variables, b, own) for b in by)
        and is_uniform(kernel, variables, condition, own)
    )


def _is_uniform_name(kernel: Kernel, variables: Locals, name: Node, known: Collection[str]) -> bool:
    text = kernel.source.node_text(name)
    if text in _OF_BLOCK or text in known:
        return True
    if text in _PURE and name.parent is not None and name.parent.type == "call_expression":
        return True
    if text in variables.types:
        if not variables.is_fixed(text):
            return False
        value = variables.values.get(text)
        return value is None or is_uniform(kernel, variables, value, known)
    if text in macro_texts(kernel.source) or text in variables.changed:
        return number_at(kernel.source, name, text) is not None
    return number_at(kernel.source, name, text) is not None or _is_template_value(kernel, text)


def _is_template_value(kernel: Kernel, name: str) -> bool:
    """Whether a name is a number that the kernel's template takes: `int N`."""
    around = kernel.node.parent if kernel.node is not None else None
    parameters = around.child_by_field_name("parameters") if around is not None else None
    kinds = ("parameter_declaration", "optional_parameter_declaration")
    values = [p for p in parameters.named_children if p.type in kinds] if parameters is not None else []
    return any(kernel.source.node_text(n) == name for p in values for n in descendants(p, "identifier"))
