"""A function that a kernel calls once, where all threads of a block come to the call together."""

from __future__ import annotations

from dataclasses import replace

from warpwright.cuda.functions import called_name, function_name
from warpwright.facts.model import Kernel
from warpwright.rewrites._code import body, in_macro, names
from warpwright.rewrites._early import early_returns
from warpwright.syntax.nodes import ancestors, enclosing, node_at
from warpwright.syntax.source import Span


def as_called_once(kernel: Kernel, span: Span) -> Kernel | None:
    """The kernel with the body of the function that a piece of text stands in for its own, and no parameters that are
    the same for all threads. None where that function is used in more than one place, or the call is not a statement at
    the kernel's outermost level that no thread leaves before.

    Example: `accumulate(in, out);` as the kernel's last line.
    """
    source, block = kernel.source, body(kernel)
    if span.source is not source or block is None:
        return None
    inner = node_at(source.root, span.start, span.end)
    function = enclosing(inner, "function_definition") if inner is not None else None
    if function is None or function == kernel.node or in_macro(function):
        return None
    declarator = function.child_by_field_name("declarator")
    name = (function_name(source, function) or "").partition("<")[0].strip()
    uses = [
        use
        for use in names(source.root, source, name)
        if declarator is None or not declarator.start_byte <= use.start_byte < declarator.end_byte
    ]
    call = enclosing(uses[0], "call_expression") if len(uses) == 1 else None
    statement = call.parent if call is not None and called_name(call, source) == name else None
    if statement is None or statement.type != "expression_statement" or statement.parent != block:
        return None
    if early_returns(source, block) or any(n.type.startswith("preproc") for n in ancestors(statement)):
        return None
    return replace(kernel, node=function, span=source.span(function), parameters=())
