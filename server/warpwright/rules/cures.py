"""Edits that cure a finding and change nothing else: what rules of host code and of extensions offer."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tree_sitter import Node

from warpwright.rules.base import Cure
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.encoding import encoded
from warpwright.syntax.nodes import parent_of
from warpwright.syntax.source import Source, Span

_INCLUDE = re.compile(rb"^[ \t]*#[ \t]*include[ \t]*[<\"][^>\"\n]+[>\"][^\n]*\n", re.MULTILINE)


def cure(title: str, *edits: TextEdit | None) -> Cure | None:
    """A cure of edits that may be none where nothing is to be changed."""
    made = tuple(each for each in edits if each is not None)
    return Cure(title, made) if made else None


def include(source: Source, header: str, *instead: str) -> TextEdit | None:
    """The edit that includes a header behind the last include of the file; None where it or one `instead` is."""
    text = encoded(header)
    if any(each in found[0] for found in _INCLUDE.finditer(source.data) for each in (text, *map(encoded, instead))):
        return None
    at = max((found.end() for found in _INCLUDE.finditer(source.data)), default=0)
    return TextEdit(at, at, f"#include <{header}>\n")


def at_end(source: Source, text: str) -> TextEdit:
    """The edit that puts lines behind all others of the file."""
    end = len(source.data)
    gap = "\n" if source.data.endswith(b"\n") else "\n\n"
    return TextEdit(end, end, f"{gap}{text}\n")


def renamed(span: Span, old: str, new: str) -> TextEdit | None:
    """The edit that puts another name in place of the last `old` in a span; None where it is not there."""
    at = span.source.data[span.start : span.end].rfind(encoded(old))
    return TextEdit(span.start + at, span.start + at + len(encoded(old)), new) if at >= 0 else None


def replaced(span: Span, text: str) -> TextEdit:
    return TextEdit(span.start, span.end, text)


def line_before(source: Source, statement: Node, text: str) -> TextEdit | None:
    """The edit that puts a line before a statement of a block; None where the statement begins no line."""
    at = statement.start_byte
    line = source.data[source.data.rfind(b"\n", 0, at) + 1 : at]
    parent = parent_of(statement)
    if line.strip() or parent is None or parent.type != "compound_statement":
        return None
    return TextEdit(at, at, f"{text}\n{source.line_indent(at)}")


def top_of(source: Source, function: Node, text: str) -> TextEdit | None:
    """The edit that puts a line into a function, behind the checks and the names that it begins with."""
    body = function.child_by_field_name("body")
    statements = [each for each in body.named_children if each.type != "comment"] if body is not None else []
    first = next((each for each in statements if not _CHECK.match(source.node_code(each))), None)
    return line_before(source, first, text) if first is not None else None


_CHECK = re.compile(r"\s*(?:\w*(?:CHECK|ASSERT|check|assert)\w*\s*\(|static_assert|using\b)")


def free_name(code: str, *names: str) -> str:
    """The first of the names that the code has not."""
    return next((each for each in names if not re.search(rf"\b{each}\b", code)), names[-1])


def on_stream(given: Sequence[Node], stream: str) -> TextEdit | None:
    """The edit that gives the arguments of a launch's configuration this stream."""
    if len(given) > 3:
        return TextEdit(given[3].start_byte, given[3].end_byte, stream)
    at = given[-1].end_byte if len(given) > 1 else 0
    return TextEdit(at, at, f", {stream}" if len(given) == 3 else f", 0, {stream}") if at else None
