"""A loop that looks for an extreme and its place, which the lanes of a warp can share.

Example: `for (int c = 0; c < n; c++) { if (x[c] > most) { most = x[c]; at = c; } }`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from warpwright.facts.model import Kernel
from warpwright.rewrites._accumulate import Update
from warpwright.rewrites._code import NoMatchError, bare, condition_of, names, squeezed
from warpwright.rewrites._float_types import is_float
from warpwright.rewrites._layout import free_name, line_of
from warpwright.rewrites._row_loop import RowLoop, require_kind, step_loop, updates_of, variable_type
from warpwright.syntax.nodes import descendants, uncommented
from warpwright.syntax.source import Source


@dataclass(frozen=True, slots=True)
class Located:
    """`if (x < best) { best = x; at = i; }`, which keeps the first of equal ones; `sign` is that between x and best."""

    node: Node
    best: Node
    at: Node
    value: Node
    sign: str


@dataclass(frozen=True, slots=True)
class LocatingLoop(RowLoop):
    located: tuple[Located, ...]


def locating_loop(kernel: Kernel, node: Node, least: int) -> LocatingLoop | None:
    """The loop; None where it looks for no place. Raises NoMatchError where it does and something is in the way."""
    source, loop = kernel.source, step_loop(kernel, node, least)
    inside = node.child_by_field_name("body")
    branches = descendants(inside, "if_statement") if inside is not None else ()
    found = tuple(each for branch in branches if (each := _located(source, branch, loop.step)) is not None)
    if inside is None or not found:
        return None
    for each in found:
        for target in (each.best, each.at):
            name = source.node_text(target)
            for use in names(node, source, name):
                if not each.node.start_byte <= use.start_byte < each.node.end_byte:
                    raise NoMatchError(f"`{name}` is used at line {line_of(source, use)}, in the middle of the loop.")
    handled = frozenset(target.start_byte for each in found for target in (each.best, each.at))
    updates = updates_of(kernel, node, inside, handled)
    return LocatingLoop(loop.node, loop.step, loop.initial, loop.update, updates, found)


def _located(source: Source, branch: Node, step: str) -> Located | None:
    test, then = condition_of(branch), branch.child_by_field_name("consequence")
    if test is None or then is None or branch.child_by_field_name("alternative") is not None:
        return None
    assigned = [_assigned(statement) for statement in uncommented(then)]
    if then.type != "compound_statement" or len(assigned) != 2:
        return None
    pairs = [pair for pair in assigned if pair is not None]
    places = [pair for pair in pairs if squeezed(source.node_code(pair[1])) == step]
    values = [pair for pair in pairs if pair not in places]
    if len(places) != 1 or len(values) != 1:
        return None
    (at, _), (best, value) = places[0], values[0]
    name, text = source.node_text(best), squeezed(source.node_code(value))
    parts = _parts(test)
    signs = [sign for part in parts if (sign := _sign(source, part, name, text))]
    own = {name, source.node_text(at)}
    plain = not any(True for _ in descendants(value, "call_expression", "assignment_expression", "update_expression"))
    others = [p for p in parts if not _sign(source, p, name, text)] + [value]
    apart = not any(source.node_text(n) in own for other in others for n in descendants(other, "identifier"))
    return Located(branch, best, at, value, signs[0]) if len(signs) == 1 and plain and apart and len(own) == 2 else None


def _assigned(statement: Node) -> tuple[Node, Node] | None:
    """The variable and the value of `name = value;`."""
    inner = uncommented(statement)
    whole = inner[0] if statement.type == "expression_statement" and len(inner) == 1 else None
    if whole is None or whole.type != "assignment_expression" or not any(c.type == "=" for c in whole.children):
        return None
    target, value = whole.child_by_field_name("left"), whole.child_by_field_name("right")
    return (target, value) if target is not None and value is not None and target.type == "identifier" else None


def _parts(test: Node) -> list[Node]:
    """The operands of `a && b && c`."""
    test = bare(test)
    if test.type == "binary_expression" and any(c.type == "&&" for c in test.children):
        sides = [test.child_by_field_name(side) for side in ("left", "right")]
        return [part for side in sides if side is not None for part in _parts(side)]
    return [test]


def _sign(source: Source, part: Node, best: str, value: str) -> str:
    """`<` for `value < best` and `best > value`, `>` for the opposite; empty for anything else."""
    left, right = part.child_by_field_name("left"), part.child_by_field_name("right")
    operator = next((c.type for c in part.children if not c.is_named), "")
    if part.type != "binary_expression" or left is None or right is None or operator not in ("<", ">"):
        return ""
    sides = squeezed(source.node_code(left)), squeezed(source.node_code(right))
    opposite = {"<": ">", ">": "<"}[operator]
    return operator if sides == (value, best) else opposite if sides == (best, value) else ""


def put_together(kernel: Kernel, block: Node, loop: LocatingLoop, shuffle: str, unit: str) -> list[str]:
    """What gives every lane the extreme of all and its first place; `shuffle` has the variable's name for {}."""
    source = kernel.source
    lines: list[str] = []
    for each in loop.located:
        best, at = source.node_text(each.best), source.node_text(each.at)
        kinds = [variable_type(kernel, block, name) for name in (best, at)]
        if not kinds[1].is_integer:
            raise NoMatchError(f"`{at}` is not an integer.")
        if kinds[0].name == "float" and not is_float(kernel, each.value):
            raise NoMatchError(
                f"`{source.node_text(each.value)}` at line {line_of(source, each.value)} is not known to be a float, "
                f"as `{best}` is: which of those that round alike comes first would change."
            )
        require_kind(kernel, Update(each.node, each.best, "max", each.value, ""), kinds[0])
        others = [free_name(source.code_text(), f"other_{name}") for name in (best, at)]
        one, other = others
        lines += [
            f"const {k.name} {o} = {shuffle.format(n)};" for k, o, n in zip(kinds, others, (best, at), strict=True)
        ]
        lines += [
            f"if ({one} {each.sign} {best} || ({one} == {best} && {other} < {at})) {{",
            f"{unit}{best} = {one};",
            f"{unit}{at} = {other};",
            "}",
        ]
    return lines
