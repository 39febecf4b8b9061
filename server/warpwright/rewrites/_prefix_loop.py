"""A loop that stores running sums along a row, which the lanes of a warp can make together, 32 elements at a time.

Example: `for (int c = 0; c < n; c++) { sum += in[c]; out[c] = sum; }`, or with the two statements the other way round.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.facts.model import WARP, Kernel
from warpwright.facts.types import CType
from warpwright.rewrites._accumulate import Update, match_expression, match_update
from warpwright.rewrites._code import NoMatchError, names
from warpwright.rewrites._interleaved import statements_of
from warpwright.rewrites._iteration_variables import own_variables, visible_at
from warpwright.rewrites._layout import free_name, line_of
from warpwright.rewrites._row_loop import (
    RowLoop,
    require_apart,
    require_kind,
    root_name,
    step_loop,
    targets,
    variable_type,
)
from warpwright.rewrites._row_stores import led_to
from warpwright.rewrites._threads import NUMBERS
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import descendants, uncommented
from warpwright.syntax.source import Source


@dataclass(frozen=True, slots=True)
class PrefixLoop(RowLoop):
    """`before` are the statements in front of the one that adds `operand` to `sum`, of the type `kind`, and `stores`
    the text of those that use the sum. `exclusive`: they stand in front of it."""

    condition: Node
    before: tuple[Node, ...]
    operand: Node
    stores: tuple[str, ...]
    sum: str
    kind: CType
    exclusive: bool


def prefix_loop(kernel: Kernel, block: Node, node: Node, least: int) -> PrefixLoop | None:
    """The loop; None where it makes no running sum. Raises NoMatchError where it does and something is in the way."""
    source, loop = kernel.source, step_loop(kernel, node, least)
    inside, condition = node.child_by_field_name("body"), node.child_by_field_name("condition")
    statements = statements_of(inside)
    found = [(n, u, e) for n, s in enumerate(statements) for u, e in _sums(source, s)]
    if len(found) != 1 or inside is None or condition is None:
        return None
    place, update, embedded = found[0]
    name, operand = source.node_text(update.target), update.operand
    if update.operation != "+" or update.negated or operand is None or name in own_variables(inside, source):
        return None
    if any(names(operand, source, name)):
        return None
    uses = [n for n, s in enumerate(statements) if n != place and any(names(s, source, name))]
    exclusive = bool(uses) and uses[0] < place
    before = statements[: uses[0] if exclusive else place]
    stores = statements[uses[0] : place] if exclusive else statements[place + 1 :]
    if embedded == bool(uses) or (embedded and stores):
        return None
    _require_alone(kernel, node, statements, update)
    if exclusive and place + 1 < len(statements):
        line = line_of(source, statements[place + 1])
        raise NoMatchError(f"What line {line} does after the running sum is not followed.")
    texts = [source.node_text(s) for s in stores]
    if embedded:
        whole, inner = statements[place], _around(update.node)
        texts = [source.text(whole.start_byte, inner.start_byte) + name + source.text(inner.end_byte, whole.end_byte)]
    declared = {v for s in before for v in own_variables(s, source)}
    if any(re.search(rf"\b{re.escape(v)}\b", text) for v in declared for text in texts):
        raise NoMatchError(
            f"What is stored in the loop at line {line_of(source, node)} needs more than the running sum."
        )
    if exclusive:
        _require_unstored(kernel, block, operand, stores)
    kind = variable_type(kernel, block, name)
    require_kind(kernel, update, kind)
    return PrefixLoop(
        node,
        loop.step,
        loop.initial,
        loop.update,
        (),
        condition,
        tuple(before),
        operand,
        tuple(texts),
        name,
        kind,
        exclusive,
    )


def _require_unstored(kernel: Kernel, block: Node, operand: Node, stores: list[Node]) -> None:
    """What is added is not what was stored right before."""
    source, leads = kernel.source, led_to(kernel, block)
    stored = {root_name(source, t) for s in stores for t in targets(s, source)}
    stored |= {p for name in stored for p in leads.get(name, ())}
    for use in descendants(operand, "identifier"):
        name = source.node_text(use)
        if {name, *leads.get(name, ())} & stored:
            raise NoMatchError(f"`{name}` is stored to and read at line {line_of(source, use)}.")


def _sums(source: Source, statement: Node) -> list[tuple[Update, bool]]:
    """The update that a statement is, or stores, and whether it stores it: `sum += x;` and `out[c] = sum += x;`."""
    inner = uncommented(statement)
    if statement.type != "expression_statement" or len(inner) != 1:
        return []
    update = match_update(source, statement)
    if update is not None and update.target.type == "identifier":
        return [(update, False)]
    value = inner[0].child_by_field_name("right") if inner[0].type == "assignment_expression" else None
    while value is not None and value.type == "parenthesized_expression":
        value = next(iter(uncommented(value)), None)
    update = match_expression(source, value, value) if value is not None else None
    return [(update, True)] if update is not None and update.target.type == "identifier" else []


def _around(node: Node) -> Node:
    """An expression with the parentheses around it."""
    while node.parent is not None and node.parent.type == "parenthesized_expression":
        node = node.parent
    return node


def _require_alone(kernel: Kernel, loop: Node, statements: list[Node], update: Update) -> None:
    """The body declares variables, makes the sum, and stores at another place in each iteration; nothing else."""
    source, inside = kernel.source, loop.child_by_field_name("body") or loop
    own = own_variables(inside, source)
    if hidden := own & visible_at(kernel, loop):
        raise NoMatchError(f"`{min(hidden)}` names one variable in the loop and another around it.")
    for statement in statements:
        plain = statement.type in ("declaration", "expression_statement")
        if not plain or any(source.node_text(n) in NUMBERS for n in descendants(statement, "identifier")):
            raise NoMatchError(f"What line {line_of(source, statement)} does beside the running sum is not followed.")
    for target in targets(inside, source):
        name = root_name(source, target)
        if target.type == "identifier":
            if target.start_byte != update.target.start_byte and name not in own:
                raise NoMatchError(f"`{name}` changes at line {line_of(source, target)}, beside the running sum.")
        elif target.type == "call_expression":
            raise NoMatchError(f"The loop changes memory by an atomic at line {line_of(source, target)}.")
        elif name not in own:
            require_apart(kernel, target, line_of(source, target))


def prefix_edit(kernel: Kernel, loop: PrefixLoop, lane: str, unit: str, group: tuple[int, str]) -> TextEdit:
    """The loop as one over 32 elements at a time, each with a scan of them by shuffles; or over fewer: `group` says how
    many lanes share it, and their mask."""
    lanes, mask = group
    width = "" if lanes == WARP else f", {lanes}"
    source, node = kernel.source, loop.node
    words, step = kernel.span.code, loop.step
    value, left, offset = (free_name(words, name) for name in ("value", "left", "offset"))
    indent = source.line_indent(node.start_byte)
    typed = {("int", 8): "long long", ("uint", 4): "unsigned int", ("uint", 8): "unsigned long long"}
    kind = typed.get((loop.kind.kind, loop.kind.size or 0), loop.kind.name)
    zero = "0" if loop.kind.is_integer else "0.0f" if loop.kind.size == 4 else "0.0"
    test = source.node_text(loop.condition)
    together = re.sub(rf"^\s*{re.escape(step)}\b", f"{step} - {lane}", test)
    initial, written = source.node_text(loop.initial), source.text(node.start_byte, loop.initial.start_byte)
    start = lane if re.fullmatch(r"0[uUlL]*", initial) else f"{initial} + {lane}"
    if not re.fullmatch(r"[\w.\s*+]+", initial):
        start = f"({initial}) + {lane}"
    comments = [source.node_text(c) for c in descendants(node, "comment")]
    taken = [*(source.node_text(s) for s in loop.before), f"{value} = {source.node_text(loop.operand)};"]
    stored = list(loop.stores)
    out = [*comments, f"{written}{start}; {together}; {step} += {lanes}) {{", f"{unit}{kind} {value} = {zero};"]
    out += _guarded(test, taken, unit)
    out += [
        f"{unit}for (int {offset} = 1; {offset} < {lanes}; {offset} *= 2) {{",
        f"{unit * 2}{kind} {left} = __shfl_up_sync({mask}, {value}, {offset}{width});",
        f"{unit * 2}if ({lane} >= {offset})",
        f"{unit * 3}{value} += {left};",
        f"{unit}}}",
    ]
    if loop.exclusive:
        all_ = free_name(words, "next")
        out += [
            f"{unit}{kind} {all_} = {loop.sum} + __shfl_sync({mask}, {value}, {lanes - 1}{width});",
            f"{unit}{value} = __shfl_up_sync({mask}, {value}, 1{width});",
            f"{unit}if ({lane} > 0)",
            f"{unit * 2}{loop.sum} += {value};",
            *_guarded(test, stored, unit),
            f"{unit}{loop.sum} = {all_};",
        ]
    else:
        out += [
            f"{unit}{loop.sum} += {value};",
            *_guarded(test, stored, unit),
            f"{unit}{loop.sum} = __shfl_sync({mask}, {loop.sum}, {lanes - 1}{width});",
        ]
    text = f"\n{indent}".join([*out, "}"])
    return TextEdit(node.start_byte, node.end_byte, text)


def _guarded(test: str, texts: list[str], unit: str) -> list[str]:
    if len(texts) == 1 and "\n" not in texts[0]:
        return [f"{unit}if ({test})", f"{unit * 2}{texts[0].strip()}"]
    return [f"{unit}if ({test}) {{", *(f"{unit * 2}{t.strip()}" for t in texts), f"{unit}}}"]
