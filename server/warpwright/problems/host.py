"""Host code read as expressions: what a launch passes, how large an allocation is, in the host function's symbols.

A local variable with a constant initialiser (`const int n = 1 << 20;`) is a symbol whose value the user chose; macros
and globals are constants unless they are named in `symbolic`, because device code may use them too; everything else is
followed to its definition.

One class, past 400 lines, because the reading of names, calls, sizes and `dim3` call one another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from tree_sitter import Node

from warpwright.cuda.functions import declared_type, function_name
from warpwright.cuda.paths import LaunchPath
from warpwright.cuda.walks import nodes_below
from warpwright.facts.lower import Lowerer
from warpwright.facts.model import Program
from warpwright.facts.preprocessor import Macro
from warpwright.problems.deduced import host_template_value
from warpwright.problems.expressions import (
    FUNCTIONS,
    OPERATORS,
    Binary,
    Call,
    Conditional,
    Expression,
    ExpressionError,
    Name,
    Number,
    Unary,
    Value,
    evaluate,
    names,
    number,
    parse,
    split_arguments,
    substitute,
)
from warpwright.problems.kernel_text import read_unit
from warpwright.problems.types import element_type
from warpwright.syntax.names import unqualified
from warpwright.syntax.nodes import ancestors, descendants, enclosing, parameters_of, uncommented
from warpwright.syntax.source import Source

_CASTS = {"static_cast", "reinterpret_cast", "const_cast", "int", "unsigned", "size_t", "float", "double", "long"}
_COUNTS = {"size", "numel"}
_DEVICE = {"multiProcessorCount": 132, "maxThreadsPerBlock": 1024, "warpSize": 32, "maxThreadsPerMultiProcessor": 2048}
"""What cudaDeviceProp says of an H100 or H200."""
MOST_CALLS = 8
_ONE = Number(1)
Dims = tuple[Expression, Expression, Expression]


Pinned = Mapping[tuple[int, str], Expression]
"""What variables are taken to be: by how many calls from the launch outwards the function is, and the name."""


@dataclass(frozen=True, slots=True)
class Way:
    """The path on which a launch is reached, what variables are on it, and how many calls outwards a reader is."""

    path: LaunchPath
    pinned: Pinned
    depth: int = 0


class HostExpressions:
    """Expressions of one host function of one file. `defaults` collects the values of the symbols met. Parameters have
    the values that the first call passes which can be followed, or with a `way` those of its path."""

    def __init__(
        self,
        program: Program,
        source: Source,
        function: Node | None,
        symbolic: frozenset[str] = frozenset(),
        active: list[str] | None = None,
        way: Way | None = None,
    ) -> None:
        self.program = program
        self.sources = tuple(program.sources.values())
        self.source = source
        self.function = function
        self.symbolic = symbolic
        self.way = way
        self.defaults: dict[str, Value] = {}
        self.assumed: list[str] = []
        self.called_with: dict[str, str] = {}  # a caller's variable -> the parameter that it is passed as
        self._active: list[str] = [] if active is None else active  # what is being followed

    def text(self, node: Node) -> str:
        return self.source.plain_text(node)

    def resolve(self, node: Node) -> Expression:
        """An expression node in symbols and numbers. Raises ExpressionError."""
        match node.type:
            case "number_literal":
                return Number(number(self.text(node)))
            case "true" | "false":
                return Number(int(node.type == "true"))
            case "identifier":
                return self.resolve_name(self.text(node))
            case "field_expression" | "subscript_expression":
                return self.resolve_name(re.sub(r"\s", "", self._at_index(node)).replace("->", "."))
            case "parenthesized_expression":
                return self.resolve(uncommented(node)[0])
            case "cast_expression":
                return self.resolve(_field(node, "value"))
            case "sizeof_expression":
                return substitute(Binary("*", self._elements_of(node), Number(self._sizeof(node))), {})
            case "unary_expression" if self.text(node)[:1] in ("-", "+", "!"):
                operand = self.resolve(_field(node, "argument"))
                return substitute(operand if self.text(node)[0] == "+" else Unary(self.text(node)[0], operand), {})
            case "binary_expression":
                operator = self.text(_field(node, "operator"))
                if operator not in OPERATORS:
                    raise ExpressionError(f"`{self.text(node)}` uses `{operator}`")
                left, right = self.resolve(_field(node, "left")), self.resolve(_field(node, "right"))
                return substitute(Binary(operator, left, right), {})
            case "conditional_expression" if (default := self._without_arguments(node)) is not None:
                return self.resolve(default)
            case "conditional_expression":
                condition, then, otherwise = (
                    self.resolve(_field(node, f)) for f in ("condition", "consequence", "alternative")
                )
                return substitute(Conditional(condition, then, otherwise), {})
            case "call_expression":
                return self._call(node)
            case "argument_list" | "initializer_list" if len(uncommented(node)) == 1:
                return self.resolve(uncommented(node)[0])
        raise ExpressionError(f"`{self.text(node)}` cannot be followed")

    def resolve_name(self, name: str) -> Expression:
        """A variable, macro or `block.x`. Raises ExpressionError."""
        if self.way is not None and (pinned := self.way.pinned.get((self.way.depth, name))) is not None:
            return pinned
        if name in self._active:
            raise ExpressionError(f"`{name}` is defined by itself")
        self._active.append(name)
        try:
            variable, _, component = name.rpartition(".")
            if variable and (known := _DEVICE.get(component)) is not None:
                self.assumed.append(f"{component} of the device is taken to be {known}")
                return Number(known)
            if variable and component in ("x", "y", "z") and self._dims_declared(variable):
                return self.resolve_dims_of(variable)["xyz".index(component)]
            if variable or "[" in name:
                return self._part(name)
            if (local := self._local(name)) is not None:
                return local
            constant = self.constant(name)
            if name in self.symbolic and isinstance(constant, Number):
                self.defaults.setdefault(name, constant.value)
                return Name(name)
            return constant
        finally:
            self._active.pop()

    def resolve_text(self, text: str) -> Expression:
        """Like `resolve`, for a text that the grammar did not read as an expression. Raises ExpressionError."""
        tree = self._expanded(parse(text))
        return substitute(tree, {name: self.resolve_name(name) for name in names(tree)})

    # Values ---------------------------------------------------------------------------------------------------------

    def _at_index(self, node: Node) -> str:
        """The text of a part of a variable, of `sizes[i]` with the number that i is on the way to the launch."""
        indices = node.child_by_field_name("indices")
        if self.way is None or indices is None or len(indices.named_children) != 1:
            return self.text(node)
        with suppress(ExpressionError):
            index = self.resolve(indices.named_children[0])
            if isinstance(index, Number):
                return f"{self.text(_field(node, 'argument'))}[{index.value}]"
        return self.text(node)

    def _without_arguments(self, node: Node) -> Node | None:
        """In `argc > 1 ? atoi(argv[1]) : 1024`, what holds without arguments."""
        if "argc" not in self.text(_field(node, "condition")):
            return None
        sides = [_field(node, "consequence"), _field(node, "alternative")]
        return next((side for side in sides if "argv" not in self.text(side)), None)

    def _part(self, name: str) -> Expression:
        """`p.n` or `sizes[0]`: what is assigned to it first, else what stands at its place between the braces of the
        declaration; a symbol of that name where neither can be followed, and it is one of the host code's variables."""
        variable = re.split(r"[.\[]", name)[0]
        scopes = [s for s in (self.function, self.source.root) if s is not None]
        for scope in scopes:
            for assignment in nodes_below(self.source, scope, "assignment_expression"):
                left = re.sub(r"\s", "", self.text(_field(assignment, "left"))).replace("->", ".")
                if left == name and self.text(_field(assignment, "operator")) == "=":
                    return self._symbol(name, _field(assignment, "right"))
        place = re.fullmatch(r"\w+\[(\d+)\]", name)
        for scope in scopes:
            for declarator, value in self.declarations(scope):
                if self.text(declarator) != variable:
                    continue
                if place and value is not None and value.type == "initializer_list":
                    listed = value.named_children
                    if int(place[1]) < len(listed):
                        return self._symbol(name, listed[int(place[1])])
                return Name(symbol_name(name))
        if self.function is not None and any(
            self.text(d) == variable
            for parameter in parameters_of(self.function)
            for d in descendants(parameter, "identifier")
        ):
            return Name(symbol_name(name))
        raise ExpressionError(f"`{name}` cannot be followed")

    def _symbol(self, name: str, value: Node) -> Expression:
        """A variable by its value: a symbol where that is a constant, which the user chose, or cannot be followed."""
        try:
            expression = self._initial(value)
        except ExpressionError:
            return Name(symbol_name(name))
        if names(expression):
            return expression
        self.defaults.setdefault(symbol_name(name), evaluate(expression, {}))
        return Name(symbol_name(name))

    def _local(self, name: str) -> Expression | None:
        """A local variable or parameter of the host function; None where it has none of that name."""
        if self.function is None:
            return None
        for declarator, value in self.declarations(self.function):
            if self.text(declarator) != name:
                continue
            first = value or self._first_assignment(name)
            if first is None:
                return Name(name)
            return self._stepped(name, self._symbol(name, first))
        for place, parameter in enumerate(parameters_of(self.function)):
            if any(self.text(d) == name for d in descendants(parameter, "identifier")):
                self._take_from_caller(name, place)
                return Name(name)
        return None

    def _stepped(self, name: str, value: Expression) -> Expression:
        """A variable's value after `total *= n; total /= 2; total++;`, where each of these is done once, whatever
        happens; else the value that it is given first."""
        body = self.function.child_by_field_name("body") if self.function is not None else None
        steps: list[tuple[str, Expression]] = []
        changes = nodes_below(self.source, body, "assignment_expression", "update_expression") if body else ()
        for change in changes:
            operator, by_one = self.text(_field(change, "operator")), change.type == "update_expression"
            target = _field(change, "argument" if by_one else "left")
            if not (by_one or operator in _STEPS) or self.text(target) != name:
                continue
            statement = change.parent
            if statement is None or statement.type != "expression_statement" or statement.parent != body:
                return value
            steps.append((operator[0], _ONE if by_one else self.resolve(_field(change, "right"))))
        for operator, operand in steps:
            value = Binary(operator, value, operand)
        return substitute(value, {})

    def _take_from_caller(self, name: str, place: int) -> None:
        """A parameter's value where the first call of the host function that can be followed passes it."""
        if self.way is not None:
            passed_here = self.way.path.argument(self.way.depth, place)
            if passed_here is not None and name not in self.defaults:
                node, depth = passed_here
                source, function = self.way.path.scope(depth)
                outer = HostExpressions(self.program, source, function, way=replace(self.way, depth=depth))
                with suppress(ExpressionError):
                    self._take(name, outer, node)
            return
        own = function_name(self.source, self.function) if self.function is not None else None
        if not own or name in self.defaults or len(self._active) > MOST_CALLS or f"{own}()" in self._active:
            return
        for source in self.sources:
            for call in nodes_below(source, source.root, "call_expression"):
                function, arguments = call.child_by_field_name("function"), call.child_by_field_name("arguments")
                if function is None or arguments is None or len(arguments.named_children) <= place:
                    continue
                if unqualified(source.plain_text(function)) != own:
                    continue
                caller = HostExpressions(self.program, source, enclosing(call, "function_definition"))
                # A name means another variable there, which may well have the same one.
                caller._active = [*(each for each in self._active if each.endswith("()")), f"{own}()"]
                try:
                    self._take(name, caller, uncommented(arguments)[place])
                    return
                except ExpressionError:
                    continue

    def _take(self, name: str, caller: HostExpressions, argument: Node) -> None:
        """A parameter's value as a caller passes it. Raises ExpressionError where that has none."""
        passed = caller.resolve(argument)
        if isinstance(passed, Name):
            self.called_with.setdefault(passed.name, name)
        self.defaults[name] = evaluate(passed, caller.defaults)

    def _initial(self, value: Node) -> Expression:
        return self.resolve_text(_inside(self.text(value))) if value.type == "parameter_list" else self.resolve(value)

    def constant(self, name: str) -> Expression:
        """A macro, an enumerator or a global with a constant value. Raises ExpressionError."""
        if name == "warpSize":
            return Number(32)
        macro = self._macro(name)
        if macro is not None and macro.parameters is None:
            return HostExpressions(self.program, self.source, None, self.symbolic, self._active).resolve_text(
                macro.body
            )
        for source in self.sources:
            for node in nodes_below(source, source.root, "init_declarator", "enumerator"):
                named = node.child_by_field_name("name") or node.child_by_field_name("declarator")
                value = node.child_by_field_name("value")
                if named is None or value is None or source.plain_text(named) != name:
                    continue
                if node.type == "init_declarator" and any(a.type == "function_definition" for a in ancestors(node)):
                    continue
                return HostExpressions(self.program, source, None, self.symbolic, self._active).resolve(value)
        if self._is_global(name):
            first = self._first_assignment(name)
            return self._symbol(name, first) if first is not None else Name(name)
        raise ExpressionError(f"`{name}` has no known value")

    def _is_global(self, name: str) -> bool:
        """Whether it is a variable of the file that host code gives a value."""
        return any(
            self.text(declarator) == name
            for child in self.source.root.named_children
            if child.type == "declaration"
            for declarator, _ in self.declarations(child)
        )

    def _call(self, node: Node) -> Expression:
        function = _field(node, "function")
        arguments = _field(node, "arguments").named_children
        if function.type == "field_expression":
            return self._count(node, function)
        called = unqualified(self.text(function))
        if called in _CASTS and len(arguments) == 1:
            return self.resolve(arguments[0])
        called = {"ceilf": "ceil", "floorf": "floor"}.get(called, called)
        if called in FUNCTIONS:
            return substitute(Call(called, tuple(self.resolve(a) for a in arguments)), {})
        return self._applied(called, [self.resolve(a) for a in arguments])

    def _applied(self, called: str, arguments: list[Expression]) -> Expression:
        """A call of a function-like macro, or of a function that only returns an expression."""
        if called in self._active:
            raise ExpressionError(f"`{called}` calls itself")
        macro = self._macro(called)
        if macro is not None and macro.parameters is not None:
            return self._bound(called, macro.parameters, macro.body, arguments)
        for source in self.sources:
            for definition in nodes_below(source, source.root, "function_definition"):
                body = _body(source, definition, called)
                if body is not None and len(body[0]) == len(arguments):
                    return self._bound(called, *body, arguments)
        raise ExpressionError(f"`{called}` cannot be followed")

    def _bound(self, called: str, parameters: Sequence[str], body: str, arguments: Sequence[Expression]) -> Expression:
        """What a call is, with its arguments in place."""
        if len(parameters) != len(arguments):
            raise ExpressionError(f"`{called}` is called with {len(arguments)} arguments")
        self._active.append(called)
        try:
            tree = self._expanded(parse(body))
            bound = dict(zip(parameters, arguments, strict=True))
            others = {n: self.constant(n) for n in names(tree) - bound.keys()}
            return substitute(tree, {**others, **bound})
        finally:
            self._active.pop()

    def _macro(self, name: str) -> Macro | None:
        """The macro of that name as the preprocessor has it, those of the compiler's command line included."""
        unit, _ = read_unit(self.program)
        return unit.macros.get(name)

    def _expanded(self, tree: Expression) -> Expression:
        """The expression with the calls of the program's own functions and macros written out."""
        match tree:
            case Unary(operator, operand):
                return Unary(operator, self._expanded(operand))
            case Binary(operator, left, right):
                return Binary(operator, self._expanded(left), self._expanded(right))
            case Conditional(condition, then, otherwise):
                return Conditional(self._expanded(condition), self._expanded(then), self._expanded(otherwise))
            case Call(function, arguments):
                expanded = [self._expanded(a) for a in arguments]
                return Call(function, tuple(expanded)) if function in FUNCTIONS else self._applied(function, expanded)
            case _:
                return tree

    def _count(self, node: Node, function: Node) -> Expression:
        """`v.size()`: the count that the container was made with."""
        method = self.text(_field(function, "field"))
        if method in _COUNTS and self.function is not None:
            container = self.text(_field(function, "argument"))
            for declarator, value in self.declarations(self.function):
                if self.text(declarator) == container and value is not None:
                    return self.container_count(value)
        raise ExpressionError(f"`{self.text(node)}` cannot be followed")

    def container_count(self, value: Node) -> Expression:
        """The element count in `v(n)`, `v(n, 0.0f)` or `v = std::vector<T>(n)`. Raises ExpressionError."""
        if value.type == "parameter_list":
            return self.resolve_text(split_arguments(_inside(self.text(value)))[0])
        if value.type == "call_expression":
            value = _field(value, "arguments")
        if value.type == "argument_list" and value.named_children:
            return self.resolve(uncommented(value)[0])
        raise ExpressionError(f"`{self.text(value)}` cannot be followed")

    def _first_assignment(self, name: str) -> Node | None:
        if self.function is None:
            return None
        for assignment in nodes_below(self.source, self.function, "assignment_expression"):
            if self.text(_field(assignment, "left")) == name and self.text(_field(assignment, "operator")) == "=":
                return _field(assignment, "right")
        return None

    def _elements_of(self, node: Node) -> Expression:
        """How many elements `sizeof` counts: those of an array that it names, else one. Raises ExpressionError."""
        described = node.child_by_field_name("type") or node.child_by_field_name("value")
        extents = self._extents(self.text(described).strip("() ")) if described is not None else []
        count: Expression = Number(1)
        for extent in extents:
            if extent is None:
                raise ExpressionError(f"`{self.text(node)}` is of an array whose text has no length")
            count = Binary("*", count, self.resolve(extent))
        return count

    def _extents(self, name: str) -> list[Node | None]:
        """The extents that a local variable was declared with: none where it is no array."""
        for declaration in nodes_below(self.source, self.function, "declaration") if self.function is not None else ():
            for outer in declaration.children_by_field_name("declarator"):
                extents: list[Node | None] = []
                at = _field(outer, "declarator") if outer.type == "init_declarator" else outer
                while at.type == "array_declarator":
                    extents.insert(0, at.child_by_field_name("size"))
                    at = _field(at, "declarator")
                if self.text(at) == name:
                    return extents
        return []

    def _sizeof(self, node: Node) -> int:
        described = node.child_by_field_name("type") or node.child_by_field_name("value")
        text = _inside(self.text(described)) if described else ""
        if described is not None and "*" in self.text(described) and not text.startswith("*"):
            return 8
        element, declared = element_type(text), None
        if element is None:
            declared = self.declared_type(text.strip("()* ").split("[")[0])
            if self.function is not None:
                plain = " ".join(re.sub(r"\bconst\b|[*&]", " ", declared or text).split())
                declared = host_template_value(self.program, self.source, self.function, plain) or declared
            element = element_type(declared) if declared else None
        if element is not None:
            return element.bytes
        unit, _ = read_unit(self.program)
        kind = Lowerer(unit, self.source).type_of_text(declared or text)
        if kind is None or kind.size is None or kind.assumed:
            raise ExpressionError(f"`{self.text(node)}` is of an unknown type")
        return kind.size

    # Declarations ---------------------------------------------------------------------------------------------------

    def declarations(self, scope: Node) -> Iterator[tuple[Node, Node | None]]:
        """(name, initial value) of each variable below `scope`; the value of `T x(a, b)` is its list."""
        for declaration in nodes_below(self.source, scope, "declaration"):
            for outer in declaration.children_by_field_name("declarator"):
                declarator, value = outer, None
                if declarator.type == "init_declarator":
                    value = declarator.child_by_field_name("value")
                    declarator = _field(declarator, "declarator")
                elif declarator.type == "function_declarator":  # `dim3 block(TILE, ROWS)` reads like a function
                    value = declarator.child_by_field_name("parameters")
                    declarator = _field(declarator, "declarator")
                yield next(descendants(declarator, "identifier"), declarator), value

    def declared_type(self, name: str) -> str | None:
        """The text of the type that a local variable or parameter was declared with."""
        return declared_type(self.source, self.function, name) if self.function is not None else None

    # Launch shapes --------------------------------------------------------------------------------------------------

    def resolve_dims(self, node: Node) -> Dims:
        """A grid or block: a number, dim3(...), or a dim3 variable. Raises ExpressionError."""
        if node.type == "identifier" and self._dims_declared(self.text(node)):
            return self.resolve_dims_of(self.text(node))
        if node.type == "call_expression" and self.text(_field(node, "function")) == "dim3":
            return self._dims(self.resolve(a) for a in _field(node, "arguments").named_children)
        if node.type == "compound_literal_expression":
            return self._dims(self.resolve(a) for a in _field(node, "value").named_children)
        if node.type == "initializer_list":
            return self._dims(self.resolve(a) for a in node.named_children)
        return self.resolve(node), _ONE, _ONE

    def _dims_declared(self, name: str) -> bool:
        return "dim3" in (self.declared_type(name) or "")

    def resolve_dims_of(self, name: str) -> Dims:
        """The three parts of a dim3 variable, its later `name.x = ...` included. Raises ExpressionError."""
        dims: list[Expression] | None = None
        for scope in (self.function, self.source.root):
            if scope is None or dims is not None:
                continue
            for declarator, value in self.declarations(scope):
                if self.text(declarator) == name:
                    dims = list(self._declared_dims(value))
        if dims is None:
            raise ExpressionError(f"`{name}` has no known value")
        for assignment in nodes_below(self.source, self.function, "assignment_expression") if self.function else ():
            left = re.sub(r"\s", "", self.text(_field(assignment, "left")))
            if left == name:
                dims = list(self.resolve_dims(_field(assignment, "right")))
            elif left in (f"{name}.x", f"{name}.y", f"{name}.z"):
                dims["xyz".index(left[-1])] = self.resolve(_field(assignment, "right"))
        return dims[0], dims[1], dims[2]

    def _declared_dims(self, value: Node | None) -> Dims:
        if value is None:
            return _ONE, _ONE, _ONE
        if value.type == "parameter_list":
            return self._dims(self.resolve_text(part) for part in split_arguments(_inside(self.text(value))))
        if value.type == "argument_list":
            return self._dims(self.resolve(a) for a in value.named_children)
        return self.resolve_dims(value)

    @staticmethod
    def _dims(parts: Iterable[Expression]) -> Dims:
        x, y, z = [*parts, _ONE, _ONE, _ONE][:3]
        return x, y, z


_STEPS = frozenset({"+=", "-=", "*=", "/="})
"""Assignments that step a variable by a value."""


def symbol_name(name: str) -> str:
    """A variable's part as a symbol.

    >>> symbol_name("p.sizes[0]")
    'p_sizes_0'
    """
    return re.sub(r"\W+", "_", name).strip("_")


def _field(node: Node, name: str) -> Node:
    child = node.child_by_field_name(name)
    if child is None:
        raise ExpressionError("the host code around the launch is not complete")
    return child


def _body(source: Source, definition: Node, name: str) -> tuple[list[str], str] | None:
    """Parameter names and the expression of a function that only returns one."""
    body = definition.child_by_field_name("body")
    if body is None or function_name(source, definition) != name or len(body.named_children) != 1:
        return None
    statement = uncommented(body)[0]
    if statement.type != "return_statement" or not statement.named_children:
        return None
    parameters_text = [source.plain_text([*descendants(p, "identifier")][-1]) for p in parameters_of(definition)]
    return parameters_text, source.plain_text(uncommented(statement)[0])


def _inside(text: str) -> str:
    text = text.strip()
    return text[1:-1].strip() if text[:1] in ("(", "{") and text[-1:] in (")", "}") else text
