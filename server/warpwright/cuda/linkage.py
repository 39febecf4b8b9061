"""Who may launch a kernel: the text that is read alone, or files that are not read too.

A kernel has external linkage unless it is `static` or in an unnamed namespace: any other file of the program may
declare it and launch it with a grid, a block and arguments of its own. A file with `main` is taken to be the whole
program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from tree_sitter import Node

from warpwright.cuda.walks import nodes_below
from warpwright.syntax.nodes import ancestors
from warpwright.syntax.source import HEADERS, Source


def is_header(source: Source) -> bool:
    """Whether other files can include a file and launch its kernels."""
    return source.path.endswith(HEADERS)


def launched_elsewhere(source: Source, definition: Node, name: str, unit: Source, *, has_main: bool) -> str:
    """Why files that are not read may launch a kernel, one clause; empty where none can.

    `definition` is its `function_definition` in `source`, a file of the translation unit `unit`.

    >>> text = Source("a.cu", b"__global__ void k(int *a) { } static __global__ void own(int *a) { }")
    >>> first, second = nodes_below(text, text.root, "function_definition")
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
    is_template = any(each.type == "template_declaration" for each in ancestors(definition))
    if is_template and name not in _declared(source, "template_instantiation"):
        return ""  # whoever launches a template has its definition, which is here alone
    return f"{name} has external linkage, and the file no `main`"


def declarations_of(source: Source, name: str) -> list[Node]:
    """The declarations of a function in a file that are no definitions, in text order."""
    return list(_declared(source, "declaration").get(name, ()))


@lru_cache(maxsize=16)
def _declared(source: Source, kind: str) -> Mapping[str, list[Node]]:
    """What a file declares, of one type of node, by the name of the function: every kernel of the file asks."""
    found: dict[str, list[Node]] = {}
    for each in nodes_below(source, source.root, kind):
        for name in dict.fromkeys(_declared_names(source, each)):
            found.setdefault(name, []).append(each)
    return found


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


def _declared_names(source: Source, declaration: Node) -> Iterator[str]:
    for declarator in declaration.children_by_field_name("declarator"):
        if declarator.type == "function_declarator":
            named = declarator.child_by_field_name("declarator")
            if named is not None:
                yield source.node_text(named).partition("<")[0].strip()
