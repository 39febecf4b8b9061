"""Where the members of a struct lie: the Itanium C++ ABI, chapter 2, which nvcc shares with its host compilers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tree_sitter import Node

from warpwright.facts.types import CType
from warpwright.syntax.encoding import decoded
from warpwright.syntax.source import Source

_PACK = re.compile(rb"^[ \t]*#[ \t]*pragma[ \t]+pack[ \t]*\(([^)\n]*)\)", re.MULTILINE)
_PACKED = re.compile(r"__attribute__\s*\(\(.*\bpacked\b|\[\[\s*gnu::packed")
_ACCESS = re.compile(r"\b(private|protected)\b")


@dataclass(frozen=True, slots=True)
class Member:
    """`align` is what `alignas` asks for, `bits` the width of a bit-field; `base` is true of a base class."""

    name: str
    type: CType
    align: int = 1
    bits: int | None = None
    base: bool = False


def laid_out(
    name: str, members: Iterable[Member], union: bool = False, align: int = 1, pack: int | None = None
) -> CType:
    """The struct of these members; size None once a member's size is unknown. `pack` caps the members' alignment.

    >>> from warpwright.facts.types import CHAR, DOUBLE, INT, UINT
    >>> laid_out("P", [Member("c", CHAR), Member("x", DOUBLE), Member("i", INT)]).size
    24
    >>> laid_out("P", [Member("c", CHAR), Member("i", INT)], pack=1).size
    5
    >>> laid_out("B", [Member("a", UINT, bits=3), Member("b", UINT, bits=5), Member("c", UINT)]).size
    8
    """
    fields: list[tuple[str, int, CType]] = []
    at: int | None = 0  # in bits
    size, unknown = 0, False
    for member in members:
        kind = member.type
        if at is None or kind.size is None:
            at, unknown = None if not union else at, True
            continue
        if member.base and kind.size == 1 and not kind.fields:  # an empty base takes no room
            continue
        if union:
            at = 0
        own = max(kind.align, member.align)
        if pack is not None:
            own = min(own, pack)
        unit = 8 * kind.size
        if member.bits is None:
            at = _up(at, 8 * own)
        elif member.bits == 0 or (pack is None and at // unit != (at + member.bits - 1) // unit):
            at = _up(at, unit)
        if member.bits is None or member.name:
            align = max(align, own)
            fields.append((member.name, at // unit * kind.size if member.bits is not None else at // 8, kind))
        at += unit if member.bits is None else member.bits
        size = max(size, -(-at // 8))
    total = _up(size, align) if not unknown else None
    return CType(name, 1 if total == 0 else total, align, "struct", fields=tuple(fields))


def as_base(kind: CType, node: Node | None, source: Source) -> CType:
    """A class as the base of another, whose members may lie in its padding unless it is a plain C struct."""
    if kind.size is None or node is None or not kind.fields or _is_plain(node, source):
        return kind
    return replace(kind, size=max(offset + (member.size or 0) for _, offset, member in kind.fields))


def packing(node: Node, source: Source) -> int | None:
    """What a packed attribute or `#pragma pack` caps the alignment of a struct's members at; None for neither."""
    body = node.child_by_field_name("body")
    head = source.code_text(node.start_byte, body.start_byte if body is not None else node.end_byte)
    if _PACKED.search(head) or (body is not None and _PACKED.match(_behind(body, source))):
        return 1
    if b"pragma" not in source.code:
        return None
    stack: list[int | None] = []
    current: int | None = None
    for found in _PACK.finditer(source.code, 0, node.start_byte):
        words = [word.strip() for word in decoded(found.group(1)).split(",")]
        number = int(words[-1]) if words[-1].isdigit() else None
        if words[0] == "push":
            stack.append(current)
            current = number if number is not None else current
        elif words[0] == "pop":
            current = stack.pop() if stack else None
        else:
            current = number
    return current


def asked_alignment(node: Node, source: Source) -> str | None:
    """The text of the alignment that `__align__(16)` or `__attribute__((aligned(16)))` gives a struct."""
    body = node.child_by_field_name("body")
    head = source.code_text(node.start_byte, body.start_byte if body is not None else node.end_byte)
    behind = _behind(body, source) if body is not None else ""
    return alignment_text(head) or alignment_text(behind if behind.startswith("__a") else "")


def alignment_text(text: str) -> str | None:
    """What stands in the parentheses of an alignment.

    >>> alignment_text("struct __align__(sizeof(int) * 2) P"), alignment_text("struct P")
    ('sizeof(int) * 2', None)
    """
    start = re.search(r"\b(?:__align__|__aligned__|aligned|alignas)\s*\(", text)
    if start is None:
        return None
    depth = 1
    for at in range(start.end(), len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return text[start.end() : at].strip()
    return None


def _behind(body: Node, source: Source) -> str:
    return source.code_text(body.end_byte, min(body.end_byte + 80, len(source.data))).split(";")[0].lstrip()


def _is_plain(node: Node, source: Source) -> bool:
    body = node.child_by_field_name("body")
    if node.type == "class_specifier" or body is None or any(c.type == "base_class_clause" for c in node.children):
        return False
    name = node.child_by_field_name("name")
    label = source.node_code(name).split("<")[0] if name is not None else ""
    for member in body.named_children:
        text = source.node_code(member)
        if member.type == "access_specifier" and _ACCESS.search(text):
            return False
        if member.type in ("function_definition", "declaration") and re.search(
            rf"(?:^|\s|~){re.escape(label)}\s*\((?!.*=\s*default)", text
        ):
            return False
    return True


def _up(value: int, step: int) -> int:
    return -(-value // step) * step
