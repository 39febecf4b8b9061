"""Integer expressions as sums of products, to see what an index depends on and by how much.

Example: with blocks of 16 x 16, `row * n + i` for `row = blockIdx.y * blockDim.y + threadIdx.y` is
16 blockIdx.y n + threadIdx.y n + i.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tree_sitter import Node

from warpwright.algebra.integers import integer_operation
from warpwright.algebra.sums import Sum, as_number, plus, product_of, scaled
from warpwright.cuda.numbers import file_constants, integer
from warpwright.facts.model import Dim3, Kernel
from warpwright.facts.types import builtin_type
from warpwright.rewrites._code import NoMatchError, macro_texts, squeezed
from warpwright.rewrites._locals import Locals, locals_of
from warpwright.syntax.encoding import encoded
from warpwright.syntax.nodes import descendants, uncommented
from warpwright.syntax.source import Source

Polynomial = Sum[str]
"""Factors are names: of variables, and `threadIdx.x`."""

_DEEPEST = 12


@dataclass(frozen=True, slots=True)
class Indices:
    """Reads the integer expressions of one kernel. `block` is the block of every launch, None where it is not known."""

    kernel: Kernel
    variables: Locals
    block: Dim3 | None
    macros: Mapping[str, list[str]] = field(repr=False)
    constants: Mapping[str, Node] = field(repr=False)

    def read(self, node: Node | None) -> Polynomial | None:
        """The expression as a sum of products; None where it is more than sums, differences and products.

        Variables that are set once stand for their values, constants and blockDim for their numbers.
        """
        return self._read(node, self.kernel.source, 0) if node is not None else None

    def number(self, node: Node | None) -> int | None:
        """The number that an expression is known to be, or None."""
        return as_number(self.read(node))

    def named(self, name: str) -> Polynomial | None:
        """What a variable or constant of that name is; the name itself where nothing more is known."""
        return self._name(name, 0)

    def _read(self, node: Node, source: Source, depth: int) -> Polynomial | None:
        if depth > _DEEPEST:
            return None
        text = source.node_text(node)
        match node.type:
            case "parenthesized_expression" if len(uncommented(node)) == 1:
                return self._read(uncommented(node)[0], source, depth)
            case "number_literal":
                literal = integer(text.removeprefix("-"))
                return {(): -literal if text.startswith("-") else literal} if literal is not None else None
            case "identifier":
                return self._name(text, depth)
            case "field_expression":
                return self._built_in(squeezed(text))
            case "unary_expression" if text.startswith("-"):
                inner = self._part(node, "argument", source, depth)
                return scaled(inner, -1) if inner is not None else None
            case "cast_expression":
                kind = node.child_by_field_name("type")
                return (
                    self._part(node, "value", source, depth) if kind and self._keeps(source.node_text(kind)) else None
                )
            case "call_expression":
                return self._cast(node, source, depth)
            case "binary_expression":
                operator = node.child_by_field_name("operator")
                left = self._part(node, "left", source, depth)
                right = self._part(node, "right", source, depth)
                if operator is None or left is None or right is None:
                    return None
                return combined(source.node_text(operator), left, right)
        return None

    def _cast(self, node: Node, source: Source, depth: int) -> Polynomial | None:
        """`static_cast<int>(x)` and `int(x)`."""
        arguments = uncommented(node.child_by_field_name("arguments"))
        function = node.child_by_field_name("function")
        written = source.node_code(function) if function is not None else ""
        cast = re.fullmatch(r"static_cast\s*<([^<>]*)>|([\w ]+)", written)
        kept = cast is not None and self._keeps(cast[1] or cast[2])
        return self._read(arguments[0], source, depth + 1) if kept and len(arguments) == 1 else None

    def _part(self, node: Node, name: str, source: Source, depth: int) -> Polynomial | None:
        child = node.child_by_field_name(name)
        return self._read(child, source, depth + 1) if child is not None else None

    def _name(self, name: str, depth: int) -> Polynomial | None:
        if name in self.variables.values:
            kind = self.variables.types.get(name, "")
            value = self._read(self.variables.values[name], self.kernel.source, depth + 1) if _keeps(kind) else None
            return value if value is not None else {(name,): 1}
        if name in self.variables.types or name in self.variables.changed:
            return {(name,): 1}
        if name in self.macros:
            return self._macro(self.macros[name], depth)
        if name in self.constants:
            return self._read(self.constants[name], self.kernel.source, depth + 1)
        return {(name,): 1}

    def _keeps(self, kind: str) -> bool:
        return _keeps(self.kernel.number_types.get(kind, kind))

    def _macro(self, texts: list[str], depth: int) -> Polynomial | None:
        if len(texts) != 1:
            return None
        parsed = Source("macro", encoded(f"int x = ({texts[0]});"))
        declared = next(descendants(parsed.root, "init_declarator"), None)
        value = declared.child_by_field_name("value") if declared is not None else None
        return self._read(value, parsed, depth + 1) if value is not None else None

    def _built_in(self, text: str) -> Polynomial | None:
        axis = re.fullmatch(r"(threadIdx|blockIdx|blockDim|gridDim)\.([xyz])", text)
        if axis is None:
            return None
        if axis[1] == "blockDim" and self.block is not None:
            return {(): self.block["xyz".index(axis[2])]}
        return {(text,): 1}


def indices_of(kernel: Kernel, block: Dim3 | None) -> Indices:
    return Indices(kernel, locals_of(kernel), block, macro_texts(kernel.source), file_constants(kernel.source))


def require_fixed(indices: Indices, names: set[str], what: str) -> None:
    """Raises NoMatchError where one of the names does not mean one value throughout the kernel."""
    variables = indices.variables
    for name in sorted(names):
        outside = name not in variables.types and name not in variables.changed
        if not (variables.is_fixed(name) or outside or "." in name):
            raise NoMatchError(f"`{name}` changes in {indices.kernel.name}, and {what} depends on it.")


def constant_named(indices: Indices, block: Node, names: Iterable[str], number: int) -> str:
    """The first of the names that is a macro or constant of that number, defined before the kernel; empty for none."""
    before = indices.kernel.source.code_text(0, block.start_byte)
    for name in names:
        is_constant = (name in indices.macros or name in indices.constants) and name not in indices.variables.types
        if is_constant and as_number(indices.named(name)) == number and re.search(rf"\b{re.escape(name)}\b", before):
            return name
    return ""


def combined(operator: str, left: Polynomial, right: Polynomial) -> Polynomial | None:
    match operator:
        case "+":
            return plus(left, right)
        case "-":
            return plus(left, right, -1)
        case "*":
            return product_of(left, right)
    a, b = as_number(left), as_number(right)
    if operator == "<<" and b is not None and 0 <= b < 31:
        return scaled(left, 1 << b)
    if operator not in ("/", "%") or a is None or b is None or b <= 0 or a < 0:
        return None
    result = integer_operation(operator, a, b)
    return {(): result} if result is not None else None


def _keeps(kind: str) -> bool:
    """Whether a value of that integer type can hold an index: 32 bits or more."""
    known = builtin_type(kind)
    return kind == "auto" or (known is not None and known.is_integer and (known.size or 0) >= 4)
