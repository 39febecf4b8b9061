"""Expressions of the host or of a kernel as formulas over what the text leaves open, to be tried with many values.

Example: in `int blocks = (n + 255) / 256; scale<<<blocks, 256>>>(x, n);` the grid is a formula over `n`. Whether the
grid covers n is asked by trying values of n around every power of two and multiple that sizes come in.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from tree_sitter import Node

from warpwright.algebra.integers import integer_operation
from warpwright.algebra.trials import Values, holds
from warpwright.cuda.functions import called_name
from warpwright.facts.constants import number, substitute
from warpwright.facts.host_scopes import Definition, read_definitions
from warpwright.facts.ir import Const
from warpwright.facts.preprocessor import Macro
from warpwright.rewrites._code import functions_of
from warpwright.rewrites._host_variables import symbol_at, whole_target, written
from warpwright.syntax.encoding import encoded
from warpwright.syntax.nodes import descendants, enclosing, parameters_of, uncommented
from warpwright.syntax.source import Source

Number = int | float

DEEPEST = 12
"""Definitions of definitions that are followed."""
_MEMBER_CALL = re.compile(r"[\w.]+(?:->\w+|\.\w+)\(\w*\)")
"""`in.numel()`, `x.size(0)`: the same number wherever it is asked."""
_ROUNDINGS: dict[str, Callable[[Number], Number]] = {
    "ceil": math.ceil, "ceilf": math.ceil, "floor": math.floor, "floorf": math.floor
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Formula:
    """`symbols` are what the text leaves open, by their text without white space; `value` is None where some operation
    has none, such as a division by zero. Integers are unbounded, floating-point numbers are doubles."""

    symbols: frozenset[str]
    value: Callable[[Values], Number | None]


@dataclass(frozen=True, slots=True)
class _Reader:
    """`source` is the text that is read, `home` the file whose macros and functions it names."""

    source: Source
    home: Source
    bound: Mapping[str, Formula]
    depth: int = 0


def formula(source: Source, node: Node, bound: Mapping[str, Formula] | None = None) -> Formula | None:
    """The formula of an expression, through macros, constants, variables that are set once, and functions of one
    `return`; `bound` gives names a formula. None where it holds something else."""
    return _read(_Reader(source, source, bound or {}), node)


def member_formula(source: Source, owner: Node, field: str) -> Formula | None:
    """The formula of a member of a variable as it is where the variable is named: of `p.n` at the `p` of a call."""
    return _member(_Reader(source, source, {}), owner, f"{source.node_text(owner)}.{field}")


def constant(value: int) -> Formula:
    return Formula(frozenset(), lambda _values: value)


def same(one: Formula, other: Formula) -> bool:
    """Whether two formulas have one value for every value tried of their symbols."""

    def equal(values: Values) -> bool | None:
        a, b = one.value(values), other.value(values)
        return None if a is None and b is None else a == b

    return holds(equal, one.symbols | other.symbols)


def _read(reader: _Reader, node: Node | None) -> Formula | None:
    if node is None or reader.depth > DEEPEST:
        return None
    source = reader.source
    text = re.sub(r"\s+", "", source.node_code(node))
    if text in reader.bound:
        return reader.bound[text]
    match node.type:
        case "number_literal":
            literal = number(text, source.span(node))
            return _constant(literal.value) if isinstance(literal, Const) and literal.value is not None else None
        case "parenthesized_expression" | "initializer_list" | "argument_list" | "parameter_declaration":
            inner = uncommented(node)
            return _read(reader, inner[0]) if len(inner) == 1 else None
        case "identifier" | "type_identifier":  # the second in `dim3 grid(blocks);`, which reads as a function
            return _name(reader, node, text)
        case "binary_expression":
            return _binary(reader, node)
        case "unary_expression":
            operand = _read(reader, node.child_by_field_name("argument"))
            sign = source.node_text(node)[:1]
            signed = {"+": lambda a: a, "-": lambda a: -a, "!": lambda a: int(not a)}
            return _combined([operand], signed[sign]) if sign in signed else None
        case "conditional_expression":
            parts = [_read(reader, node.child_by_field_name(f)) for f in ("condition", "consequence", "alternative")]
            return _combined(parts, lambda c, a, b: a if c else b)
        case "cast_expression":
            kind = node.child_by_field_name("type")
            return _cast(source.node_text(kind) if kind else "", _read(reader, node.child_by_field_name("value")))
        case "call_expression":
            return _call(reader, node, text)
        case "sizeof_expression":
            return _symbol(text)
        case "field_expression" | "subscript_expression":
            return _open(reader, node, text)
    return None


def _constant(value: Number | str | None) -> Formula | None:
    return Formula(frozenset(), lambda _values: value) if isinstance(value, (int, float)) else None


def _symbol(text: str) -> Formula:
    return Formula(frozenset({text}), lambda values: values.get(text))


def _combined(parts: list[Formula | None], operation: Callable[..., Number | None]) -> Formula | None:
    known = [part for part in parts if part is not None]
    if len(known) != len(parts):
        return None

    def value(values: Values) -> Number | None:
        operands = [part.value(values) for part in known]
        return None if None in operands else operation(*operands)

    return Formula(frozenset().union(*(part.symbols for part in known)), value)


def _binary(reader: _Reader, node: Node) -> Formula | None:
    sides = [_read(reader, node.child_by_field_name(side)) for side in ("left", "right")]
    operator = node.child_by_field_name("operator")
    return _combined(sides, lambda a, b: _operation(operator.type if operator is not None else "", a, b))


def _operation(op: str, a: Number, b: Number) -> Number | None:
    if op in ("&&", "||"):
        return int(bool(a and b) if op == "&&" else bool(a or b))
    if isinstance(a, int) and isinstance(b, int):
        return integer_operation(op, a, b)
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            return a / b if b else None
    return None


def _cast(kind: str, value: Formula | None) -> Formula | None:
    floating = re.search(r"\b(?:float|double)\b", kind) is not None
    return _combined([value], lambda a: float(a) if floating else int(a))


def _name(reader: _Reader, node: Node, name: str) -> Formula | None:
    """A variable that is set once to what can be read, in its declaration or after one without a value; what the
    function is given; else the one number that it holds there, whatever it is."""
    source = reader.source
    if macro := _macros(reader.home).get(name):
        inner = _parsed(macro.body) if macro.parameters is None else None
        return _read(_deeper(reader, inner[0]), inner[1]) if inner is not None else None
    found = [d for d in _definitions(source, node).get(name, ()) if d.kind != "declare"]
    changes = _changes(source, node, name)
    if not found and not changes:
        return _outer(reader, name)
    first = found[0] if len(found) == 1 and found[0].kind == "=" and found[0].start < node.start_byte else None
    target = first.value.parent if first is not None and first.value is not None else None
    if first is None or target is None:
        return _last_set(reader, node, name, found)
    assigned = target.type == "assignment_expression"
    value = (
        _read(_deeper(reader, source), first.value) if changes <= assigned and not (assigned and first.sides) else None
    )
    if value is None:
        return _as_set(source, node, name, name)
    written = _declared_type(source, node, name)
    return value if written == "auto" else _cast(written, value)


def _last_set(reader: _Reader, node: Node, name: str, found: Sequence[Definition]) -> Formula | None:
    """A variable that is set several times: what it was set to last before a place, where no `if` decides that."""
    source, symbol = reader.source, symbol_at(reader.source, node, name, (name,))
    last = next((d for d in found if d.kind == "=" and not d.sides and f"{name}#{d.start}" == symbol), None)
    value = _read(_deeper(reader, source), last.value) if last is not None else None
    if value is None:
        return _symbol(symbol) if symbol is not None else None
    written = _declared_type(source, node, name)
    return value if written == "auto" else _cast(written, value)


def _as_set(source: Source, node: Node, text: str, *words: str) -> Formula | None:
    """What an expression of the variables `words` holds at a place, whatever it is."""
    symbol = symbol_at(source, node, text, words)
    return _symbol(symbol) if symbol is not None else None


def _declared_type(source: Source, node: Node, name: str) -> str:
    function = enclosing(node, "function_definition")
    for declaration in descendants(function, "declaration") if function is not None else ():
        kind = declaration.child_by_field_name("type")
        for declarator in declaration.children_by_field_name("declarator"):
            target = declarator.child_by_field_name("declarator") or declarator
            if source.node_text(target) == name and kind is not None:
                return source.node_text(kind)
    return ""


def _outer(reader: _Reader, name: str) -> Formula | None:
    """A parameter of the function or of its template, or a constant of the file."""
    home = reader.home
    outside: list[Node | None] = []
    for declarator in descendants(home.root, "init_declarator"):
        target, declaration = declarator.child_by_field_name("declarator"), declarator.parent
        if target is None or home.node_text(target) != name or declaration is None:
            continue
        if enclosing(declarator, "function_definition") is None:
            qualified = re.search(r"\bconst(?:expr)?\b", home.code_text(declaration.start_byte, declarator.start_byte))
            outside.append(declarator.child_by_field_name("value") if qualified else None)
    if not outside:
        return _symbol(name)
    return _read(_deeper(reader, home), outside[0]) if len(outside) == 1 else None


def _open(reader: _Reader, node: Node, text: str) -> Formula | None:
    """`p.n`, `sizes[0]`, `x.numel()`: what a member was set to once, else what is there, whatever it is."""
    owner = node.child_by_field_name("argument")
    if node.type == "field_expression" and owner is not None and owner.type == "identifier":
        return _member(reader, owner, text)
    return _as_set(reader.source, node, text, *(reader.source.node_text(n) for n in descendants(node, "identifier")))


def _member(reader: _Reader, owner: Node, text: str) -> Formula | None:
    source, name = reader.source, reader.source.node_text(owner)
    function, found = enclosing(owner, "function_definition"), _definitions(source, owner)
    here, whole = found.get(text, []), [d for d in found.get(name, []) if d.kind != "declare"]
    once = here[0] if len(here) == 1 and here[0].kind == "=" and not here[0].sides else None
    if once is not None and function is not None and once.start < owner.start_byte:
        writes = [n for n in written(function) if source.node_text(n) == name]
        others = [
            n for n in writes if re.sub(r"\s+", "", source.node_code(whole_target(n))).split(".")[:2] != text.split(".")
        ]
        earlier = all(d.start < once.start for d in whole)
        if (
            earlier
            and len(writes) == len(others) + 1
            and all(whole_target(n).type == "field_expression" for n in others)
        ):
            value = _read(_deeper(reader, source), once.value)
            if value is not None:
                return value
    return _as_set(source, owner, text, name)


def _call(reader: _Reader, node: Node, text: str) -> Formula | None:
    source, home, name = reader.source, reader.home, called_name(node, reader.source)
    nodes = uncommented(node.child_by_field_name("arguments"))
    if _MEMBER_CALL.fullmatch(text):
        return _open(reader, node, text)
    if macro := _macros(home).get(name):
        inner = _parsed(substitute(macro, [source.node_text(n) for n in nodes]))
        # what the arguments name is read where they stand
        words = {source.node_text(w): _read(reader, w) for n in nodes for w in descendants(n, "identifier")}
        bound = {**reader.bound, **{word: value for word, value in words.items() if value is not None}}
        return _read(replace(_deeper(reader, inner[0]), bound=bound), inner[1]) if inner is not None else None
    arguments = [_read(reader, n) for n in nodes]
    function = node.child_by_field_name("function")
    if len(arguments) == 1 and (name in _ROUNDINGS or (function is not None and function.type == "primitive_type")):
        rounded = _ROUNDINGS.get(name)
        return _combined(arguments, rounded) if rounded is not None else _cast(name or text, arguments[0])
    if name == "static_cast" and function is not None:
        return _cast(source.node_text(function), arguments[0]) if len(arguments) == 1 else None
    defined = functions_of(home).get(name, [])
    if len(defined) == 1:
        return _returned(reader, defined[0], arguments)
    if name in ("min", "max") and not defined:
        return _combined(arguments, min if name == "min" else max)
    return None


def _returned(reader: _Reader, function: Node, arguments: list[Formula | None]) -> Formula | None:
    block = function.child_by_field_name("body")
    statements = uncommented(block)
    if len(statements) != 1 or statements[0].type != "return_statement":
        return None
    home = reader.home
    names = [next(_declared(p), None) for p in parameters_of(function)]
    bound = {home.node_text(n): a for n, a in zip(names, arguments, strict=False) if n is not None and a}
    if len(bound) != len(parameters_of(function)):
        return None
    value = uncommented(statements[0])
    return _read(replace(_deeper(reader, home), bound=bound), value[0]) if value else None


def _declared(parameter: Node) -> Iterator[Node]:
    declarator = parameter.child_by_field_name("declarator")
    return descendants(declarator, "identifier") if declarator is not None else iter(())


def _deeper(reader: _Reader, source: Source) -> _Reader:
    return replace(reader, source=source, depth=reader.depth + 1)


def _changes(source: Source, node: Node, name: str) -> int:
    """How often the function around a node assigns to a variable, counts it, or takes its address."""
    function = enclosing(node, "function_definition")
    return sum(source.node_text(n) == name for n in written(function)) if function is not None else 0


@cache
def _parsed(text: str) -> tuple[Source, Node] | None:
    """An expression by itself, as the value of a declaration."""
    source = Source("macro", encoded(f"auto value = {text};"))
    declared = next(descendants(source.root, "init_declarator"), None)
    value = declared.child_by_field_name("value") if declared is not None else None
    return (source, value) if value is not None and not source.root.has_error else None


def _macros(source: Source) -> dict[str, Macro]:
    """The macros of a file that are defined once."""
    found: dict[str, list[Macro]] = {}
    for node in descendants(source.root, "preproc_def", "preproc_function_def"):
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        listed = node.child_by_field_name("parameters")
        parameters = tuple(source.node_text(n) for n in uncommented(listed)) if listed is not None else None
        if name is not None:
            body = source.node_code(value).strip() if value is not None else ""
            found.setdefault(source.node_text(name), []).append(Macro(source.node_text(name), parameters, body))
    return {name: macros[0] for name, macros in found.items() if len(macros) == 1}


def _definitions(source: Source, node: Node) -> Mapping[str, list[Definition]]:
    function = enclosing(node, "function_definition")
    return read_definitions(source, function) if function is not None else {}
