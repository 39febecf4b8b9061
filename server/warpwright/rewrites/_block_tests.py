"""The tests that a block as a whole passes on its way to a statement."""

from __future__ import annotations

from tree_sitter import Node

from warpwright.facts.model import Kernel
from warpwright.rewrites._code import NoMatchError, condition_of
from warpwright.rewrites._early import is_integer_text
from warpwright.rewrites._first_thread import conjuncts
from warpwright.rewrites._guards import comparisons
from warpwright.rewrites._layout import line_of
from warpwright.rewrites._locals import locals_of
from warpwright.rewrites._uniform import is_uniform
from warpwright.syntax.nodes import ancestors, descendants, enclosing
from warpwright.syntax.source import Source


def block_tests(kernel: Kernel, block: Node, atomic: Node, early: list[Node], first: Node) -> list[str]:
    """What a block as a whole passes on its way to the atomic, and has to pass again: where it does not, there may be
    nothing at the address. Example: `row < rows` of `if (row < rows)` and of `if (row >= rows) return;`.

    `early` are the returns before it, `first` the first statement of the stretch that the tests are moved behind."""
    source, variables, tests = kernel.source, locals_of(kernel), list[str]()
    visible = first.start_byte
    for around in ancestors(atomic):
        if around == block:
            break
        test = condition_of(around) if around.type == "if_statement" else None
        if test is None or test.start_byte <= atomic.start_byte < test.end_byte:
            continue
        then = around.child_by_field_name("consequence")
        leaves = [leaf for leaf in conjuncts(test) if is_uniform(kernel, variables, leaf)]
        if then is None or not then.start_byte <= atomic.start_byte < then.end_byte:
            if leaves:
                raise NoMatchError(f"The block may not reach the `else` at line {line_of(source, around)}.")
            continue
        tests += [_plain(source, leaf) for leaf in leaves]
        _require_visible(kernel, block, leaves, visible)
    for guard in early:
        test = condition_of(guard)
        for leaf in conjuncts(test, "||") if test is not None else []:
            if is_uniform(kernel, variables, leaf):
                _require_visible(kernel, block, [leaf], visible)
                tests.append(_opposite(kernel, leaf))
    return list(dict.fromkeys(tests))


def _plain(source: Source, test: Node) -> str:
    text = source.node_text(test)
    return f"({text})" if test.type == "conditional_expression" or "||" in text else text


def _opposite(kernel: Kernel, test: Node) -> str:
    source = kernel.source
    conditions = comparisons(source, test, leaves=True)
    if conditions and len(conditions) == 1 and is_integer_text(source, test, locals_of(kernel).types):
        return conditions[0].text(source)
    text = source.node_text(test)
    return f"!{text}" if text.isidentifier() else f"!({text})"


def _require_visible(kernel: Kernel, block: Node, tests: list[Node], visible: int) -> None:
    for name in (n for test in tests for n in descendants(test, "identifier")):
        value = locals_of(kernel).values.get(kernel.source.node_text(name))
        if value is not None and not (is_outer(value, block) and value.end_byte < visible):
            text = kernel.source.node_text(name)
            raise NoMatchError(
                f"`{text}`, which decides whether the block adds, is declared too late to be used afterwards."
            )


def is_outer(value: Node, block: Node) -> bool:
    """Whether it is the value of a variable that is declared at a kernel's outermost level."""
    statement = enclosing(value, "declaration")
    return statement is not None and statement.parent == block
