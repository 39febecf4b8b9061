"""Statements that combine a value with a variable by an operation whose order is free.

Example: `sum += x`, `count++`, `product = product * x`, `most = fmaxf(most, x)`, `if (x > most) most = x;`
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.facts.types import CType, builtin_type
from warpwright.rewrites._code import bare, squeezed
from warpwright.syntax.nodes import uncommented
from warpwright.syntax.source import Source

_NEUTRAL = {"+": r"0*\.?0*", "*": r"1(?:\.0*)?", "^": r"0", "|": r"0|false", "&": r"~0|-1|true|0[xX][fF]+"}
"""How the number is written that changes nothing, as in `x + 0`; by operation."""
_SUFFIX = r"(?:[fFuUlL]*)"
_IDEMPOTENT = frozenset({"&", "|", "max", "min"})
_SELECT = {"max": "max", "fmaxf": "max", "fmax": "max", "min": "min", "fminf": "min", "fmin": "min"}
_OPPOSITE = {"max": "min", "min": "max"}
_LAST = {
    ("max", "int", 4): "-2147483647 - 1",
    ("min", "int", 4): "2147483647",
    ("max", "int", 8): "-9223372036854775807LL - 1",
    ("min", "int", 8): "9223372036854775807LL",
    ("max", "uint", 4): "0",
    ("min", "uint", 4): "0xffffffffu",
    ("max", "uint", 8): "0",
    ("min", "uint", 8): "~0ull",
    ("max", "float", 4): "-INFINITY",
    ("min", "float", 4): "INFINITY",
    ("max", "float", 8): "-INFINITY",
    ("min", "float", 8): "INFINITY",
}
"""What every number is at least or at most, by operation, kind and bytes."""
_NAMES = {("int", 8): "long long", ("uint", 8): "unsigned long long", ("uint", 4): "unsigned int"}
_MULTIPLY_ADD = frozenset({"fmaf", "fma", "__fmaf_rn", "__fma_rn"})


@dataclass(frozen=True, slots=True)
class Update:
    """One statement that combines `operand` into `target`.

    `operation` is one of + * & | ^ max min; a `-=` is a sum of what is `negated`. `function` is what is called for max
    and min, empty where the text compares. `admits_nan`: the comparison is one that a NaN fails and comes in by, as
    `m = m > x ? m : x`, so that the order matters to where one is left out.
    """

    node: Node
    target: Node
    operation: str
    operand: Node | None
    function: str
    negated: bool = False
    admits_nan: bool = False


def is_idempotent(operation: str) -> bool:
    """Whether combining a value twice gives the same as once."""
    return operation in _IDEMPOTENT


def is_exact(operation: str, kind: CType) -> bool:
    """Whether the order of the operations does not matter to the last bit."""
    return kind.is_integer or operation in _IDEMPOTENT


def is_neutral(text: str, operation: str) -> bool:
    """Whether a literal leaves every number as it is under the operation.

    >>> is_neutral("0.0f", "+"), is_neutral("1", "*"), is_neutral("0", "*"), is_neutral(".5f", "+")
    (True, True, False, False)
    """
    text = re.sub(r"^\(\s*[\w\s]+\)|^static_cast<[\w\s]+>", "", squeezed(text)).strip("()")
    return (
        operation in _NEUTRAL
        and bool(re.search(r"\d|true|false", text))
        and (re.fullmatch(rf"(?:{_NEUTRAL[operation]}){_SUFFIX}", text) is not None)
    )


def neutral(operation: str, kind: CType) -> str:
    """The number that changes nothing under an operation, as it is written in CUDA.

    >>> neutral("+", builtin_type("float")), neutral("*", builtin_type("int")), neutral("min", builtin_type("double"))
    ('0.0f', '1', 'INFINITY')
    """
    if operation == "&":
        return "~0"
    if operation in ("max", "min"):
        return _LAST[operation, kind.kind, kind.size or 4]
    number = "1" if operation == "*" else "0"
    return number if kind.is_integer else f"{number}.0f" if kind.size == 4 else f"{number}.0"


def written_type(kind: CType) -> str:
    """A number type that a shuffle takes, as it is written in CUDA.

    >>> written_type(builtin_type("size_t")), written_type(builtin_type("float"))
    ('unsigned long long', 'float')
    """
    return _NAMES.get((kind.kind, kind.size or 0), kind.name)


def shuffled_type(text: str) -> CType | None:
    """The number type of that spelling if a shuffle takes it and gives it back: int, long long, float, double and
    their kin; None for any other."""
    kind = builtin_type(text)
    return kind if kind is not None and kind.size in (4, 8) and kind.kind in ("int", "uint", "float") else None


def combined(operation: str, function: str, kind: CType, target: str, other: str) -> str:
    """The statement that combines another value into a variable.

    >>> combined("+", "", builtin_type("float"), "sum", "x")
    'sum += x;'
    >>> combined("max", "", builtin_type("double"), "m", "x")
    'm = fmax(m, x);'
    """
    if operation not in ("max", "min"):
        return f"{target} {operation}= {other};"
    if not function:
        floating = {4: f"f{operation}f", 8: f"f{operation}"}
        function = operation if kind.is_integer else floating[kind.size or 4]
    return f"{target} = {function}({target}, {other});"


def match_update(source: Source, statement: Node) -> Update | None:
    """The update that a statement is; None where it is anything else."""
    if statement.type == "if_statement":
        return _compared(source, statement)
    inner = uncommented(statement)
    if statement.type != "expression_statement" or len(inner) != 1:
        return None
    return match_expression(source, inner[0], statement)


def match_expression(source: Source, node: Node, statement: Node) -> Update | None:
    """The update that an expression is, which stands alone as a statement."""
    if node.type == "update_expression":
        target = node.child_by_field_name("argument")
        negated = source.node_code(node).strip(" ()").endswith("--") or source.node_code(node).startswith("--")
        return Update(statement, target, "+", None, "", negated) if target is not None else None
    target, value = node.child_by_field_name("left"), node.child_by_field_name("right")
    operator = node.child_by_field_name("operator")
    if node.type != "assignment_expression" or target is None or value is None or operator is None:
        return None
    spelled, name = source.node_text(operator), squeezed(source.node_code(target))
    if spelled in ("+=", "-=", "*=", "&=", "|=", "^="):
        return Update(statement, target, "+" if spelled == "-=" else spelled[0], value, "", spelled == "-=")
    if spelled != "=":
        return None
    value = bare(value)
    if value.type == "binary_expression":
        sign = source.node_text(value.child_by_field_name("operator") or value)
        left, right = value.child_by_field_name("left"), value.child_by_field_name("right")
        if left is None or right is None or sign not in ("+", "-", "*", "&", "|", "^"):
            return None
        if squeezed(source.node_code(left)) == name:
            return Update(statement, target, "+" if sign == "-" else sign, right, "", sign == "-")
        if squeezed(source.node_code(right)) == name and sign != "-":
            return Update(statement, target, sign, left, "")
        return None
    if value.type == "call_expression":
        return _called(source, value, statement, target, name)
    if value.type == "conditional_expression":
        parts = [value.child_by_field_name(f) for f in ("condition", "consequence", "alternative")]
        if None not in parts:
            condition, then, otherwise = (bare(p) for p in parts if p is not None)
            chosen, kept = squeezed(source.node_code(then)), squeezed(source.node_code(otherwise))
            operation = _ordering(source, condition, name)
            if operation is not None and kept == name and chosen == operation[1]:
                return Update(statement, target, operation[0], then, "")
            if operation is not None and chosen == name and kept == operation[1]:
                return Update(statement, target, _OPPOSITE[operation[0]], otherwise, "", admits_nan=True)
    return None


def _called(source: Source, call: Node, statement: Node, target: Node, name: str) -> Update | None:
    arguments = uncommented(call.child_by_field_name("arguments"))
    spelled = [squeezed(source.node_code(a)) for a in arguments]
    function = called_name(call, source)
    if function in _SELECT and len(arguments) == 2 and spelled.count(name) == 1:
        other = arguments[1 - spelled.index(name)]
        whole = source.node_text(call.child_by_field_name("function") or call)
        return Update(statement, target, _SELECT[function], other, whole)
    once = len(re.findall(rf"\b{re.escape(name)}\b", "".join(spelled))) == 1
    if function in _MULTIPLY_ADD and len(arguments) == 3 and spelled[2] == name and once:
        return Update(statement, target, "+", arguments[0], "")
    return None


def _ordering(source: Source, condition: Node, name: str) -> tuple[str, str] | None:
    """("max", "x") for `x > name` and its other spellings, ("min", "x") for `x < name`."""
    left, right = condition.child_by_field_name("left"), condition.child_by_field_name("right")
    operator = condition.child_by_field_name("operator")
    if condition.type != "binary_expression" or left is None or right is None or operator is None:
        return None
    sign, one, two = source.node_text(operator)[0], *(squeezed(source.node_code(n)) for n in (left, right))
    if sign not in "<>" or len(source.node_text(operator)) > 2 or source.node_text(operator) in ("<<", ">>"):
        return None
    if two == name and one != name:
        return ("max" if sign == ">" else "min"), one
    if one == name and two != name:
        return ("max" if sign == "<" else "min"), two
    return None


def _compared(source: Source, statement: Node) -> Update | None:
    """`if (x > m) m = x;`"""
    clause, then = statement.child_by_field_name("condition"), statement.child_by_field_name("consequence")
    value = clause.child_by_field_name("value") if clause is not None else None
    if value is None or then is None or statement.child_by_field_name("alternative") is not None:
        return None
    inner = uncommented(then) if then.type == "compound_statement" else [then]
    if len(inner) != 1 or inner[0].type != "expression_statement":
        return None
    assignment = uncommented(inner[0])[0] if uncommented(inner[0]) else inner[0]
    target, new = assignment.child_by_field_name("left"), assignment.child_by_field_name("right")
    operator = assignment.child_by_field_name("operator")
    if assignment.type != "assignment_expression" or target is None or new is None or operator is None:
        return None
    ordering = _ordering(source, bare(value), squeezed(source.node_code(target)))
    if source.node_text(operator) != "=" or ordering is None or ordering[1] != squeezed(source.node_code(new)):
        return None
    return Update(statement, target, ordering[0], new, "")
