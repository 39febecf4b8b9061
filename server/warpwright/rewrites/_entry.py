"""All threads of a block brought to a loop that those outside of the data skipped or left before.

`if (i >= n) return;` becomes `const bool inside = i < n;`, what stands between it and the loop loads nothing where that
is false, and behind the loop the threads outside leave.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.facts.model import Kernel
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import NoMatchError, matched, squeezed
from warpwright.rewrites._early import is_integer_text
from warpwright.rewrites._guards import Condition, Guard, guard_of
from warpwright.rewrites._layout import free_name, line_of, reindented
from warpwright.rewrites._locals import Locals, locals_of
from warpwright.rewrites._loops import counted_loop, pragmas_before
from warpwright.rewrites._threads import unfit_call
from warpwright.syntax.edits import TextEdit, apply_edits
from warpwright.syntax.encoding import decoded
from warpwright.syntax.nodes import ancestors, declared_name, descendants, walk
from warpwright.syntax.source import Source


@dataclass(frozen=True, slots=True)
class Entry:
    """`inside` is the variable that says whether a thread works on data, empty where every thread does; `edits` bring
    all threads to the loop, and `behind`, for right behind it, lets those outside leave. `indent` is the loop's then.
    `conditions` are those that `inside` is made of.
    """

    inside: str
    conditions: tuple[Condition, ...]
    edits: tuple[TextEdit, ...]
    behind: str
    indent: str


def entry_of(kernel: Kernel, block: Node, loop: Node) -> Entry:
    """How all threads of a block come to a loop of a kernel. Raises NoMatchError with the reason where they cannot."""
    source = kernel.source
    guard = matched(guard_of(source, block, loop))
    if not guard.conditions:
        return Entry("", (), (), "", source.line_indent(loop.start_byte))
    if len(guard.early) > 1:
        raise NoMatchError(f"Threads may leave at line {line_of(source, guard.early[1])} too, before the loop.")
    branch = guard.around or guard.early[0]
    test = branch.child_by_field_name("condition")
    types = locals_of(kernel).types
    if test is None or not is_integer_text(source, test, types):
        raise NoMatchError(
            f"The condition at line {line_of(source, branch)} is more than comparisons of whole numbers."
        )
    inside = free_name(source.code_text(), "inside")
    declared = f"const bool {inside} = {' && '.join(condition.text(source) for condition in guard.conditions)};"
    loads = [edit for statement in guard.before for edit in _only_inside(kernel, block, statement, inside)]
    indent = source.line_indent(branch.start_byte)
    if guard.around is not None:
        return _opened(kernel, guard, loop, inside, declared, loads)
    for comment in descendants(branch, "comment"):
        raise NoMatchError(f"A comment stands in the condition at line {line_of(source, comment)}, and would be lost.")
    follows = any(n.start_byte >= loop.end_byte and n.type != "comment" for n in block.named_children)
    behind = f"\n{source.line_indent(loop.start_byte)}if (!{inside}) return;" if follows else ""
    return Entry(
        inside, guard.conditions, (TextEdit(branch.start_byte, branch.end_byte, declared), *loads), behind, indent
    )


def _opened(kernel: Kernel, guard: Guard, loop: Node, inside: str, declared: str, loads: list[TextEdit]) -> Entry:
    """`if (i < n) { a; loop; b; }` as `a; loop; if (inside) { b; }`."""
    source, around = kernel.source, guard.around
    braces = around.child_by_field_name("consequence") if around is not None else None
    if around is None or braces is None:
        raise NoMatchError
    types = locals_of(kernel).types
    for statement in guard.before:
        for declarator in statement.children_by_field_name("declarator"):
            if (name := declared_name(source, declarator)) not in types:
                raise NoMatchError(f"`{name}` is declared more than once in {kernel.name}.")
    first = braces.named_children[0]
    begin = min(first.start_byte, next(iter(pragmas_before(source, loop)), loop).start_byte)
    until = next(iter(pragmas_before(source, loop)), loop).start_byte
    old, new = source.line_indent(until), source.line_indent(around.start_byte)
    moved = [TextEdit(e.start - begin, e.end - begin, e.new_text) for e in loads]
    text = decoded(apply_edits(source.data[begin:until], moved))
    text = reindented(text, old, new)
    if text.endswith(old) and text.strip():
        text = text[: len(text) - len(old)] + new
    edit = TextEdit(around.start_byte, until, f"{declared}\n{new}{text}")
    return Entry(inside, guard.conditions, (edit,), f"\n{new}if ({inside}) {{", new)


def made_of(source: Source, variables: Locals, node: Node) -> set[str]:
    """The names that an expression is computed from, through variables that are set once: `threadIdx.x`, `n`."""
    found: set[str] = set()
    waiting = [node]
    while waiting:
        each = waiting.pop()
        for part in descendants(each, "identifier", "field_expression"):
            text = squeezed(source.node_code(part))
            if text not in found:
                found.add(text)
                value = variables.values.get(text)
                waiting += [value] if value is not None else []
    return found


def _only_inside(kernel: Kernel, block: Node, statement: Node, inside: str) -> Iterator[TextEdit]:
    """What lets a statement load nothing for the threads outside. Raises NoMatchError where it does more than set
    variables."""
    source, types = kernel.source, locals_of(kernel).types
    line = line_of(source, statement)
    if statement.type in ("comment", "preproc_call"):
        return
    refusal = NoMatchError(
        f"Line {line} would run for threads outside of the data too, and does more than set variables."
    )
    kinds = ("declaration", "expression_statement", "if_statement", "for_statement")
    text = source.node_code(statement)
    if statement.type not in kinds or any(word in text for word in ("__shared__", "static", "->", "atomic")):
        raise refusal
    if reason := unfit_call(kernel, statement):
        raise NoMatchError(reason)
    arrays = _own_arrays(source, block)
    pointers = {p.name for p in kernel.parameters if p.is_pointer}
    for node in walk(statement):
        match node.type:
            case "assignment_expression" | "update_expression":
                target = node.child_by_field_name("left") or node.child_by_field_name("argument")
                while target is not None and target.type in ("subscript_expression", "field_expression"):
                    target = target.child_by_field_name("argument")
                name = source.node_text(target) if target is not None and target.type == "identifier" else ""
                is_element = (node.child_by_field_name("left") or node).type == "subscript_expression"
                if name not in types or name in pointers or (is_element and name not in arrays):
                    raise refusal
            case "call_expression":
                if any(source.node_text(n) in pointers for n in descendants(node, "identifier") if not _is_element(n)):
                    raise NoMatchError(f"{called_name(node, source)} at line {line_of(source, node)} may load.")
            case "pointer_expression" | "while_statement" | "do_statement" | "switch_statement":
                raise refusal
            case "for_statement" if counted_loop(source, node) is None:
                raise refusal
            case "subscript_expression":
                edit = _load_inside(kernel, node, arrays, inside)
                if edit is not None:
                    yield edit


def _is_element(name: Node) -> bool:
    return name.parent is not None and name.parent.type == "subscript_expression"


def _load_inside(kernel: Kernel, node: Node, arrays: frozenset[str], inside: str) -> TextEdit | None:
    """`inside ? a[i] : 0.0f` for a load; None where it needs no test."""
    source = kernel.source
    if any(n.type == "subscript_expression" and _array(source, n) not in arrays for n in ancestors(node)):
        return None  # a part of an index, which is computed where it is needed alone
    name = _array(source, node)
    if name in arrays:
        return None
    written = locals_of(kernel).types.get(name, "auto")
    if not name or written == "auto":
        raise NoMatchError(f"What `{source.node_text(node)}` at line {line_of(source, node)} loads is not known.")
    kind = builtin_type(written)
    zero = f"{written}()"
    if kind is not None and kind.name in ("float", "double"):
        zero = {"float": "0.0f", "double": "0.0"}[kind.name]
    elif kind is not None and kind.is_integer:
        zero = "0"
        for parent in ancestors(node):
            if any(c.type in ("/", "%", "/=", "%=") for c in parent.children):
                raise NoMatchError(f"Line {line_of(source, node)} divides whole numbers that it loads.")
            if parent.type.endswith(("statement", "declaration")):
                break
    whole = node.parent is not None and node.parent.type == "init_declarator"
    assigned = node.parent is not None and node.parent.type == "assignment_expression"
    new = f"{inside} ? {source.node_text(node)} : {zero}"
    return TextEdit(node.start_byte, node.end_byte, new if whole or assigned else f"({new})")


def _array(source: Source, element: Node) -> str:
    array = element.child_by_field_name("argument")
    return source.node_text(array) if array is not None and array.type == "identifier" else ""


def _own_arrays(source: Source, block: Node) -> frozenset[str]:
    """The arrays that a kernel declares: those of a thread, and shared ones."""
    found = set()
    for declaration in descendants(block, "declaration"):
        for declarator in declaration.children_by_field_name("declarator"):
            inner = declarator.child_by_field_name("declarator") if declarator.type == "init_declarator" else declarator
            if inner is not None and inner.type == "array_declarator":
                found.add(declared_name(source, declarator))
    return frozenset(found)
