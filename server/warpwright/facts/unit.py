"""The names of a translation unit: macros, types, constants, functions, and which preprocessor branches are live."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tree_sitter import Node

from warpwright.cuda.functions import function_name
from warpwright.facts.ir import Expr
from warpwright.facts.model import ASSUMED_EXTENT, Assumptions
from warpwright.facts.preprocessor import Macro, condition
from warpwright.facts.steps import FILE_STEPS, LINE_STEPS, Steps
from warpwright.facts.types import CType
from warpwright.syntax.nodes import descendants, function_declarator
from warpwright.syntax.source import Source, Span

log = logging.getLogger(__name__)

IncludeReader = Callable[[str, str], Source | None]
"""(path of the including file, the name: `a.h`, or `<a.h>` as it is written) -> the included file, or None where it is
not to be had."""

MAX_INCLUDE_DEPTH = 16
_PREDEFINED = {
    "__CUDACC__": "1", "__NVCC__": "1", "__cplusplus": "201703L", "__linux__": "1", "__x86_64__": "1", "__GNUC__": "13",
    "__CUDACC_VER_MAJOR__": "13", "__CUDACC_VER_MINOR__": "0", "CUDART_VERSION": "13000",
}  # fmt: skip
"""Macros of nvcc from CUDA 13 on Linux, where the flags say nothing else (nvcc's manual, "Compilation Macros")."""
CONDITIONALS = {"preproc_if", "preproc_ifdef", "preproc_elif", "preproc_elifdef", "preproc_else"}
_NOT_LINE_ENDS = re.compile(rb"[^\r\n]")
_INCLUDED = ("string_literal", "system_lib_string")
_TYPE_SPECIFIERS = ("struct_specifier", "class_specifier", "union_specifier", "enum_specifier")
_CONTAINERS = {"namespace_definition", "linkage_specification", "declaration_list", "translation_unit", "ERROR"}


class TemplateParameter(NamedTuple):
    """One parameter of a template; `default` is its text."""

    name: str
    is_type: bool
    default: str | None


Template = tuple[TemplateParameter, ...]


@dataclass(frozen=True, slots=True)
class FunctionText:
    """A function definition in the text."""

    name: str
    node: Node
    source: Source
    template: Template = ()
    whole: Node | None = None  # the template_declaration around it
    owner: str = ""  # the struct that a member function belongs to

    @property
    def is_kernel(self) -> bool:
        declarator = self.node.child_by_field_name("declarator")
        end = declarator.end_byte if declarator is not None else self.node.end_byte
        return b"__global__" in self.source.code[self.node.start_byte : end]

    @property
    def outer(self) -> Node:
        return self.whole if self.whole is not None else self.node


@dataclass(frozen=True, slots=True)
class VariableText:
    """A variable of the file; `space` is "constant", "global", "shared" or "host"."""

    name: str
    declaration: Node
    declarator: Node
    value: Node | None
    source: Source
    space: str
    is_const: bool


@dataclass(frozen=True, slots=True)
class TypeText:
    """A typedef, alias, struct or enum by name."""

    name: str
    node: Node
    source: Source
    template: Template = ()


@dataclass(slots=True)
class Unit:
    """Everything that names refer to, over the file and its quoted includes. Later definitions win."""

    main: Source
    assume: Assumptions
    step_share: int = 0  # of the file's steps, for each kernel
    step_budget: int = 0  # steps of the interpreter that one block shape of the kernel that is read may take
    extent: int = ASSUMED_EXTENT  # what a run-time number that the text does not give is taken to be
    supposes: bool = False  # that a host function's one size, which the text does not give, is the extent
    sources: dict[str, Source] = field(default_factory=lambda: {})
    macros: dict[str, Macro] = field(default_factory=lambda: {})
    functions: dict[str, list[FunctionText]] = field(default_factory=lambda: {})
    methods: dict[str, list[FunctionText]] = field(default_factory=lambda: {})  # by their own name
    variables: dict[str, VariableText] = field(default_factory=lambda: {})
    types: dict[str, TypeText] = field(default_factory=lambda: {})
    specializations: dict[str, list[TypeText]] = field(default_factory=lambda: {})  # by the template's own name
    member_constants: dict[Hashable, Expr] = field(default_factory=lambda: {})  # by struct, bindings and name
    resolved_types: dict[str, CType] = field(default_factory=lambda: {})
    variable_types: dict[str, CType] = field(default_factory=lambda: {})  # of device variables that were asked for
    enumerators: dict[str, tuple[Node | None, int, Source]] = field(default_factory=lambda: {})
    include: IncludeReader = lambda _from_path, _name: None
    unread_includes: list[tuple[Span, str]] = field(default_factory=list[tuple[Span, str]])
    finished: list[Source] = field(default_factory=lambda: [])  # in the order in which their texts end
    skipped: dict[str, dict[int, int]] = field(default_factory=lambda: {})  # by path: what is not live, start to end
    judged: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])  # the #if and #elif that were looked at
    steps: Steps = field(default_factory=lambda: Steps(FILE_STEPS))  # what is being read of it may take

    @property
    def lines(self) -> int:
        return sum(len(source.line_starts) for source in self.sources.values())

    def reading(self, steps: Steps) -> Unit:
        """The same names for a part of the analysis with a share of its own: what it learns of types on the way, or
        fails to, tells the others nothing."""
        return replace(
            self,
            steps=steps,
            macros=dict(self.macros),
            member_constants={},
            resolved_types={},
            variable_types={},
        )

    def kernels(self) -> Iterator[FunctionText]:
        for overloads in self.functions.values():
            yield from (f for f in overloads if f.is_kernel)


def collect(main: Source, include: IncludeReader, assume: Assumptions) -> Unit:
    """Read the unit's names, following quoted includes in text order; each file once.

    The files that the compiler is told to read first are looked for where they are named, then as a quoted include is.
    """
    unit = Unit(main, assume, include=include)
    for name, body in {**_PREDEFINED, **assume.defines}.items():
        if body is not None:
            unit.macros[name] = Macro(name, None, body)
    arch = re.search(r"(\d+)", assume.arch)
    unit.macros["__CUDA_ARCH__"] = Macro("__CUDA_ARCH__", None, f"{arch.group(1) if arch else '90'}0")
    unit.sources[main.path] = main  # the first of them
    for path in assume.included:
        found = include(main.path, path) or include(main.path, Path(path).name)
        if found is not None and found.path not in unit.sources:
            _collect_source(unit, found, include, 1)
    _collect_source(unit, main, include, 0)
    return unit


def _collect_source(unit: Unit, source: Source, include: IncludeReader, depth: int) -> None:
    unit.sources[source.path] = source
    unit.steps.left += LINE_STEPS * len(source.line_starts)
    if source.is_tangled:
        log.warning("%s: nests too deeply, or is no program: nothing is read of it", source.path)
        return
    _collect_children(unit, source, source.closed_root, include, depth)
    unit.finished.append(source)


def _collect_children(unit: Unit, source: Source, node: Node, include: IncludeReader, depth: int) -> None:
    for child in live_children(unit, source, node):
        kind = child.type
        if kind == "preproc_include":
            path = child.child_by_field_name("path")
            if path is not None and path.type in _INCLUDED and depth < MAX_INCLUDE_DEPTH:
                found = include(source.path, _file_name(source.node_text(path)))
                name = source.node_text(path)
                if found is None:
                    unit.unread_includes.append((source.span(path), name.strip('"<>')))
                if found is not None and found.path not in unit.sources:
                    _collect_source(unit, found, include, depth + 1)
        elif kind in ("preproc_def", "preproc_function_def"):
            define(unit, source, child)
        elif kind == "preproc_call":
            directive = source.node_code(child)
            match = re.match(r"#\s*undef\s+(\w+)", directive)
            if match:
                unit.macros.pop(match.group(1), None)
        elif kind in _CONTAINERS:
            body = child.child_by_field_name("body")
            listed = (
                body is not None and body.type == "declaration_list"
            )  # else, as in `extern "C" void f() {}`, one item
            try:
                _collect_children(unit, source, body if body is not None and listed else child, include, depth)
            except RecursionError:
                log.warning("%s: a part nests too deeply: nothing is read of it", source.path)
        elif kind == "template_declaration":
            _collect_template(unit, source, child)
        elif kind == "function_definition":
            _add_function(unit, source, child, (), None)
        elif kind == "declaration":
            _add_declaration(unit, source, child)
        elif kind in _TYPE_SPECIFIERS:
            _add_type(unit, source, child, ())
        elif kind in ("type_definition", "alias_declaration"):
            _add_alias(unit, source, child)


def define(unit: Unit, source: Source, node: Node) -> None:
    """Take a #define into the unit."""
    macro = read_macro(source, node)
    if macro is not None:
        unit.macros[macro.name] = macro


def read_macro(source: Source, node: Node) -> Macro | None:
    """The macro of a #define."""
    name_node = node.child_by_field_name("name")
    if name_node is None:
        return None
    value = node.child_by_field_name("value")
    body = source.plain_text(value).replace("\\\n", " ").strip() if value is not None else ""
    parameters = node.child_by_field_name("parameters")
    names = None
    if parameters is not None:
        names = tuple(
            source.node_code(p) for p in parameters.children if p.type in ("identifier", "...", "variadic_parameter")
        )
    return Macro(source.node_code(name_node), names, body)


def template_parameters(source: Source, node: Node) -> Template:
    """The parameters of a template_declaration."""
    parameters: list[TemplateParameter] = []
    names = node.child_by_field_name("parameters")
    for parameter in names.named_children if names is not None else []:
        is_type = "type_parameter" in parameter.type or "template_template" in parameter.type
        default = parameter.child_by_field_name("default_type") or parameter.child_by_field_name("default_value")
        identifier = next(
            descendants(
                parameter.child_by_field_name("declarator") or parameter.child_by_field_name("name") or parameter,
                "identifier" if not is_type else "type_identifier",
            ),
            None,
        )
        if identifier is not None:
            text = source.plain_text(default) if default is not None else None
            parameters.append(TemplateParameter(source.node_code(identifier), is_type, text))
    return tuple(parameters)


def _collect_template(unit: Unit, source: Source, node: Node) -> None:
    parameters = template_parameters(source, node)
    for child in node.named_children:
        if child.type == "function_definition":
            _add_function(unit, source, child, parameters, node)
        elif child.type in ("struct_specifier", "class_specifier"):
            _add_type(unit, source, child, parameters)
        elif child.type == "alias_declaration":
            _add_alias(unit, source, child, parameters)


def _add_function(unit: Unit, source: Source, node: Node, template: Template, whole: Node | None) -> None:
    name = function_name(source, node)
    declarator = function_declarator(node)
    label = declarator.child_by_field_name("declarator") if declarator is not None else None
    scope = label.child_by_field_name("scope") if label is not None else None
    owner = source.node_code(scope).split("<")[0].strip() if scope is not None else ""
    if name and owner and owner in unit.types:  # a member function that is defined outside of its struct
        unit.methods.setdefault(name, []).append(FunctionText(name, node, source, (), whole, owner))
    elif name:
        unit.functions.setdefault(name, []).append(FunctionText(name, node, source, template, whole))


def _add_declaration(unit: Unit, source: Source, node: Node) -> None:
    kind = node.child_by_field_name("type")
    if kind is not None and kind.type in _TYPE_SPECIFIERS:
        _add_type(unit, source, kind, ())
    head = source.code_text(node.start_byte, kind.end_byte if kind is not None else node.end_byte)
    prefix = source.code_text(node.start_byte, node.end_byte).split("=")[0]
    space = "host"
    for word, name in (
        ("__constant__", "constant"),
        ("__shared__", "shared"),
        ("__device__", "global"),
        ("__managed__", "global"),
    ):
        if word in prefix:
            space = name
            break
    is_const = "const" in head.split() or "constexpr" in head
    for declarator in node.children_by_field_name("declarator"):
        value = declarator.child_by_field_name("value") if declarator.type == "init_declarator" else None
        identifier = next(descendants(declarator, "identifier"), None)
        if identifier is not None and declarator.type != "function_declarator":
            name = source.node_code(identifier)
            unit.variables[name] = VariableText(name, node, declarator, value, source, space, is_const)


def _add_type(unit: Unit, source: Source, node: Node, template: Template) -> None:
    name = node.child_by_field_name("name")
    body = node.child_by_field_name("body")
    if node.type == "enum_specifier" and body is not None:
        previous: Node | None = None
        step = 0
        for item in body.named_children:
            if item.type == "enumerator":
                value = item.child_by_field_name("value")
                if value is not None:
                    previous, step = value, 0
                label = item.child_by_field_name("name")
                if label is not None:
                    unit.enumerators[source.node_code(label)] = (previous, step, source)
                step += 1
    if name is not None and (body is not None or node.type == "enum_specifier"):
        text = source.node_code(name)
        if name.type == "template_type":
            own = unit.specializations.setdefault(text.split("<")[0].strip(), [])
            own.append(TypeText(text, node, source, template))
        else:
            unit.types[text] = TypeText(text, node, source, template)
        for member in body.named_children if body is not None else []:
            function = member
            parameters: Template = ()
            if member.type == "template_declaration":
                function = next((c for c in member.named_children if c.type == "function_definition"), member)
                parameters = template_parameters(source, member)
            method = function_name(source, function) if function.type == "function_definition" else None
            if method:
                found = FunctionText(method, function, source, parameters, None, text)
                unit.methods.setdefault(method, []).append(found)
            inner = member.child_by_field_name("type") if member.type == "field_declaration" else None
            if inner is not None and inner.type in _TYPE_SPECIFIERS:
                _add_type(unit, source, inner, template)


def _add_alias(unit: Unit, source: Source, node: Node, template: Template = ()) -> None:
    if node.type == "alias_declaration":
        name = node.child_by_field_name("name")
        if name is not None:
            text = source.node_code(name)
            unit.types[text] = TypeText(text, node, source, template)
        return
    kind = node.child_by_field_name("type")
    if kind is not None and kind.type in ("struct_specifier", "union_specifier", "enum_specifier"):
        _add_type(unit, source, kind, ())
    for declarator in node.children_by_field_name("declarator"):
        identifier = next(descendants(declarator, "type_identifier", "primitive_type", "identifier"), None)
        if identifier is not None:
            text = source.node_code(identifier)
            unit.types[text] = TypeText(text, node, source)


def live_children(unit: Unit, source: Source, node: Node) -> Iterator[Node]:
    """A node's named children, with the branches of #if, #ifdef and #else that the macros known so far select."""
    for child in node.named_children:
        if child.type in CONDITIONALS:
            yield from live_branch(unit, source, child)
        else:
            yield child


def live_branch(unit: Unit, source: Source, node: Node) -> Iterator[Node]:
    """What an #if, #ifdef or #else holds in the branch that is live; what the others hold is noted in the unit."""
    unit.judged.add((source.path, node.start_byte))
    taken: bool | None = True
    skip: Node | None = None
    if node.type in ("preproc_ifdef", "preproc_elifdef"):
        skip = node.child_by_field_name("name")
        negated = re.match(rb"#\s*(?:el)?ifndef", source.data[node.start_byte : node.start_byte + 20]) is not None
        taken = skip is not None and ((source.node_code(skip) in unit.macros) != negated)
    elif node.type in ("preproc_if", "preproc_elif"):
        skip = node.child_by_field_name("condition")
        taken = skip is not None and _condition(unit, source, source.plain_text(skip))
    alternative = node.child_by_field_name("alternative")
    if taken:
        for child in node.named_children:
            if child not in (skip, alternative):
                if child.type in CONDITIONALS:
                    yield from live_branch(unit, source, child)
                else:
                    yield child
        _skip(unit, source, alternative)
    else:
        _skip_own(unit, source, node)
        if alternative is not None:
            yield from live_branch(unit, source, alternative)


def _skip(unit: Unit, source: Source, node: Node | None) -> None:
    """Note an alternative that is not live, and those behind it."""
    while node is not None:
        _skip_own(unit, source, node)
        node = node.child_by_field_name("alternative")


def _skip_own(unit: Unit, source: Source, node: Node) -> None:
    kept = [node.child_by_field_name(name) for name in ("name", "condition", "alternative")]
    noted = unit.skipped.setdefault(source.path, {})
    for child in node.named_children:
        if child not in kept:
            noted.setdefault(child.start_byte, child.end_byte)


def live_text(unit: Unit, source: Source) -> bytes:
    """The text with blanks in place of what the preprocessor leaves out, line ends kept: the same offsets.

    A branch inside of a function is judged by the macros as they stand at the end of the unit.
    """
    if b"#" not in source.data:
        return source.data
    judged = {at for at in unit.judged if at[0] == source.path}
    for node in descendants(source.closed_root, "preproc_if", "preproc_ifdef"):
        if (source.path, node.start_byte) not in judged:
            for _ in live_branch(unit, source, node):
                pass
    text = bytearray(source.data)
    for start, end in unit.skipped.get(source.path, {}).items():
        text[start:end] = _NOT_LINE_ENDS.sub(b" ", source.data[start:end])
    return bytes(text)


def _condition(unit: Unit, source: Source, text: str) -> bool:
    """A preprocessor condition; one that cannot be read is false."""
    has_include = partial(_has_include, unit, source)
    return bool(condition(text, unit.macros, has_include, unit.steps))


def _has_include(unit: Unit, source: Source, name: str) -> bool:
    return unit.include(source.path, _file_name(name)) is not None


def _file_name(written: str) -> str:
    """What an include reader is asked for: `a.h` for `"a.h"`, and `<a.h>` as it is."""
    return written.strip('"')
