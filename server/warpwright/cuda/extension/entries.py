"""The functions that a torch extension binds, read from the syntax tree.

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward, py::arg("x"), py::arg("eps") = 1e-5); }
TORCH_LIBRARY(ours, m) { m.def("scale(Tensor x, float a) -> Tensor"); }
TORCH_LIBRARY_IMPL(ours, CUDA, m) { m.impl("scale", &scale); }
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tree_sitter import Node

from warpwright.cuda.extension.model import Entry, Parameter
from warpwright.cuda.extension.schema import SchemaError, read_schema
from warpwright.syntax.names import unqualified
from warpwright.syntax.nodes import descendants, enclosing, function_declarator, parameters_of, uncommented
from warpwright.syntax.source import Source

_PYBIND = ("PYBIND11_MODULE",)
_LIBRARY = ("TORCH_LIBRARY", "TORCH_LIBRARY_FRAGMENT")
_IMPLEMENTATION = ("TORCH_LIBRARY_IMPL",)
_WRAPPED = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(\w+)\([^()]*\)(?:[ \t]|\\\r?\n)*((?:STABLE_)?TORCH_LIBRARY\w*|PYBIND11_MODULE)\(",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Registration:
    """One `m.def(...)` or `m.impl(...)`: `text` is the schema or the name at `at`, `key` the dispatch key of the
    implementation, `function` what is bound, where the file defines it, and `bound` how it is written."""

    source: Source
    macro: str
    space: str
    key: str
    method: str
    text: str
    at: Node
    bound: Node | None
    function: Node | None
    arguments: tuple[Node, ...]

    @property
    def name(self) -> str:
        """The operator's name without namespace and overload.

        >>> from warpwright.syntax.source import Source
        >>> text = b'TORCH_LIBRARY(ours, m) { m.def("ours::f.out(Tensor x) -> Tensor"); }'
        >>> [(each.space, each.name, each.returns) for each in registrations(Source("a.cu", text))]
        [('ours', 'f', 'Tensor')]
        """
        return self.text.partition("(")[0].rpartition("::")[2].partition(".")[0].strip()

    @property
    def overload(self) -> str:
        """The name of the overload, "" for the default one."""
        return self.text.partition("(")[0].rpartition("::")[2].partition(".")[2].strip()

    @property
    def is_pybind(self) -> bool:
        return self.macro in _PYBIND

    @property
    def returns(self) -> str | None:
        """What the schema returns; None for a name alone."""
        return self.text.rpartition("->")[2].strip() if "->" in self.text else None


@dataclass(frozen=True, slots=True)
class _Module:
    """One `MACRO(name, ...) { ... }`, what its first argument names, and the second of an implementation."""

    macro: str
    name: str
    key: str
    body: Node


def is_extension(source: Source) -> bool:
    """Whether the text binds functions to Python. Looks at top-level nodes only."""
    return any(True for _ in _modules(source))


def find_entries(source: Source) -> tuple[Entry, ...]:
    """What Python can call, in the order of the bindings; none for a file that is no extension."""
    found: dict[tuple[str, str], Entry] = {}
    implemented: dict[tuple[str, str], Node] = {}
    for each in registrations(source):
        if each.method == "impl" or each.macro in _IMPLEMENTATION:
            if each.method == "impl" and each.function is not None:
                implemented[each.space, each.name] = each.function
        elif each.method == "def" and each.is_pybind:
            entry = _pybind_entry(source, each.text, each.bound, each.function, list(each.arguments))
            found.setdefault(("", entry.name), entry)
        elif each.method == "def":
            entry = _library_entry(source, each.space, each.text, each.at, each.function)
            found.setdefault((each.space, entry.name), entry)
    for key, function in implemented.items():
        if key in found and found[key].function is None:
            found[key] = _defined_by(source, found[key], function)
    return tuple(found.values())


def registrations(source: Source) -> Iterator[Registration]:
    """Every `m.def` and `m.impl` of the file, in the order of the text; `space` is "" in a PYBIND11_MODULE."""
    functions: dict[str, list[Node]] | None = None
    for module in _modules(source):
        functions = _functions(source) if functions is None else functions
        for method, arguments in _calls(source, module.body):
            text = next((text for a in arguments if (text := _string(source, a)) is not None), "")
            if not text or _string(source, arguments[0]) is None:
                continue
            rest = [a for a in arguments[1:] if _string(source, a) is None]
            key = _key(source, rest[0]) if method == "impl" and len(rest) > 1 else ""
            bound = rest[1] if key else next(iter(rest), None)
            function = _function_of(source, bound, functions)
            space = "" if module.macro in _PYBIND else module.name
            yield Registration(
                source,
                module.macro,
                space,
                key or module.key,
                method,
                text,
                arguments[0],
                bound,
                function,
                tuple(arguments),
            )


def _key(source: Source, node: Node) -> str:
    """The dispatch key of `torch::kCUDA`, `c10::DispatchKey::CUDA`; "" of anything else.

    >>> text = b'TORCH_LIBRARY(ours, m) { m.impl("f", torch::kCUDA, &f); m.impl("f", at::DispatchKey::Meta, g); }'
    >>> [each.key for each in registrations(Source("a.cu", text))]
    ['CUDA', 'Meta']
    """
    named = re.fullmatch(r"(?:\w+::)*(?:DispatchKey::|DeviceType::|k)([A-Z]\w*)", source.plain_text(node))
    return named[1] if named else ""


def inline_registrations(source: Source, names: Sequence[str]) -> Iterator[Registration]:
    """The bindings that `load_inline(..., functions=names)` writes for functions of a text."""
    functions = _functions(source)
    for name in names:
        if len(given := functions.get(name, [])) == 1:
            at = given[0]
            yield Registration(source, _PYBIND[0], "", "", "def", name, at, at, at, (at,))


def _modules(source: Source) -> Iterator[_Module]:
    """Anywhere at namespace level: a macro that heads a body parses as a function without a type."""
    wrapped = dict(_WRAPPED.findall(source.text()))
    pending = [source.root]
    while pending:
        for node in pending.pop().named_children:
            if node.type in ("namespace_definition", "linkage_specification", "declaration_list") or (
                node.type.startswith("preproc_if") or node.type == "preproc_else"
            ):
                pending.append(node)
            elif node.type == "function_definition" and node.child_by_field_name("type") is None:
                declarator, body = function_declarator(node), node.child_by_field_name("body")
                name = declarator.child_by_field_name("declarator") if declarator is not None else None
                given = uncommented(declarator.child_by_field_name("parameters")) if declarator is not None else []
                if name is None or body is None or not given:
                    continue
                macro = _plain_macro(wrapped.get(source.plain_text(name), source.plain_text(name)))
                if macro in _PYBIND + _LIBRARY + _IMPLEMENTATION:
                    key = source.plain_text(given[1]) if len(given) > 1 and macro in _IMPLEMENTATION else ""
                    yield _Module(macro, source.plain_text(given[0]), key, body)


def _plain_macro(name: str) -> str:
    """The macro that those of torch's stable ABI, and those that expand a name first, are like.

    >>> [_plain_macro(each) for each in ("STABLE_TORCH_LIBRARY_IMPL", "TORCH_LIBRARY_EXPAND", "TORCH_LIBRARY_FRAGMENT")]
    ['TORCH_LIBRARY_IMPL', 'TORCH_LIBRARY', 'TORCH_LIBRARY_FRAGMENT']
    """
    return name.removeprefix("STABLE_").removesuffix("_EXPAND") if "TORCH_LIBRARY" in name else name


def _functions(source: Source) -> dict[str, list[Node]]:
    found: dict[str, list[Node]] = {}
    for node in descendants(source.root, "function_definition"):
        declarator = function_declarator(node)
        name = declarator.child_by_field_name("declarator") if declarator is not None else None
        if name is not None and node.child_by_field_name("type") is not None:
            found.setdefault(unqualified(source.plain_text(name)), []).append(node)
    return found


def _calls(source: Source, body: Node) -> Iterator[tuple[str, list[Node]]]:
    """(method, arguments) of `m.def(...)` and `m.impl(...)`, chained ones too, in the order of the text."""
    found = []
    for call in descendants(body, "call_expression"):
        function, arguments = call.child_by_field_name("function"), call.child_by_field_name("arguments")
        field = function.child_by_field_name("field") if function is not None else None
        if function is None or function.type != "field_expression" or field is None or arguments is None:
            continue
        if enclosing(call, "lambda_expression") is None and source.plain_text(field) in ("def", "impl"):
            found.append((arguments.start_byte, source.plain_text(field), uncommented(arguments)))
    for _, method, given in sorted(found, key=lambda one: one[0]):
        if given:
            yield method, given


def _string(source: Source, node: Node) -> str | None:
    """The text of a string literal, of several in a row, or of one in a macro of torch's; None for anything else."""
    if node.type == "call_expression":
        function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        inner = uncommented(arguments)
        wraps = function is not None and source.plain_text(function) in (
            "TORCH_SELECTIVE_SCHEMA",
            "TORCH_SELECTIVE_NAME",
        )
        return _string(source, inner[0]) if wraps and len(inner) == 1 else None
    if node.type not in ("string_literal", "raw_string_literal", "concatenated_string"):
        return None
    return "".join(source.node_text(n) for n in descendants(node, "string_content", "raw_string_content"))


def _function_of(source: Source, bound: Node | None, functions: dict[str, list[Node]]) -> Node | None:
    """The definition that `&f`, `ns::f`, `TORCH_FN(f)`, `f<float>`, a cast of it or a lambda is."""
    node = bound
    while node is not None:
        if node.type == "lambda_expression":
            return node
        if node.type in ("identifier", "qualified_identifier", "template_function"):
            named = functions.get(unqualified(source.plain_text(node)), [])
            return named[0] if len(named) == 1 else None
        if node.type == "call_expression":
            inner = uncommented(node.child_by_field_name("arguments"))
        else:
            inner = uncommented(node)
        node = inner[-1] if inner else None
    return None


def _pybind_entry(source: Source, name: str, bound: Node | None, function: Node | None, arguments: list[Node]) -> Entry:
    node = function or bound
    line = source.position(node.start_byte)[0] if node is not None else 1
    parameters = _with_defaults(source, _parameters(source, function), arguments)
    return Entry(name, "", parameters, line, function)


def _library_entry(source: Source, space: str, text: str, at: Node, function: Node | None) -> Entry:
    line = source.position(at.start_byte)[0]
    try:
        name, parameters = read_schema(text)
    except SchemaError:
        name, parameters = text, ()
    entry = Entry(name, space, parameters or (), line)
    if function is None:
        return entry
    if parameters is None:
        entry = replace(entry, parameters=_parameters(source, function))
    return _defined_by(source, entry, function)


def _defined_by(source: Source, entry: Entry, function: Node) -> Entry:
    return replace(entry, function=function, line=source.position(function.start_byte)[0])


def _with_defaults(source: Source, parameters: tuple[Parameter, ...], arguments: list[Node]) -> tuple[Parameter, ...]:
    """`py::arg("eps") = 1e-5` names a parameter and gives its default; the n-th of them is the n-th parameter's."""
    named: list[tuple[str, str | None]] = []
    keyword_from: int | None = None
    for argument in arguments:
        call, default = argument, None
        if argument.type == "assignment_expression":
            left, right = argument.child_by_field_name("left"), argument.child_by_field_name("right")
            if left is None or right is None:
                continue
            call, default = left, source.plain_text(right)
        function = call.child_by_field_name("function") if call.type == "call_expression" else call
        if function is None or call.type not in ("call_expression", "qualified_identifier"):
            continue
        spelled = unqualified(source.plain_text(function))
        if spelled == "kw_only":
            keyword_from = len(named)
        elif spelled == "arg" and (text := uncommented(call.child_by_field_name("arguments"))):
            named.append((_string(source, text[0]) or "", default))
    if not named or len(named) > len(parameters):
        return parameters
    changed = [
        replace(
            parameter,
            name=name or parameter.name,
            default=default if default is not None else parameter.default,
            keyword_only=keyword_from is not None and place >= keyword_from,
        )
        for place, (parameter, (name, default)) in enumerate(zip(parameters, named, strict=False))
    ]
    return (*changed, *parameters[len(changed) :])


def _parameters(source: Source, function: Node | None) -> tuple[Parameter, ...]:
    """The C++ parameters. A default in C++ is none in Python, where pybind11 does not see it."""
    if function is None:
        return ()
    if function.type == "lambda_expression":
        declarator = function.child_by_field_name("declarator")
        listed = uncommented(declarator.child_by_field_name("parameters")) if declarator is not None else []
        nodes = [n for n in listed if n.type in ("parameter_declaration", "optional_parameter_declaration")]
    else:
        nodes = parameters_of(function)
    return tuple(_parameter(source, node, place) for place, node in enumerate(nodes))


def _parameter(source: Source, node: Node, place: int) -> Parameter:
    declarator, kind = node.child_by_field_name("declarator"), node.child_by_field_name("type")
    names = [source.plain_text(n) for n in descendants(declarator, "identifier")] if declarator is not None else []
    if declarator is not None and declarator.type == "identifier":
        names = [source.plain_text(declarator)]
    if kind is None:
        return Parameter(names[-1] if names else f"argument{place}", "", source.plain_text(node))
    return Parameter(names[-1] if names else f"argument{place}", *_kind_of(source, kind))


_PLAIN = {
    "Tensor": "tensor", "int64_t": "int", "int": "int", "long": "int", "size_t": "int", "unsigned": "int",
    "int32_t": "int", "uint32_t": "int", "uint64_t": "int", "SymInt": "int",
    "double": "float", "float": "float", "Scalar": "float", "bool": "bool", "IntArrayRef": "ints",
}  # fmt: skip


def _kind_of(source: Source, node: Node) -> tuple[str, str, bool]:
    """(kind, the type as written, whether None may be passed)."""
    written = " ".join(source.plain_text(node).split())
    inner = node
    while inner.type == "qualified_identifier":
        name = inner.child_by_field_name("name")
        if name is None:
            break
        inner = name
    if inner.type == "template_type":
        head, arguments = inner.child_by_field_name("name"), inner.child_by_field_name("arguments")
        given = uncommented(arguments)
        named = source.plain_text(head) if head is not None else ""
        kind = given[0].child_by_field_name("type") if len(given) == 1 else None
        if named == "optional" and kind is not None:
            return _kind_of(source, kind)[0], written, True
        if named in ("vector", "ArrayRef") and kind is not None and _kind_of(source, kind)[0] == "int":
            return "ints", written, False
        return "", written, False
    return _PLAIN.get(source.plain_text(inner).split("::")[-1], ""), written, False
