"""What a kernel gives beside its arrays: variables of the file, where anyone else may read them, and what it prints.

A `__device__` or `__managed__` variable that both texts declare is compared where another kernel or host code names
it, or where other files may and the kernel only writes it. One that the kernel reads, too, and nothing else here, may
be scratch: launching both twice shows whether it matters here, and the report says where both leave other values in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tree_sitter import Node

from warpwright.facts.model import Program
from warpwright.facts.unit import FunctionText, Unit, VariableText
from warpwright.problems.kernel_text import read_unit
from warpwright.problems.model import Array, Problem
from warpwright.syntax.nodes import ancestors, descendants


def with_results(original: Problem, candidate: Problem, units: tuple[Program, Program]) -> Problem:
    """The original's problem with the variables of which both sides are compared, and whether either prints."""
    old, new = (read_unit(program)[0] for program in units)
    sides = ((old, original), (new, candidate))
    mine, theirs = ({v.name: v for v in problem.variables} for problem in (original, candidate))
    others = _named_by_others(old, original.kernel) | _named_by_others(new, candidate.kernel)
    arguments = {part.name for part in original.parts}
    results: list[Array] = []
    unread: set[str] = set()
    for name in dict.fromkeys((*mine, *theirs)):
        declared, again = old.variables.get(name), new.variables.get(name)
        if declared is None or again is None or name in arguments or _declared(declared) != _declared(again):
            continue
        roles = {side[name].role for side in (mine, theirs) if name in side}
        if roles == {"in"}:
            continue
        role = "out" if roles == {"out"} else "in-out"
        if name in others or not _is_static(declared):
            results.append(replace(mine.get(name) or theirs[name], role=role))
        if name not in others and role == "in-out":
            unread.add(name)
    prints = any("printf" in _reached([problem.kernel], _named(unit), "") for unit, problem in sides)
    return replace(original, results=tuple(results), unread=frozenset(unread), prints=prints)


def other_beginnings(units: tuple[Program, Program], kernel: str) -> Iterator[tuple[str, int, str]]:
    """Variables that others read and that begin with another value in the candidate: file, line and a sentence."""
    old, new = (read_unit(program)[0] for program in units)
    others = _named_by_others(old, kernel)
    for name, variable in new.variables.items():
        before = old.variables.get(name)
        if before is None or variable.space not in ("global", "constant") or name not in others:
            continue
        if _squeezed(before, before.value) != _squeezed(variable, variable.value):
            line = variable.source.position(variable.declaration.start_byte)[0]
            yield variable.source.path, line, f"{name}, which not {kernel} alone uses, begins with another value"


def _named_by_others(unit: Unit, kernel: str) -> frozenset[str]:
    """What host functions and other kernels name, themselves or in what they call."""
    begun = [name for name, texts in unit.functions.items() if name != kernel and any(map(_is_begun, texts))]
    begun += unit.methods
    return _reached(begun, _named(unit), kernel)


def _named(unit: Unit) -> dict[str, frozenset[str]]:
    """What each function names."""
    return {name: frozenset(_names(texts)) for name, texts in (*unit.functions.items(), *unit.methods.items())}


def _reached(begun: list[str], named: Mapping[str, frozenset[str]], without: str) -> frozenset[str]:
    found: set[str] = set()
    waiting = list(begun)
    while waiting:
        new = named.get(waiting.pop(), frozenset()) - found - {without}
        found |= new
        waiting += [name for name in new if name in named]
    return frozenset(found)


def _names(texts: list[FunctionText]) -> Iterator[str]:
    for text in texts:
        for node in descendants(text.node, "identifier"):
            yield text.source.node_text(node)


def _is_begun(text: FunctionText) -> bool:
    """Whether it is a kernel, or runs on the host."""
    declarator = text.node.child_by_field_name("declarator")
    end = declarator.end_byte if declarator is not None else text.node.end_byte
    head = text.source.data[text.node.start_byte : end]
    return b"__device__" not in head or b"__host__" in head


def _is_static(variable: VariableText) -> bool:
    """Whether no other file can name it."""
    head = variable.source.text(variable.declaration.start_byte, variable.declarator.start_byte).split()
    return "static" in head or any(_is_unnamed(node) for node in ancestors(variable.declaration))


def _is_unnamed(node: Node) -> bool:
    return node.type == "namespace_definition" and node.child_by_field_name("name") is None


def _declared(variable: VariableText) -> tuple[str, ...]:
    """The type and the extents as they are written."""
    kind = variable.declaration.child_by_field_name("type")
    declarator = variable.declarator
    if declarator.type == "init_declarator":
        declarator = declarator.child_by_field_name("declarator") or declarator
    return variable.space, _squeezed(variable, kind), _squeezed(variable, declarator)


def _squeezed(variable: VariableText, node: Node | None) -> str:
    return "".join(variable.source.node_text(node).split()) if node is not None else ""
