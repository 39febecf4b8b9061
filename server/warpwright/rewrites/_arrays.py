"""Shared arrays as a kernel's text has them: where one is declared, and whether all that is said of it is elements."""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.facts.known_functions import KNOWN_FUNCTIONS
from warpwright.facts.model import SharedArray
from warpwright.rewrites._code import functions_of, is_macro_of_several, macros_naming, names
from warpwright.syntax.nodes import descendants, parameters_of
from warpwright.syntax.source import Source

GRANULE = 128
"""Bytes in which shared memory is given to a block from compute capability 8.0 on (`facts/occupancy`)."""


_TIGHT = ("identifier", "number_literal", "field_expression", "subscript_expression", "parenthesized_expression")


def declarator_of(block: Node, source: Source, name: str) -> Node | None:
    """The array_declarator of a shared array's last dimension, whose `size` is the length of a row; None where the
    array is not declared in that block."""
    for declaration in descendants(block, "declaration"):
        if not any(source.node_text(child) == "__shared__" for child in declaration.children):
            continue
        for declarator in declaration.children_by_field_name("declarator"):
            inner: Node | None = declarator
            while inner is not None and inner.type == "array_declarator":
                inner = inner.child_by_field_name("declarator")
            if declarator.type == "array_declarator" and inner is not None and source.node_text(inner) == name:
                return declarator
    return None


def misuse(block: Node, source: Source, name: str, depth: int, declarator: Node) -> str:
    """Why the layout of an array of `depth` dimensions can matter to some use of it; empty where every use names one
    element."""
    macros = macros_naming(source, re.compile(rf"\b{re.escape(name)}\b"))
    if macros:
        return f"The macro {macros[0]} uses `{name}`, so not every use of it can be seen."
    for use in names(block, source, name):
        if declarator.start_byte <= use.start_byte < declarator.end_byte:
            continue
        line = source.position(use.start_byte)[0]
        parent = use.parent
        if parent is not None and parent.type.endswith("_declarator"):
            return f"`{name}` is declared again at line {line}."
        element: Node = use
        subscripts = 0
        while (
            parent is not None
            and parent.type == "subscript_expression"
            and parent.child_by_field_name("argument") == element
        ):
            element, parent, subscripts = parent, parent.parent, subscripts + 1
        while parent is not None and parent.type == "parenthesized_expression":
            parent = parent.parent
        if parent is not None and parent.type == "sizeof_expression":
            return f"Its size is taken at line {line}, which would change."
        if subscripts != depth:
            if parent is not None and parent.type == "argument_list" and parent.parent is not None:
                callee = called_name(parent.parent, source) or "a function"
                return f"`{name}` or a row of it is passed to {callee} at line {line}, which may rely on its layout."
            return f"`{name}` is used as flat memory or through a pointer at line {line}."
        while parent is not None and parent.type in ("field_expression", "subscript_expression"):
            if parent.child_by_field_name("argument") not in (element, None):
                break
            element, parent = parent, parent.parent
        if parent is not None and _takes_address(parent, source):
            return f"The address of an element of `{name}` is taken at line {line}."
        if parent is not None and parent.type in ("init_declarator", "initializer_list") and _is_reference(parent):
            return f"A reference to an element of `{name}` is bound at line {line}."
        call = parent.parent if parent is not None and parent.type == "argument_list" else None
        if call is not None and not takes_values(call, source):
            callee = called_name(call, source) or "a function"
            return f"An element of `{name}` is passed to {callee} at line {line}, which may take its address."
    return ""


def _takes_address(parent: Node, source: Source) -> bool:
    """Whether `&element` is taken for anything but an atomic operation on that element."""
    if parent.type != "pointer_expression" or not source.node_code(parent).startswith("&"):
        return False
    arguments = parent.parent
    call = arguments.parent if arguments is not None and arguments.type == "argument_list" else None
    return call is None or not called_name(call, source).startswith("atomic")


def takes_values(call: Node, source: Source) -> bool:
    """Whether what is called only reads its arguments: no reference, and no macro that could write `&` before one.

    Example: `#define FLOAT4(x) (reinterpret_cast<float4 *>(&(x))[0])` reads the elements behind the one it is given.
    """
    function, name = call.child_by_field_name("function"), called_name(call, source)
    if function is None or function.type == "primitive_type":
        return function is not None
    if name.endswith("_cast"):
        return name == "static_cast" and not re.search(r"[&*]", source.node_code(function))
    macros = [
        source.node_text(macro)
        for macro in descendants(source.root, "preproc_function_def")
        if (named := macro.child_by_field_name("name")) is not None and source.node_text(named) == name
    ]
    if macros:
        return not any(re.search(r"(?<!&)&(?!&)|\b\w+_cast\b|\bsizeof\b", macro) for macro in macros)
    if defined := functions_of(source).get(name):
        return not any("&" in source.node_code(p) for function in defined for p in parameters_of(function))
    return KNOWN_FUNCTIONS.fullmatch(name) is not None


def _is_reference(declarator: Node) -> bool:
    if declarator.type == "initializer_list":
        outer = declarator.parent
        return outer is not None and outer.type == "init_declarator" and _is_reference(outer)
    inner = declarator.child_by_field_name("declarator")
    return inner is not None and inner.type == "reference_declarator"


def extents_of(declarator: Node) -> list[Node]:
    """The written extents of an array's declarator, the first dimension's first."""
    found: list[Node] = []
    inner: Node | None = declarator
    while inner is not None and inner.type == "array_declarator":
        found += [size] if (size := inner.child_by_field_name("size")) is not None else []
        inner = inner.child_by_field_name("declarator")
    return found[::-1]


def element_uses(block: Node, source: Source, name: str, declarator: Node) -> list[Node]:
    """Every `name[i]`, or `name[i][j]`, of an array whose uses are all elements (see `misuse`), in text order."""
    found: list[Node] = []
    for use in names(block, source, name):
        if declarator.start_byte <= use.start_byte < declarator.end_byte:
            continue
        element: Node = use
        while element.parent is not None and element.parent.type == "subscript_expression":
            if element.parent.child_by_field_name("argument") != element:
                break
            element = element.parent
        found.append(element)
    return found


def indices_of(element: Node) -> list[Node]:
    """The bracketed indices of an element, the last dimension's first."""
    found: list[Node] = []
    while element.type == "subscript_expression":
        indices, inner = element.child_by_field_name("indices"), element.child_by_field_name("argument")
        if indices is None or inner is None:
            break
        found.append(indices)
        element = inner
    return found


def in_brackets(source: Source, node: Node) -> str:
    """An expression's text, bracketed where an operator beside it could take it apart."""
    text = source.node_text(node)
    return text if node.type in _TIGHT and not is_macro_of_several(source, node) else f"({text})"


def walks_over_rows(block: Node, source: Source, array: SharedArray) -> str:
    """`tile[0][i]` with an i that can pass the row's end is flat use in the guise of two indices.

    With the outer indices written as numbers, the last one is taken to stay in its row where no product and no other
    axis than x goes into it.
    """
    locals_ = {
        source.node_text(name): source.node_text(value)
        for declared in descendants(block, "init_declarator")
        if (name := declared.child_by_field_name("declarator")) and (value := declared.child_by_field_name("value"))
    }
    for use in names(block, source, array.name):
        indices: list[str] = []
        element: Node = use
        while element.parent is not None and element.parent.type == "subscript_expression":
            element = element.parent
            subscript = element.child_by_field_name("indices")
            indices.append(source.node_text(subscript)[1:-1] if subscript is not None else "")
        if len(indices) < 2:
            continue
        last = indices[-1]
        for _ in range(4):
            last = re.sub(r"\b[A-Za-z_]\w*\b(?!\s*\.)", lambda name: locals_.get(name.group(), name.group()), last)
        outer_is_fixed = all(re.fullmatch(r"\s*\d+\s*", index) for index in indices[:-1])
        if outer_is_fixed and re.search(r"\*|threadIdx\s*\.\s*[yz]", last):
            line = source.position(use.start_byte)[0]
            return f"`{source.node_text(element)}` at line {line} can pass the end of its row, as in flat memory."
    return ""
