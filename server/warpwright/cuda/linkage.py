"""Who may launch a kernel: the text that is read alone, or files that are not read too.

A kernel has external linkage unless it is `static` or in an unnamed namespace: any other file of the program may
declare it and launch it with a grid, a block and arguments of its own. A file with `main` is taken to be the whole
program.
"""

from __future__ import annotations

from tree_sitter import Node

from warpwright.syntax.nodes import ancestors, descendants
from warpwright.syntax.source import Source

HEADERS = (".h", ".hh", ".hpp", ".cuh", ".inl", ".inc")
"""How the names of files end that others include."""


def is_header(source: Source) -> bool:
    """Whether other files can include a file and launch its kernels."""
    return source.path.endswith(HEADERS)


def launched_elsewhere(source: Source, definition: Node, name: str, unit: Source, *, has_main: bool) -> str:
    """Why files that are not read may launch a kernel, one clause; empty where none can.

    `definition` is its `function_definition` in `source`, a file of the translation unit `unit`.

    >>> text = Source("a.cu", b"__global__ void k(int *a) { } static __global__ void own(int *a) { }")
    >>> first, second = descendants(text.root, "function_definition")
    >>> launched_elsewhere(text, first, "k", text, has_main=False)
    'k has external linkage, and the file no `main`'
    >>> launched_elsewhere(text, first, "k", text, has_main=True)
    ''
    >>> launched_elsewhere(text, second, "own", text, has_main=False)
    ''
    """
    if has_main:
        return ""
    if source.path != unit.path or is_header(source):
        return f"{name} stands in a header, which other files may include"
    if _is_internal(source, definition, name):
        return ""
    if any(each.type == "template_declaration" for each in ancestors(definition)):
        instances = (
            each for each in descendants(source.root, "template_instantiation") if _declares(source, each, name)
        )
        if next(instances, None) is None:  # whoever launches a template has its definition, which is here alone
            return ""
    return f"{name} has external linkage, and the file no `main`"


def declarations_of(source: Source, name: str) -> list[Node]:
    """The declarations of a function in a file that are no definitions, in text order."""
    return [each for each in descendants(source.root, "declaration") if _declares(source, each, name)]


def _is_internal(source: Source, definition: Node, name: str) -> bool:
    unnamed = (
        each.type == "namespace_definition" and each.child_by_field_name("name") is None
        for each in ancestors(definition)
    )
    if any(unnamed):
        return True
    return any(
        specifier.type == "storage_class_specifier" and source.node_text(specifier) == "static"
        for each in (definition, *declarations_of(source, name))
        for specifier in each.children
    )


def _declares(source: Source, declaration: Node, name: str) -> bool:
    for declarator in declaration.children_by_field_name("declarator"):
        if declarator.type == "function_declarator":
            named = declarator.child_by_field_name("declarator")
            if named is not None and source.node_text(named).partition("<")[0].strip() == name:
                return True
    return False
