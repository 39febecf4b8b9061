"""What threads do with the values that they put together, up to the atomics that add them up over all blocks.

Where every step combines such values by one operation, or copies one, the result is the same however the elements are
split among the blocks, as long as each stays with its threadIdx.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.facts.model import AccessKind, Kernel
from warpwright.facts.types import CType, builtin_type
from warpwright.rewrites._accumulate import is_neutral, match_update
from warpwright.rewrites._code import NoMatchError, bare
from warpwright.rewrites._layout import line_of
from warpwright.rewrites._locals import locals_of
from warpwright.rewrites._row_loop import root_name
from warpwright.rewrites._threads import unfit_call
from warpwright.syntax.nodes import declared_name, descendants, uncommented

ATOMIC_OPERATIONS = {
    "atomicAdd": "+", "atomicSub": "+", "atomicAnd": "&", "atomicOr": "|", "atomicXor": "^", "atomicMax": "max",
    "atomicMin": "min",
}  # fmt: skip
_WAITS = frozenset({"__syncthreads", "__syncwarp"})


Combined = tuple[str, CType]
"""The operation that values are put together by, and their type."""


class Tail:
    """Follows statements behind the work on the elements. `values` has what each variable or array holds."""

    def __init__(self, kernel: Kernel, values: Mapping[str, Combined]) -> None:
        self.kernel, self.source = kernel, kernel.source
        self.values = dict(values)
        self.types = dict(locals_of(kernel).types) | {a.name: a.element_type for a in kernel.shared_arrays}
        self.shared = {array.name for array in kernel.shared_arrays}
        self.pointers = {p.name for p in kernel.parameters if p.is_pointer}
        self.atomics: list[Node] = []

    def follow(self, statements: Iterable[Node]) -> None:
        """Go through the statements in order; refuses the first that does anything else than combine and copy."""
        for statement in statements:
            self._statement(statement)

    def _statement(self, statement: Node) -> None:
        update = match_update(self.source, statement)
        if update is not None and self._uses(statement):
            target = root_name(self.source, update.target)
            value = self._read(update.operand) if update.operand is not None else None
            same = value is not None and value == self.values.get(target) and value[0] == update.operation
            if not same or update.negated or update.admits_nan or self._uses_in_index(update.target):
                raise self._unfit(statement)
            return
        match statement.type:
            case "comment" | "preproc_call":
                return
            case "compound_statement":
                self.follow(statement.named_children)
            case "if_statement":
                condition = statement.child_by_field_name("condition")
                if condition is None or self._uses(condition):
                    raise self._unfit(statement)
                for field in ("consequence", "alternative"):
                    side = statement.child_by_field_name(field)
                    inner = uncommented(side) if side is not None and side.type == "else_clause" else [side]
                    self.follow(s for s in inner if s is not None)
            case "for_statement" | "while_statement" | "do_statement":
                inside = statement.child_by_field_name("body")
                header = [child for child in statement.named_children if child != inside]
                if inside is None or any(self._uses(part) for part in header):
                    raise self._unfit(statement)
                self._statement(inside)
            case "declaration":
                self._declaration(statement)
            case "expression_statement":
                self._expression(statement)
            case _:
                raise self._unfit(statement)

    def _declaration(self, statement: Node) -> None:
        for declarator in statement.children_by_field_name("declarator"):
            value = declarator.child_by_field_name("value")
            if value is None:
                continue
            if not self._uses(value):
                self._require_pure(statement)
                continue
            found, plain = self._read(value), declarator.child_by_field_name("declarator")
            name = declared_name(self.source, declarator)
            if found is None or plain is None or plain.type != "identifier":
                raise self._unfit(statement)
            self._set(statement, name, found)

    def _set(self, statement: Node, name: str, value: Combined) -> None:
        """Let a name hold a value, which its type has to keep whole."""
        kind = builtin_type(self.types.get(name, ""))
        if kind is None or not _keeps(kind, value[1]) or self.values.get(name, value)[0] != value[0]:
            raise self._unfit(statement)
        self.values[name] = value[0], kind

    def _expression(self, statement: Node) -> None:
        inner = uncommented(statement)
        node = inner[0] if len(inner) == 1 else statement
        if node.type == "call_expression":
            self._call(statement, node)
            return
        if node.type != "assignment_expression" or not self._uses(statement):
            self._require_local(statement)
            return
        target, value = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = node.child_by_field_name("operator")
        plain = operator is not None and self.source.node_text(operator) == "="
        if target is None or value is None or not plain or self._uses_in_index(target):
            raise self._unfit(statement)
        name = root_name(self.source, target)
        element = target.type == "subscript_expression" and name in self.shared
        if not element and not (target.type == "identifier" and name not in self.pointers):
            raise self._unfit(statement)
        found = self._read(value, self.values.get(name))
        if found is None:
            raise self._unfit(statement)
        self._set(statement, name, found)

    def _call(self, statement: Node, call: Node) -> None:
        name, arguments = called_name(call, self.source), uncommented(call.child_by_field_name("arguments"))
        if name in _WAITS:
            return
        operation = ATOMIC_OPERATIONS.get(name)
        if operation is None or len(arguments) != 2 or self._uses(arguments[0]):
            raise self._unfit(statement)
        value, start = self._read(arguments[1]), self.source.span(call).start
        kinds = [
            builtin_type(a.type)
            for a in self.kernel.accesses
            if a.kind is AccessKind.ATOMIC and a.span.source is self.source and a.span.start == start
        ]
        kept = value is not None and kinds and all(k is not None and _keeps(k, value[1]) for k in kinds)
        if value is None or value[0] != operation or not kept:
            raise self._unfit(statement)
        self.atomics.append(call)

    def _read(self, node: Node, known: Combined | None = None) -> Combined | None:
        """What a value is that is one of ours as it is, one of two, or one from another lane; None for any other.
        `known` is what the neutral number alone stands for."""
        inner = bare(node)
        if inner.type == "identifier":
            return self.values.get(self.source.node_text(inner))
        if inner.type == "subscript_expression":
            return self.values.get(root_name(self.source, inner)) if not self._uses_in_index(inner) else None
        if inner.type == "call_expression" and called_name(inner, self.source).startswith("__shfl_"):
            arguments = uncommented(inner.child_by_field_name("arguments"))
            others = any(self._uses(argument) for place, argument in enumerate(arguments) if place != 1)
            return self._read(arguments[1]) if len(arguments) >= 3 and not others else None
        if inner.type == "conditional_expression":
            condition, *sides = (inner.child_by_field_name(f) for f in ("condition", "consequence", "alternative"))
            found = next((f for side in sides if side is not None and (f := self._read(side)) is not None), None)
            if condition is None or self._uses(condition) or found is None:
                return None
            return found if all(side is not None and self._read(side, found) == found for side in sides) else None
        neutral = known is not None and is_neutral(self.source.node_text(inner), known[0])
        return known if neutral else None

    def _uses(self, node: Node) -> bool:
        return any(self.source.node_text(n) in self.values for n in descendants(node, "identifier"))

    def _uses_in_index(self, target: Node) -> bool:
        return any(self._uses(index) for index in descendants(target, "subscript_argument_list"))

    def _require_pure(self, statement: Node) -> None:
        if reason := unfit_call(self.kernel, statement):
            raise NoMatchError(reason)
        if any(called_name(c, self.source).startswith("atomic") for c in descendants(statement, "call_expression")):
            raise self._unfit(statement)

    def _require_local(self, statement: Node) -> None:
        """Nothing but a variable of the thread's own, or a shared one, is set."""
        self._require_pure(statement)
        for node in descendants(statement, "assignment_expression", "update_expression"):
            target = node.child_by_field_name("left") or node.child_by_field_name("argument")
            if target is None or target.type != "identifier":
                raise self._unfit(statement)

    def _unfit(self, statement: Node) -> NoMatchError:
        line = line_of(self.source, statement)
        text = re.sub(r"\s+", " ", self.source.plain_text(statement))
        shown = text if len(text) <= 60 else f"{text[:57]}..."
        return NoMatchError(f"`{shown}` at line {line} is not part of one sum over all blocks.")


def _keeps(kind: CType, value: CType) -> bool:
    """Whether a type holds values of another as they are: floating-point ones that are no shorter, or the same
    integers, whose sums wrap around alike."""
    if kind.kind == value.kind == "float":
        return (kind.size or 0) >= (value.size or 0)
    return kind.kind == value.kind and kind.size == value.size
