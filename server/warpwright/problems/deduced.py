"""What template parameters of host functions are: as a call writes them, or as C++ deduces them from what it passes.

Example: in `template <typename T> void run(T *a, int n)`, called as `run(d_a, n)` with `float *d_a`, T is float.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.cuda.functions import declared_type, function_name
from warpwright.cuda.walks import nodes_below
from warpwright.facts.model import Program
from warpwright.syntax.names import template_arguments, unqualified
from warpwright.syntax.nodes import descendants, enclosing, function_declarator, parameters_of, uncommented
from warpwright.syntax.source import Source

_MOST_CALLERS = 4
"""Templates that call each other, followed outwards."""
_NUMBER = re.compile(r"(0[xX][\da-fA-F]+|[\d.]+(?:[eE][+-]?\d+)?)([a-zA-Z]*)")
_SUFFIXES = {"": "int", "u": "unsigned int", "l": "long", "ul": "unsigned long", "ll": "long long",
             "ull": "unsigned long long"}  # fmt: skip
_CASTS = ("static_cast", "reinterpret_cast", "const_cast")


def template_parameters(source: Source, function: Node) -> list[str]:
    """The names of a function's template parameters, in order; none for a plain function."""
    node = function.parent
    parameters = node.child_by_field_name("parameters") if node and node.type == "template_declaration" else None
    listed = []
    for parameter in parameters.named_children if parameters is not None else ():
        found = [*descendants(parameter, "identifier", "type_identifier")]
        if found:
            listed.append(source.plain_text(found[-1]))
    return listed


def host_template_value(
    program: Program, source: Source, function: Node, parameter: str, depth: int = _MOST_CALLERS
) -> str | None:
    """What a template parameter of a host function, or of the class that it is a member of, is.

    The first call tells: one with explicit arguments, `run<float>(...)`, or one that passes a variable or a number of a
    known type for a parameter of that type; of a class, what is declared to be one, `Table<float> table(n)`."""
    listed = template_parameters(source, function)
    own = function_name(source, function)
    if depth == 0:
        return None
    if (of_class := _class_template(source, function)) is not None and parameter in of_class[1]:
        return _of_class(program, *of_class, parameter, depth)
    if parameter not in listed or own is None:
        return None
    place = listed.index(parameter)
    for other in program.sources.values():
        for call in nodes_below(other, other.root, "template_function"):
            called, written = call.child_by_field_name("name"), uncommented(call.child_by_field_name("arguments"))
            if called is not None and other.plain_text(called) == own and len(written) > place:
                return _of_caller(program, other, call, other.plain_text(written[place]), depth)
    for other in program.sources.values():
        for call in nodes_below(other, other.root, "call_expression"):
            called = call.child_by_field_name("function")
            if called is None or unqualified(other.plain_text(called)) != own:
                continue
            for declared, passed in zip(
                parameters_of(function), uncommented(call.child_by_field_name("arguments")), strict=False
            ):
                kind = declared.child_by_field_name("type")
                if kind is None or source.plain_text(kind) != parameter:
                    continue
                found = passed_type(other, enclosing(call, "function_definition"), passed)
                if found is not None:
                    return _of_caller(program, other, call, found, depth)
    return None


def _class_template(source: Source, function: Node) -> tuple[str, list[str]] | None:
    """The name and the parameters of the class template that a function is a member of; None where it is of none."""
    declarator = function_declarator(function)
    named = declarator.child_by_field_name("declarator") if declarator is not None else None
    scope = named.child_by_field_name("scope") if named is not None else None
    if scope is not None and scope.type == "template_type":  # `Table<T>::fill`, below the class
        return unqualified(source.plain_text(scope)), template_parameters(source, function)
    around = enclosing(function, "class_specifier", "struct_specifier")
    name = around.child_by_field_name("name") if around is not None else None
    if around is None or name is None:
        return None
    return source.plain_text(name), template_parameters(source, around)


def _of_class(program: Program, name: str, listed: list[str], parameter: str, depth: int) -> str | None:
    """What a parameter of a class template is where something is declared to be one of its classes."""
    place = listed.index(parameter)
    for source in program.sources.values():
        for used in nodes_below(source, source.root, "template_type"):
            if unqualified(source.plain_text(used)) != name:
                continue
            written = uncommented(used.child_by_field_name("arguments"))
            value = source.plain_text(written[place]) if place < len(written) else _default(program, name, place)
            if value is not None and value not in listed:
                return _of_caller(program, source, used, value, depth)
    return None


def _default(program: Program, name: str, place: int) -> str | None:
    """The default of a class template's parameter, as its definition gives it."""
    for source in program.sources.values():
        for node in nodes_below(source, source.root, "class_specifier", "struct_specifier"):
            named, template = node.child_by_field_name("name"), node.parent
            if named is None or template is None or template.type != "template_declaration":
                continue
            parameters = uncommented(template.child_by_field_name("parameters"))
            if source.plain_text(named) == name and place < len(parameters):
                parameter = parameters[place]
                default = parameter.child_by_field_name("default_type") or parameter.child_by_field_name(
                    "default_value"
                )
                return source.plain_text(default) if default is not None else None
    return None


def _of_caller(program: Program, source: Source, call: Node, value: str, depth: int) -> str:
    """A type as a call gives it; of a template that calls, what that parameter is."""
    caller = enclosing(call, "function_definition")
    if caller is None or value not in template_parameters(source, caller):
        return value
    return host_template_value(program, source, caller, value, depth - 1) or value


def passed_type(source: Source, function: Node | None, node: Node) -> str | None:
    """The type of what is passed, without qualifiers and `*`: `float` for `d_a`, `&a[i]`, `d_a + n`, `v.data()` of a
    `std::vector<float>` and for `1.0f`; None where the text does not tell.
    """
    match node.type:
        case "number_literal":
            return _literal_type(source.plain_text(node))
        case "true" | "false":
            return "bool"
        case "identifier":
            return _variable_type(source, function, source.plain_text(node))
        case "cast_expression" | "compound_literal_expression":
            kind = node.child_by_field_name("type")
            return _plain(source.plain_text(kind)) if kind is not None else None
        case "call_expression":
            return _call_type(source, function, node)
        case "binary_expression":
            inner = node.child_by_field_name("left")
        case "pointer_expression" | "subscript_expression" | "field_expression":
            inner = node.child_by_field_name("argument")
            if node.type == "field_expression" and source.plain_text(node).rpartition(".")[2] not in ("data", "get"):
                return None
        case "parenthesized_expression" if len(uncommented(node)) == 1:
            inner = uncommented(node)[0]
        case _:
            return None
    return passed_type(source, function, inner) if inner is not None else None


def _variable_type(source: Source, function: Node | None, name: str) -> str | None:
    declared = declared_type(source, function, name) if function is not None else None
    if declared is None or declared == "auto":
        return None
    inner = re.search(r"<\s*([\w: ]+?)\s*[,>]", declared)
    return _plain(inner[1] if inner else declared)


def _call_type(source: Source, function: Node | None, call: Node) -> str | None:
    called, arguments = call.child_by_field_name("function"), uncommented(call.child_by_field_name("arguments"))
    if called is None:
        return None
    text = source.plain_text(called)
    if text.partition("<")[0] in _CASTS and (written := template_arguments(text)):
        return _plain(written[0])
    if called.type == "field_expression":
        return passed_type(source, function, called)
    if unqualified(text) == "raw_pointer_cast" and len(arguments) == 1:
        return passed_type(source, function, arguments[0])
    return text if defines_structure(source, text) else None


def defines_structure(source: Source, name: str) -> bool:
    """Whether a file has a struct or a class of a name."""
    structures = nodes_below(source, source.root, "struct_specifier", "class_specifier")
    names = (named for each in structures if (named := each.child_by_field_name("name")) is not None)
    return any(source.plain_text(named) == name for named in names)


def returned_list(program: Program, name: str) -> list[Node]:
    """What stands between the braces that a function of a name consists of returning; none where it does more."""
    for source in program.sources.values():
        for function in nodes_below(source, source.root, "function_definition"):
            statements = uncommented(function.child_by_field_name("body"))
            if function_name(source, function) != name or [s.type for s in statements] != ["return_statement"]:
                continue
            value = next(iter(uncommented(statements[0])), None)
            if value is not None and value.type == "compound_literal_expression":
                value = value.child_by_field_name("value")
            if value is not None and value.type == "initializer_list":
                return uncommented(value)
    return []


def is_first_parameter(member: Node) -> bool:
    """Whether a constructor of the class around takes a member from its first parameter: `Array(int n) : n_(n)`."""
    around = enclosing(member, "class_specifier", "struct_specifier")
    for given in descendants(around, "field_initializer") if around is not None else ():
        parts, constructor = uncommented(given), enclosing(given, "function_definition")
        parameters = parameters_of(constructor) if constructor is not None else []
        if len(parts) == 2 and parts[0].text == member.text and parameters:
            names = [name.text for name in descendants(parameters[0], "identifier")]
            return [value.text for value in uncommented(parts[1])] == names[-1:]
    return False


def _plain(kind: str) -> str:
    return " ".join(re.sub(r"\bconst\b|[*&]", " ", kind).split())


def _literal_type(text: str) -> str | None:
    """
    >>> [_literal_type(text) for text in ("1", "2u", "0x10", "1.5", "1e-3f", "7ULL")]
    ['int', 'unsigned int', 'int', 'double', 'float', 'unsigned long long']
    """
    hexadecimal = text[:2].lower() == "0x"
    if not hexadecimal and re.search(r"[.eE]", text):
        return "float" if text[-1] in "fF" else "double"
    match = _NUMBER.fullmatch(text)
    return _SUFFIXES.get(match[2].lower()) if match else None
