"""One thread in the place of several that differ in threadIdx.y: what of a kernel's text has to be done for each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.algebra.sums import coefficient
from warpwright.rewrites._code import NoMatchError, squeezed
from warpwright.rewrites._indices import Indices
from warpwright.rewrites._layout import line_of, reindented
from warpwright.rewrites._names import assignments, deciding
from warpwright.syntax.nodes import descendants, walk
from warpwright.syntax.source import Source

_Y = re.compile(r"\bthreadIdx\s*\.\s*y\b")


@dataclass(frozen=True, slots=True)
class Varying:
    """The names whose values depend on threadIdx.y. `steps` are those that a thread further down has by a fixed number
    more, for each thread; `sums` those that have an element for each."""

    names: frozenset[str]
    steps: Mapping[str, int]
    sums: frozenset[str]

    def touches(self, source: Source, node: Node) -> bool:
        """Whether what a piece of code does depends on threadIdx.y."""
        if _Y.search(source.node_code(node)):
            return True
        return any(source.node_text(use) in self.names for use in descendants(node, "identifier"))


def varying_names(source: Source, block: Node, memory: frozenset[str]) -> frozenset[str]:
    """Every variable whose value can depend on threadIdx.y; `memory` are arrays and pointers, which are none."""
    given = {name: values for name, values in assignments(block, source).items() if name not in memory}
    inputs = {
        name: [source.node_text(n) for value in values for n in (value, *deciding(value, block))]
        for name, values in given.items()
    }
    found: set[str] = set()
    grown = True
    while grown:
        word = re.compile(rf"\b(?:{'|'.join(map(re.escape, found))})\b") if found else None
        more = {
            name
            for name, texts in inputs.items()
            if name not in found and any(_Y.search(t) or (word and word.search(t)) for t in texts)
        }
        found |= more
        grown = bool(more)
    return frozenset(found)


def steps_of(indices: Indices, names: frozenset[str]) -> dict[str, int]:
    """By how much each name grows from one thread to the next in y, for those that grow by a number."""
    found: dict[str, int] = {}
    for name in names & indices.variables.values.keys():
        value = indices.named(name)
        by = coefficient(value, "threadIdx.y") if value is not None else None
        if by is not None and "." not in name and value != {(name,): 1}:
            found[name] = by
    return found


@dataclass(frozen=True, slots=True)
class Copies:
    """`count` threads that one stands for, `apart` in y from each to the next, numbered by the variable `counter`."""

    counter: str
    apart: int
    count: int


def repeated(source: Source, statements: list[Node], varying: Varying, copies: Copies, unit: str) -> str:
    """A loop over the threads that one stands for, in place of neighbouring statements."""
    first, counter = statements[0], copies.counter
    old = source.line_indent(first.start_byte)
    inner = with_each(source, statements, varying, copies)
    head = f"for (int {counter} = 0; {counter} < {copies.count}; {counter}++)"
    braces = len(statements) > 1 or first.type != "expression_statement"
    new = old
    if not source.line_text(line_of(source, first))[: source.position(first.start_byte)[1] - 1].isspace():
        new = old + unit  # the body of a loop on its line: a line of its own
        head = f"\n{new}{head}"
    elif first.parent is not None and first.parent.type == "compound_statement":
        head = f"#pragma unroll\n{new}{head}"
    moved = reindented(inner, old, new + unit)
    return f"{head} {{\n{new}{unit}{moved}\n{new}}}" if braces else f"{head}\n{new}{unit}{moved}"


def with_each(source: Source, statements: list[Node], varying: Varying, copies: Copies) -> str:
    """The text of neighbouring statements for the thread of number `counter`; a `return` goes on with the next."""
    counter, apart = copies.counter, copies.apart
    declared = {
        source.node_text(name)
        for statement in statements
        for declarator in descendants(statement, "init_declarator")
        if (name := declarator.child_by_field_name("declarator")) is not None
    }
    out, at = "", statements[0].start_byte
    for node in (n for statement in statements for n in walk(statement)):
        text = source.node_text(node)
        new = ""
        if node.type == "identifier" and text in varying.sums:
            new = f"{text}[{counter}]"
        elif node.type == "identifier" and text in varying.steps and text not in declared:
            new = _moved(node, text, varying.steps[text] * apart, counter)
        elif node.type == "field_expression" and squeezed(text) == "threadIdx.y":
            new = _moved(node, text, apart, counter)
        elif node.type == "return_statement":
            new = "continue;"
        elif node.type == "identifier" and text in varying.names and text not in declared:
            raise NoMatchError(f"`{text}` at line {line_of(source, node)} depends on threadIdx.y by more than a step.")
        if new:
            out += source.text(at, node.start_byte) + new
            at = node.end_byte
    return out + source.text(at, statements[-1].end_byte)


def _moved(node: Node, text: str, by: int, counter: str) -> str:
    if not by:
        return text  # it depends on threadIdx.y in its parts alone, as `row - threadIdx.y` does
    step = f"{by} * {counter}" if by != 1 else counter
    whole = node.parent is not None and node.parent.type in ("subscript_argument_list", "argument_list")
    return f"{text} + {step}" if whole else f"({text} + {step})"
