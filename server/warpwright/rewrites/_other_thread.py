"""What another thread of the block computes, written out: its index, its conditions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.facts.known_functions import KNOWN_FUNCTIONS
from warpwright.facts.model import Kernel
from warpwright.rewrites._code import macros_naming, squeezed
from warpwright.rewrites._layout import free_name, line_of
from warpwright.rewrites._locals import Locals, locals_of
from warpwright.rewrites._thread_numbers import NUMBER
from warpwright.syntax.edits import TextEdit, apply_edits
from warpwright.syntax.encoding import decoded
from warpwright.syntax.nodes import descendants, enclosing

_IMPURE = (
    "assignment_expression", "update_expression", "subscript_expression", "pointer_expression", "lambda_expression",
    "new_expression", "comma_expression",
)  # fmt: skip


class NotRetracedError(Exception):
    """The message is the reason for the user."""


@dataclass(slots=True)
class OtherThread:
    """Writes expressions as the thread computes them whose threadIdx.x and threadIdx.y, or blockIdx.x, are named by
    `axes`.

    `lines` declare what the expressions written so far need, under names that end in `suffix`. What is declared outside
    of an `if` or a loop before byte `before` and is the same for all threads of the block is named as it is.
    """

    kernel: Kernel
    axes: Mapping[str, str]
    suffix: str
    before: int
    lines: dict[str, str] = field(default_factory=lambda: {})
    _names: dict[str, str] = field(default_factory=lambda: {})
    _locals: Locals | None = None

    def text(self, node: Node) -> str:
        """The expression. Raises NotRetracedError where it is not made of values that never change."""
        source = self.kernel.source
        self._require_pure(node)
        edits: list[TextEdit] = []
        for use in descendants(node, "identifier"):
            name, parent = source.node_text(use), use.parent
            whole = squeezed(source.node_code(parent)) if parent is not None else ""
            if name == "threadIdx" or whole in self.axes:
                if parent is None or whole not in self.axes:
                    raise NotRetracedError(f"`{whole or name}` at line {line_of(source, use)} has no place in a tile.")
                edits.append(TextEdit(parent.start_byte, parent.end_byte, self.axes[whole]))
            elif new := self._renamed(name):
                edits.append(TextEdit(use.start_byte, use.end_byte, new))
        moved = [TextEdit(e.start - node.start_byte, e.end - node.start_byte, e.new_text) for e in edits]
        return decoded(apply_edits(source.data[node.start_byte : node.end_byte], moved))

    def _require_pure(self, node: Node) -> None:
        source = self.kernel.source
        for part in descendants(node, *_IMPURE):
            text = source.node_text(part)
            raise NotRetracedError(f"`{text}` at line {line_of(source, part)} cannot be computed a second time.")
        for call in descendants(node, "call_expression"):
            name = called_name(call, source)
            if not KNOWN_FUNCTIONS.fullmatch(name) or name.startswith(("__", "atomic", "printf")):
                raise NotRetracedError(f"`{name}` is called at line {line_of(source, call)}, for one thread alone.")
        words = set(re.findall(r"[A-Za-z_]\w*", source.node_code(node)))
        if hidden := words.intersection(macros_naming(source, NUMBER)):
            raise NotRetracedError(f"The macro {min(hidden)} reads the thread's index.")

    def _renamed(self, name: str) -> str:
        """The new name of a variable that another thread has another value of, or that is not visible; else empty."""
        variables = self._variables()
        if name in self._names:
            return self._names[name]
        if name in variables.parameters and name not in variables.changed:
            return ""
        if name in variables.changed or (name in variables.types and name not in variables.values):
            raise NotRetracedError(f"`{name}` changes in {self.kernel.name}, and an index depends on it.")
        value = variables.values.get(name)
        if value is None:
            return ""
        if self._is_visible(value) and not self._is_of_thread(name, frozenset()):
            return ""
        new = free_name(f"{self.kernel.source.code_text()} {' '.join(self._names.values())}", f"{name}{self.suffix}")
        text = self.text(value)
        text = text[1:-1] if value.type == "field_expression" and text.startswith("(") else text
        self._names[name] = new
        self.lines[new] = f"const {variables.types[name]} {new} = {text};"
        return new

    def _variables(self) -> Locals:
        if self._locals is None:
            self._locals = locals_of(self.kernel)
        return self._locals

    def _is_visible(self, value: Node) -> bool:
        block = enclosing(value, "compound_statement", "for_statement")
        top = self.kernel.node.child_by_field_name("body") if self.kernel.node is not None else None
        return block == top and value.start_byte < self.before

    def _is_of_thread(self, name: str, above: frozenset[str]) -> bool:
        value = self._variables().values.get(name)
        if value is None or name in above:
            return False
        source = self.kernel.source
        words = {source.node_text(n) for n in descendants(value, "identifier")}
        members = {squeezed(source.node_code(n)) for n in descendants(value, "field_expression")}
        return (
            "threadIdx" in words
            or bool(members & self.axes.keys())
            or any(self._is_of_thread(word, above | {name}) for word in words)
        )
