"""The lines with which a warp fills a tile with columns of its threads' rows, and with which it puts them back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.algebra.sums import symbols
from warpwright.facts.model import WARP
from warpwright.rewrites._code import NoMatchError, bare
from warpwright.rewrites._indent import braced_lines
from warpwright.rewrites._indices import Indices, require_fixed
from warpwright.rewrites._layout import free_name
from warpwright.rewrites._locals import declared_names
from warpwright.rewrites._row_walks import Piece, RowWalk
from warpwright.syntax.nodes import descendants

ALL = "0xffffffff"
"""The mask of all lanes of a warp."""


@dataclass(frozen=True, slots=True)
class Words:
    """The names that the new text gives; `active` is the mask of the lanes that come to the loops."""

    lane: str
    warp: str
    active: str
    first: str
    row: str
    other: str
    start: str
    column: str
    limit: str
    end: str


def copied(
    indices: Indices,
    walk: RowWalk,
    pieces: Sequence[tuple[Piece, str]],
    words: Words,
    header: str,
    unit: str,
    columns: int,
    *,
    loads: bool,
) -> list[str]:
    """The copy of each piece into its tile, or out of it with `loads` false. A warp of all its lanes copies neighbours;
    in any other each thread its own row, by a loop with the given header."""
    if not pieces:
        return []
    w, rows = words, WARP // columns
    lane = w.lane if rows == 1 else f"{w.lane} % {columns}"
    limit, from_other = indices.kernel.source.node_text(walk.bound), w.first
    if not walk.even:
        limit, from_other = (f"__shfl_sync({ALL}, {name}, {w.other})" for name in (w.end, w.first))
    together = [f"const {walk.type} {w.column} = {from_other} + {lane};"]
    if rows > 1:
        together.insert(0, f"const int {w.other} = {w.row} + {w.lane} / {columns};")
    if not walk.even:
        together.append(f"const {walk.type} {w.limit} = {limit};")
        limit = w.limit
    moves: list[str] = []
    alone: list[str] = []
    for number, (piece, tile) in enumerate(pieces, 1):
        row = _row_text(indices, walk, piece)
        index, start = w.column, free_name(indices.kernel.span.code, f"{w.start}{number if len(pieces) > 1 else ''}")
        if row:
            together.append(f"const auto {start} = __shfl_sync({ALL}, {row}, {w.other});")
            index = f"{start} + {w.column}"
        inside, outside = f"{tile}[{w.warp}][{w.other}][{lane}]", f"{piece.array}[{index}]"
        moves.append(f"{inside} = {outside};" if loads else f"{outside} = {inside};")
        own = f"{piece.array}[{row} + {walk.step}]" if row else f"{piece.array}[{walk.step}]"
        mine = f"{tile}[{w.warp}][{w.lane}][{walk.step} - {w.first}]"
        alone.append(f"{mine} = {own};" if loads else f"{own} = {mine};")
    together += braced_lines(f"if ({w.column} < {limit})", moves, unit)
    counter = w.other if rows == 1 else w.row
    step = f"{counter}++" if rows == 1 else f"{counter} += {rows}"
    filled = [
        "#pragma unroll",
        f"for (int {counter} = 0; {counter} < {WARP}; {step}) {{",
        *(unit + line for line in together),
        "}",
    ]
    if w.active == ALL:
        return filled
    return [
        f"if ({w.active} == {ALL}) {{",
        *(unit + line for line in filled),
        "} else {",
        *(unit + line for line in braced_lines(header, alone, unit)),
        "}",
    ]


def _row_text(indices: Indices, walk: RowWalk, piece: Piece) -> str:
    """The index of a row's element where the loop's variable is 0; empty for 0. Raises NoMatchError where the index is
    not written as a sum with the variable."""
    source = indices.kernel.source
    text = _rest(indices, walk, piece.index)
    if text is None:
        raise NoMatchError(f"`{source.node_text(piece.index)}` is not written as a sum with {walk.step}.")
    if piece.offset is None:
        return text
    value = indices.read(piece.offset)
    if value is None:
        raise NoMatchError(f"Where the rows of {piece.array} start is more than sums and products.")
    require_fixed(indices, symbols(value), f"a row of {piece.array}")
    offset = source.node_text(piece.offset)
    return f"{offset} + {text}" if text else offset


def _rest(indices: Indices, walk: RowWalk, node: Node) -> str | None:
    """A sum without the loop's variable, and without the variables that the loop's body declares; None for others."""
    source = indices.kernel.source
    node = bare(node)
    if node.type == "identifier":
        name = source.node_text(node)
        if name == walk.step:
            return ""
        inner = indices.variables.values.get(name)
        return _rest(indices, walk, inner) if inner is not None and name in _own(indices, walk) else None
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    operator = node.child_by_field_name("operator")
    if node.type != "binary_expression" or left is None or right is None or operator is None:
        return None
    if operator.type not in ("+", "-"):
        return None
    rest = _rest(indices, walk, left)
    if rest is not None:
        sign = f" {operator.type} " if rest else "-" if operator.type == "-" else ""
        return f"{rest}{sign}{_without_own(indices, walk, right)}"
    rest = _rest(indices, walk, right) if operator.type == "+" else None
    return None if rest is None else _without_own(indices, walk, left) + (f" + {rest}" if rest else "")


def _own(indices: Indices, walk: RowWalk) -> set[str]:
    return declared_names(indices.kernel.source, walk.body)


def _without_own(indices: Indices, walk: RowWalk, node: Node) -> str:
    """An expression with the values of the variables that the loop's body declares."""
    source, own = indices.kernel.source, _own(indices, walk)
    out, at = "", node.start_byte
    for use in descendants(node, "identifier"):
        value = indices.variables.values.get(source.node_text(use))
        if value is not None and source.node_text(use) in own:
            out += source.text(at, use.start_byte) + f"({_without_own(indices, walk, value)})"
            at = use.end_byte
    return out + source.text(at, node.end_byte)


def header_end(walk: RowWalk) -> int:
    """Where the parenthesis that closes the loop's header ends."""
    return max(c.end_byte for c in walk.node.children if c.type == ")" and c.end_byte <= walk.body.start_byte)
