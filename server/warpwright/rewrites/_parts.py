"""What a loop puts together, as the parts that lanes put together for themselves and combine afterwards."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.cuda.numbers import number_at
from warpwright.facts.model import Kernel
from warpwright.facts.types import CType
from warpwright.rewrites._accumulate import Update, combined, is_exact, match_update, neutral, shuffled_type
from warpwright.rewrites._code import NoMatchError, names, squeezed
from warpwright.rewrites._early import is_integer_text
from warpwright.rewrites._layout import line_of
from warpwright.rewrites._locals import locals_of
from warpwright.rewrites._row_loop import RowLoop, require_same_order, row_loop, step_loop, targets
from warpwright.rewrites._templates import written_as
from warpwright.syntax.nodes import ancestors, declared_name, descendants, uncommented
from warpwright.syntax.source import Source


@dataclass(frozen=True, slots=True)
class Part:
    """One variable, or one element of a shared array, that a loop accumulates into.

    `target` is how it is written, `root` the name in it, `type` its type as written, `uses` the places in the loop.
    """

    target: str
    root: str
    type: str
    kind: CType
    operation: str
    function: str
    uses: tuple[Node, ...]
    is_shared: bool

    @property
    def is_exact(self) -> bool:
        """Whether the order of the operations does not matter to the last bit."""
        return is_exact(self.operation, self.kind)

    @property
    def neutral(self) -> str:
        return neutral(self.operation, self.kind)

    def combined(self, name: str, other: str) -> str:
        """The statement that combines another lane's part into a lane's."""
        return combined(self.operation, self.function, self.kind, name, other)

    def taken(self, name: str) -> str:
        """The statement that combines the whole of the parts into the target, in the text's own manner."""
        if self.operation in ("max", "min") and not self.function:
            sign = ">" if self.operation == "max" else "<"
            return f"if ({name} {sign} {self.target}) {self.target} = {name};"
        return combined(self.operation, self.function, self.kind, self.target, name)


def parts_of(kernel: Kernel, node: Node) -> tuple[RowLoop, tuple[Part, ...]]:
    """A loop that counts up by 1 and what it accumulates; refuses one that does anything else."""
    source, inside = kernel.source, node.child_by_field_name("body")
    assigned = list(targets(inside, source)) if inside is not None else []
    if inside is not None and any(target.type == "subscript_expression" for target in assigned):
        loop = step_loop(kernel, node)
        updates = _element_updates(kernel, loop, inside)
    else:
        loop = row_loop(kernel, node)
        updates = list(loop.updates)
    types = {**locals_of(kernel).types, loop.step: "int", **{a.name: a.element_type for a in kernel.shared_arrays}}
    found: dict[str, Part] = {}
    for update in updates:
        target = squeezed(source.node_code(update.target))
        root = re.match(r"\w+", target)
        typed, is_shared = _type(kernel, node, root[0] if root else "")
        kind = shuffled_type(typed)
        typed = written_as(kernel, root[0], typed) if root and is_shared else typed
        if kind is None or root is None:
            raise NoMatchError(f"`{target}` is {typed or 'of no known type'}, which this rewrite does not shuffle.")
        if update.admits_nan and not kind.is_integer:
            raise NoMatchError(f"A NaN comes into `{target}` and goes with the next number, so the order matters.")
        operand = update.operand
        if kind.is_integer and operand is not None and not is_integer_text(source, operand, types):
            raise NoMatchError(
                f"`{source.node_text(operand)}` is not plainly an integer, and `{target}` would round it off."
            )
        require_same_order(source, update, kind, types)
        earlier = found.get(target)
        if earlier is not None and (earlier.operation, earlier.function) != (update.operation, update.function):
            raise NoMatchError(f"`{target}` is changed by different operations in one loop.")
        uses = tuple(_uses(source, node, update))
        found[target] = Part(target, root[0], typed, kind, update.operation, update.function, uses, is_shared)
    return loop, tuple(found.values())


def _uses(source: Source, loop: Node, update: Update) -> list[Node]:
    """Every place in the loop where the update's target is written."""
    target = squeezed(source.node_code(update.target))
    if update.target.type == "identifier":
        return list(names(loop, source, target))
    return [n for n in descendants(loop, "subscript_expression") if squeezed(source.node_code(n)) == target]


def _element_updates(kernel: Kernel, loop: RowLoop, inside: Node) -> list[Update]:
    """The body as nothing but updates, of variables and of elements like `a[0]` that the loop, which starts further on,
    does not read otherwise."""
    source = kernel.source
    shared = {array.name for array in kernel.shared_arrays}
    found: list[Update] = []
    for statement in uncommented(inside) if inside.type == "compound_statement" else [inside]:
        update = match_update(source, statement)
        if update is None:
            raise NoMatchError(f"Line {line_of(source, statement)} does not combine a value into one place.")
        found.append(update)
    start = number_at(source, inside, source.node_code(loop.initial))
    for update in found:
        target, line = squeezed(source.node_code(update.target)), line_of(source, update.node)
        element = re.fullmatch(r"(\w+)\[(\d+)\]", target)
        if update.target.type == "identifier":
            again = [n for u in found if u.operand is not None for n in names(u.operand, source, target)]
            if again:
                raise NoMatchError(f"`{target}` is read at line {line}, in the middle of the loop.")
            continue
        if element is None or element[1] not in shared:
            raise NoMatchError(f"`{target}` at line {line} is not one element of a shared array.")
        if start is None or start <= int(element[2]):
            raise NoMatchError(f"The loop may read `{target}` at line {line} as one of the elements.")
        for use in names(loop.node, source, element[1]):
            spelled = squeezed(source.node_code(use.parent)) if use.parent is not None else ""
            if spelled not in (target, f"{element[1]}[{loop.step}]"):
                raise NoMatchError(f"`{spelled}` at line {line_of(source, use)} may be `{target}`.")
        if any(
            squeezed(source.node_code(n)) == target
            for u in found
            if u.operand is not None
            for n in (u.operand, *descendants(u.operand, "subscript_expression"))
        ):
            raise NoMatchError(f"`{target}` is read at line {line}, in the middle of the loop.")
    return found


def _type(kernel: Kernel, loop: Node, name: str) -> tuple[str, bool]:
    """The type of a variable that is visible at a loop, as written, and whether it is shared; empty where its
    declaration is not found."""
    shared = next((a for a in kernel.shared_arrays if a.name == name), None)
    if shared is not None:
        return shared.element_type, True
    for node in (loop, *ancestors(loop)):
        earlier = node.prev_named_sibling
        while earlier is not None and node != kernel.node:
            if earlier.type == "declaration":
                for declarator in earlier.children_by_field_name("declarator"):
                    plain = declarator.child_by_field_name("declarator") or declarator
                    if declared_name(kernel.source, declarator) == name and plain.type == "identifier":
                        kind = earlier.child_by_field_name("type")
                        return (kernel.source.node_text(kind) if kind is not None else ""), False
            earlier = earlier.prev_named_sibling
        if node == kernel.node:
            break
    return "", False
