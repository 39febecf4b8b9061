"""Which integers an expression of a kernel can be, and whether it is of type float, as far as its own text says."""

from __future__ import annotations

import re
import struct

from tree_sitter import Node

from warpwright.cuda.numbers import integer
from warpwright.facts.bodies import is_float_function
from warpwright.facts.model import Kernel
from warpwright.facts.types import CType, builtin_type
from warpwright.rewrites._code import called_name
from warpwright.rewrites._names import assignments
from warpwright.rewrites._thread_indices import Indices, declared_types
from warpwright.syntax.nodes import descendants, uncommented
from warpwright.syntax.source import Source

Range = tuple[int, int]
"""The least and the greatest, both included."""
NOTHING: Range = (1 << 64, -(1 << 64))
"""The range of no value: what an array holds before anything else is stored in it."""

_THREADS = {"x": 1024, "y": 1024, "z": 64}
"""Largest block along each axis (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability")."""
_COUNTS = {
    "__popc": 32,
    "__popcll": 64,
    "__ffs": 32,
    "__ffsll": 64,
    "__clz": 32,
    "__clzll": 64,
    "__syncthreads_count": 1024,
}
"""Functions that count, and the most that they give."""
_COMPARISONS = ("<", ">", "<=", ">=", "==", "!=", "&&", "||")
_LARGEST = (1 << 31) - 1
_DEPTH = 16


class Ranges:
    """Reads the expressions of one kernel. Elements of `array`, whose range is looked for, count as any value of it."""

    def __init__(self, kernel: Kernel, block: Node, array: str) -> None:
        self.source: Source = kernel.source
        self.array = array
        self.given = assignments(block, kernel.source)
        self.declared = declared_types(block, kernel.source)
        self.indices = Indices(block, kernel.source)
        self.block = block
        self.pointees = {p.name: _pointee(p.type) for p in kernel.parameters if p.is_pointer}
        self.pointees |= {a.name: builtin_type(a.element_type) for a in kernel.shared_arrays}
        self.scalars = {p.name: builtin_type(_plain(p.type, p.name)) for p in kernel.parameters if not p.is_pointer}

    def range(self, node: Node | None, depth: int = _DEPTH) -> Range | None:
        """The integers that a node can be; None where that is not certain, or an operation could overflow."""
        if node is None or not depth:
            return None
        source = self.source
        text = source.node_text(node)
        match node.type:
            case "number_literal" | "field_expression":
                return self._leaf(node, text)
            case "true" | "false":
                return (0, 1)
            case "parenthesized_expression":
                inner = uncommented(node)
                return self.range(inner[0], depth) if len(inner) == 1 else None
            case "assignment_expression":
                plain = source.node_text(node.child_by_field_name("operator") or node) == "="
                return self.range(node.child_by_field_name("right"), depth) if plain else None
            case "identifier":
                return self._variable(node, text, depth)
            case "subscript_expression":
                name = _root(node, source)
                return NOTHING if name == self.array else _of_type(self.pointees.get(name))
            case "unary_expression":
                return self._unary(node, depth)
            case "conditional_expression":
                return self._one_of([node.child_by_field_name(s) for s in ("consequence", "alternative")], depth)
            case "cast_expression":
                kind = builtin_type(source.node_text(node.child_by_field_name("type") or node))
                return _cast(kind, self.range(node.child_by_field_name("value"), depth))
            case "call_expression":
                return self._call(node, depth)
            case "binary_expression":
                return self._binary(node, depth)
        return None

    def _leaf(self, node: Node, text: str) -> Range | None:
        object_name, _, axis = text.replace(" ", "").partition(".")
        if object_name == "threadIdx" and axis in _THREADS:
            return (0, _THREADS[axis] - 1)
        if object_name == "blockDim" and axis in _THREADS:
            return (1, _THREADS[axis])
        negative = node.type == "number_literal" and text.startswith("-")  # as the grammar reads `? -1 :`
        value = integer(text.lstrip("- ")) if node.type == "number_literal" else None
        if value is None or (negative and "u" in text.lower()):
            return None
        return (-value, -value) if negative else (value, value)

    def _variable(self, node: Node, name: str, depth: int) -> Range | None:
        kinds = self.declared.get(name)
        if kinds is None:
            if name in self.given or name in self.scalars:
                return None if name in self.given else _of_type(self.scalars[name])
            value = self.indices.value(node, (0, 0, 0), (1, 1, 1))
            return (value, value) if value is not None else None
        kind = builtin_type(kinds[0]) if len(kinds) == 1 else None
        narrow = _of_type(kind)
        if narrow is not None or len(kinds) != 1 or kind is None or not (kind.is_integer or kinds[0] == "auto"):
            return narrow
        if (counted := self._counter(name, depth)) is not None:
            return counted
        values = self.given.get(name, [])
        found = _union([self.range(value, depth - 1) for value in values]) if values else None
        return found if found is not None and found != NOTHING and (found[0] >= 0 or kind.kind == "int") else None

    def _counter(self, name: str, depth: int) -> Range | None:
        """The range of `k` in `for (int k = a; k < b; k++)`, where nothing else sets it."""
        for loop in descendants(self.block, "for_statement"):
            first, condition, step = (loop.child_by_field_name(n) for n in ("initializer", "condition", "update"))
            if (
                first is None
                or first.type != "declaration"
                or condition is None
                or step is None
                or condition.type != "binary_expression"
            ):
                continue
            left, right = condition.child_by_field_name("left"), condition.child_by_field_name("right")
            text = self.source.node_text
            up = re.fullmatch(rf"\+\+\s*{name}|{name}\s*(?:\+\+|\+=\s*\w+)", text(step)) is not None
            declared = any(text(n) == name for n in descendants(first, "identifier"))
            if not up or not declared or left is None or text(left) != name or len(self.given.get(name, [])) != 2:
                continue
            start = self.range(
                next((v for v in self.given[name] if first.start_byte <= v.start_byte < first.end_byte), None),
                depth - 1,
            )
            end = self.range(right, depth - 1)
            by = step.child_by_field_name("right")
            stepped = self.range(by, depth - 1) if by is not None else (1, 1)
            operator = condition.child_by_field_name("operator")
            if (
                start is None
                or end is None
                or NOTHING in (start, end)
                or stepped is None
                or stepped[0] < 1
                or operator is None
            ):
                return None
            last = {"<": end[1] - 1, "<=": end[1], "!=": end[1] - 1}.get(text(operator))
            exact = text(operator) != "!=" or (stepped == (1, 1) and start[1] <= end[0])
            return (start[0], max(start[1], last)) if last is not None and exact else None
        return None

    def _one_of(self, nodes: list[Node | None], depth: int) -> Range | None:
        """The range of either; None where one is negative and the other may be unsigned, which would convert it."""
        found = _union([self.range(node, depth) for node in nodes])
        negative = found is not None and found != NOTHING and found[0] < 0
        return found if not negative or all(node is not None and self._is_signed(node) for node in nodes) else None

    def _is_signed(self, node: Node) -> bool:
        text = self.source.node_code(node)
        if node.type == "conditional_expression":
            arms = [node.child_by_field_name(side) for side in ("consequence", "alternative")]
            return all(arm is not None and self._is_signed(arm) for arm in arms)
        if node.type == "subscript_expression":
            return _of_type(self.pointees.get(_root(node, self.source))) is not None
        return re.fullmatch(r"[-(\s]*\d+[)\s]*", text) is not None

    def _unary(self, node: Node, depth: int) -> Range | None:
        operator = self.source.node_text(node.children[0])
        inner = self.range(node.child_by_field_name("argument"), depth)
        if operator == "!":
            return (0, 1)
        argument = node.child_by_field_name("argument")
        if operator == "-" and inner is not None and argument is not None and argument.type == "number_literal":
            return None if "u" in self.source.node_code(argument).lower() else (-inner[1], -inner[0])
        return None

    def _call(self, node: Node, depth: int) -> Range | None:
        name, function = called_name(node, self.source), node.child_by_field_name("function")
        arguments = uncommented(node.child_by_field_name("arguments"))
        if name in _COUNTS:
            return (0, _COUNTS[name])
        if name in ("min", "max") and len(arguments) == 2:
            return self._one_of([*arguments], depth)
        ranges = [self.range(argument, depth) for argument in arguments]
        if function is not None and len(ranges) == 1 and (name == "static_cast" or function.type == "primitive_type"):
            written = self.source.node_text(function)
            return _cast(
                builtin_type(written.partition("<")[2].rstrip(">") if name == "static_cast" else written), ranges[0]
            )
        return None

    def _binary(self, node: Node, depth: int) -> Range | None:
        left, right, op = (node.child_by_field_name(n) for n in ("left", "right", "operator"))
        operator = self.source.node_text(op) if op is not None else ""
        if operator in _COMPARISONS:
            return (0, 1)
        a, b = self.range(left, depth), self.range(right, depth)
        if operator == "&":
            masks = [r[1] for r in (a, b) if r is not None and r[0] >= 0 and r != NOTHING]
            return (0, min(masks)) if masks else None
        if operator == "%" and b is not None and b[0] > 0 and b != NOTHING:
            return (0 if a is not None and a[0] >= 0 and a != NOTHING else 1 - b[1], b[1] - 1)
        if a is None or b is None or NOTHING in (a, b) or a[0] < 0 or b[0] < 0:
            return None
        return _combined(operator, a, b)

    def is_float(self, node: Node | None, depth: int = _DEPTH) -> bool:
        """Whether a value is one that float holds: of that type, an integer of at most 24 bits, or such a literal."""
        if node is None or not depth:
            return False
        source = self.source
        text = source.node_text(node)
        match node.type:
            case "number_literal":
                return _is_float_literal(text)
            case "parenthesized_expression":
                return self.is_float(next(iter(uncommented(node)), None), depth)
            case "conditional_expression":
                return all(self.is_float(node.child_by_field_name(s), depth) for s in ("consequence", "alternative"))
            case "unary_expression" if text.startswith("-"):
                return self.is_float(node.child_by_field_name("argument"), depth)
        return self._has_float_type(node, depth) or _is_small(self.range(node, depth))

    def _has_float_type(self, node: Node, depth: int) -> bool:
        source = self.source
        match node.type:
            case "number_literal":
                return source.node_code(node).lower().endswith("f") and not source.node_code(node).lower().startswith(
                    "0x"
                )
            case "parenthesized_expression":
                return self._has_float_type(uncommented(node)[0], depth)
            case "unary_expression":
                inner = node.child_by_field_name("argument")
                return inner is not None and source.node_text(node)[:1] in "+-" and self._has_float_type(inner, depth)
            case "subscript_expression":
                name = _root(node, source)
                kind = self.pointees.get(name)
                return name == self.array or (kind is not None and kind.name in ("float", "half"))
            case "identifier":
                name = source.node_text(node)
                kinds = self.declared.get(name, [])
                known = self.scalars.get(name) if not kinds else builtin_type(kinds[0]) if len(kinds) == 1 else None
                return known is not None and known.name == "float"
            case "cast_expression":
                return source.node_text(node.child_by_field_name("type") or node) == "float"
            case "call_expression":
                function = node.child_by_field_name("function")
                written = source.node_code(function) if function is not None else ""
                return written in ("float", "static_cast<float>") or is_float_function(called_name(node, source))
            case "binary_expression":
                sides = [node.child_by_field_name(s) for s in ("left", "right")]
                op = source.node_text(node.child_by_field_name("operator") or node)
                return op in ("+", "-", "*", "/") and all(
                    s is not None and _root(s, source) != self.array and self._has_float_type(s, depth - 1)
                    for s in sides
                )
        return False


def _root(node: Node, source: Source) -> str:
    """The name of what is indexed: `a` of `a[i][j]`; empty for anything else."""
    while node.type == "subscript_expression":
        inner = node.child_by_field_name("argument")
        if inner is None:
            return ""
        node = inner
    return source.node_text(node) if node.type == "identifier" else ""


def _plain(text: str, name: str) -> str:
    text = re.sub(r"\b(?:const|__restrict__|__restrict|restrict|volatile)\b", " ", text)
    return " ".join(re.sub(rf"\b{re.escape(name)}\b\s*$", " ", text).split())


def _pointee(text: str) -> CType | None:
    return builtin_type(_plain(text.partition("*")[0], "")) if text.count("*") == 1 else None


def _of_type(kind: CType | None) -> Range | None:
    """The range of an integer type of at most 16 bits."""
    if kind is None or not kind.is_integer or (kind.size or 8) > 2:
        return None
    bits = 8 * (kind.size or 1)
    if kind.kind == "bool":
        return (0, 1)
    if kind.name == "char":  # signed or not as the host's compiler has it
        return (-128, 255)
    return (0, (1 << bits) - 1) if kind.kind == "uint" else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def _cast(kind: CType | None, inner: Range | None) -> Range | None:
    if kind is None or not kind.is_integer:
        return None
    own = _of_type(kind)
    if own is None:
        return inner if inner is not None and inner != NOTHING and inner[0] >= 0 and inner[1] <= _LARGEST else None
    return inner if inner is not None and inner != NOTHING and own[0] <= inner[0] and inner[1] <= own[1] else own


def _union(ranges: list[Range | None]) -> Range | None:
    known = [r for r in ranges if r is not None]
    return (min(r[0] for r in known), max(r[1] for r in known)) if known and len(known) == len(ranges) else None


def _combined(operator: str, a: Range, b: Range) -> Range | None:
    """Of two ranges without negative numbers; None where the result can be negative or pass 31 bits."""
    found: Range | None = None
    match operator:
        case "+":
            found = (a[0] + b[0], a[1] + b[1])
        case "-":
            found = (a[0] - b[1], a[1] - b[0])
        case "*":
            found = (a[0] * b[0], a[1] * b[1])
        case "/" if b[0] > 0:
            found = (a[0] // b[1], a[1] // b[0])
        case ">>" if b[1] < 31:
            found = (a[0] >> b[1], a[1] >> b[0])
        case "<<" if b[1] < 31:
            found = (a[0] << b[0], a[1] << b[1])
        case "|" | "^":
            found = (0, (1 << max(a[1], b[1]).bit_length()) - 1)
    return found if found is not None and found[0] >= 0 and found[1] <= _LARGEST else None


def _is_small(found: Range | None) -> bool:
    return found is not None and found != NOTHING and found[0] >= -(1 << 24) and found[1] <= 1 << 24


def _is_float_literal(text: str) -> bool:
    """
    >>> [_is_float_literal(text) for text in ("0.0", "1.5", "0.1", "0.1f", "16777217")]
    [True, True, False, True, False]
    """
    if text.lower().startswith("0x"):
        return False
    if text.lower().endswith("f"):
        return True
    try:
        value = float(text.rstrip("lLuU"))
        return bool(struct.unpack("f", struct.pack("f", value))[0] == value)
    except (ValueError, OverflowError):
        return False
