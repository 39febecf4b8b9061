"""Which of several functions of one name a call means (C++ standard, [over.match], as far as kernels need it)."""

from __future__ import annotations

from collections.abc import Sequence

from tree_sitter import Node

from warpwright.facts import ir
from warpwright.facts.types import CType
from warpwright.facts.unit import FunctionText
from warpwright.syntax.nodes import ancestors, function_declarator, node_at
from warpwright.syntax.source import Source

_WRONG = -100
"""The score of a parameter that cannot take its argument."""


def visible(texts: Sequence[FunctionText], node: ir.Call) -> Sequence[FunctionText]:
    """Those of the functions that the call's qualifier or its own namespace reaches; all where none is."""
    if len(texts) < 2:
        return texts
    paths = [namespaces(text.source, text.node) for text in texts]
    if not any(paths):
        return texts
    written = node.span.text.partition("(")[0].partition("<")[0].strip().split("::")
    if written[-1].strip() == node.name and len(written) > 1:
        qualifier = [part.strip() for part in written[:-1] if part.strip()]
        named = [t for t, path in zip(texts, paths, strict=True) if path[len(path) - len(qualifier) :] == qualifier]
        return named or texts
    here = namespaces(node.span.source, node_at(node.span.source.closed_root, node.span.start, node.span.end))
    reached = [(len(path), t) for t, path in zip(texts, paths, strict=True) if path == here[: len(path)]]
    nearest = max((depth for depth, _ in reached), default=0)
    return [t for depth, t in reached if depth == nearest] or texts


def special_arguments(text: FunctionText) -> list[str] | None:
    """What stands in the angle brackets of an explicit specialization, `template <> int f<0>()`; None for others."""
    declarator = function_declarator(text.node) if text.whole is not None and not text.template else None
    label = declarator.child_by_field_name("declarator") if declarator is not None else None
    if label is None or label.type != "template_function":
        return None
    arguments = label.child_by_field_name("arguments")
    return [text.source.node_code(n) for n in arguments.named_children] if arguments is not None else None


def fit(wanted: Sequence[ir.FunctionParameter], given: Sequence[CType], open_names: frozenset[str]) -> int:
    """How well a function's parameters take arguments of these types: higher is better."""
    return sum(_fit(p.type, have, open_names) for p, have in zip(wanted, given, strict=False))


def _fit(wanted: CType, have: CType, open_names: frozenset[str]) -> int:
    if have.size is None:
        return 0
    while wanted.kind == "pointer" and have.kind in ("pointer", "array") and wanted.to is not None and have.to:
        wanted, have = wanted.to, have.to
        if _plain(wanted) not in open_names and wanted.kind not in ("pointer", "void") and wanted.size is not None:
            return 4 if _plain(wanted) == _plain(have) else _WRONG
    if _plain(wanted) in open_names:
        return 3
    if _plain(wanted) == _plain(have):
        return 4
    numbers = ("int", "uint", "float", "bool")
    if wanted.kind in numbers and have.kind in numbers:
        return 2 if (wanted.kind == "float") == (have.kind == "float") else 1
    return _WRONG if wanted.size is not None and wanted.kind != have.kind else 0


def _plain(kind: CType) -> str:
    return kind.name.replace("const ", "").replace("volatile ", "").strip()


def namespaces(source: Source, node: Node | None) -> list[str]:
    """The named namespaces around a node, outermost first.

    `namespace a::b` is two of them; one without a name is none.
    """
    found: list[str] = []
    for around in ancestors(node) if node is not None else ():
        name = around.child_by_field_name("name") if around.type == "namespace_definition" else None
        if name is not None:
            found = [part.strip() for part in source.node_code(name).split("::")] + found
    return found
