"""The files of one extension, read together: C++ and CUDA, and the Python beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from tree_sitter import Node

from warpwright.cuda.extension.entries import Registration, inline_registrations, registrations
from warpwright.cuda.extension.inline import Inline
from warpwright.cuda.extension.script import ANY, Script
from warpwright.cuda.launch_api import api_launch
from warpwright.cuda.walks import nodes_below
from warpwright.syntax.encoding import encoded
from warpwright.syntax.names import unqualified
from warpwright.syntax.nodes import (
    descendants,
    enclosing,
    function_declarator,
    launch_configuration,
    parameters_of,
    uncommented,
)
from warpwright.syntax.source import Source, Span

_TORCH = re.compile(rb"torch/|ATen/|c10/|\bTORCH_LIBRARY|\bPYBIND11_MODULE|\btorch::|\bat::")
_SCRIPT = re.compile(rb"\btorch\b")
_TENSOR = re.compile(r"\b(?:Tensor|TensorBase|Variable)\b")
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(([^()]*)\)((?:\\\r?\n|[^\n\\]|\\.)*)", re.MULTILINE)
_MOST_REACHED = 64
MOST_SOURCES = _MOST_REACHED + 8
"""What was read of so many is kept, and with it their trees: a package, and the last versions of what is edited."""
_BUILT = "TORCH_EXTENSION_NAME"


@dataclass(frozen=True)
class Function:
    """A function of the C++ side. `parameters` are (name, type) in order."""

    source: Source
    node: Node
    name: str
    parameters: tuple[tuple[str, str], ...]

    @cached_property
    def code(self) -> str:
        body = self.node.child_by_field_name("body")
        return self.source.node_code(body) if body is not None else ""

    @property
    def start(self) -> int:
        body = self.node.child_by_field_name("body")
        return body.start_byte if body is not None else self.node.start_byte

    @cached_property
    def tensors(self) -> tuple[str, ...]:
        """The parameters that are tensors, by name."""
        return tuple(name for name, kind in self.parameters if name and _TENSOR.search(kind))

    @cached_property
    def calls(self) -> tuple[Node, ...]:
        return tuple(nodes_below(self.source, self.node, "call_expression"))

    @property
    def launches(self) -> Iterator[Node]:
        """The calls that launch, by `<<<...>>>` or by a function of the runtime library."""
        for call in self.calls:
            if launch_configuration(call) is not None or api_launch(self.source, call) is not None:
                yield call

    @property
    def owner(self) -> str:
        """The class that it is a member of, "" for none."""
        around = enclosing(self.node, "class_specifier", "struct_specifier")
        name = around.child_by_field_name("name") if around is not None else None
        return self.source.plain_text(name) if name is not None else ""

    @property
    def name_span(self) -> Span:
        declarator = function_declarator(self.node)
        name = declarator.child_by_field_name("declarator") if declarator is not None else None
        return self.source.span(name or self.node)

    def found(self, pattern: re.Pattern[str]) -> Iterator[tuple[Span, re.Match[str]]]:
        """Where a pattern matches in the body, without what comments and literals say."""
        for match in pattern.finditer(self.code):
            start = self.start + len(encoded(self.code[: match.start()]))
            length = len(encoded(match[0]))
            yield Span(self.source, start, start + length), match


@dataclass(frozen=True)
class Bound:
    """A function that Python can call, with what binds it."""

    function: Function
    registration: Registration


@dataclass(frozen=True)
class Unit:
    """What is judged at once: one file, `source`, read with the others of its extension. `texts` are the C++ side, of
    which it may be one, `scripts` the Python side."""

    source: Source
    texts: tuple[Source, ...]
    scripts: tuple[Script, ...] = ()

    @cached_property
    def script(self) -> Script | None:
        """The judged file where it is Python."""
        return next((each for each in self.scripts if each.source is self.source), None)

    @cached_property
    def extension(self) -> tuple[Source, ...]:
        """The C++ side's files that use torch, and what scripts have built inline."""
        return (*(each for each in self.texts if uses_torch(each)), *(each.source for each in self._inline))

    @property
    def inline(self) -> Iterator[Unit]:
        """The C++ and CUDA in strings of the judged file."""
        for each in self.script.inline if self.script is not None else ():
            yield replace(self, source=each.source)

    @property
    def _inline(self) -> tuple[Inline, ...]:
        return tuple(each for script in self.scripts for each in script.inline)

    @cached_property
    def registrations(self) -> tuple[Registration, ...]:
        found = [each for source in self.extension for each in _registrations(source)]
        found += [each for one in self._inline for each in inline_registrations(one.source, one.functions)]
        if len(self.modules) == 1:
            (built,) = self.modules
            found = [replace(each, space=built) if each.space == _BUILT else each for each in found]
        return tuple(found)

    @cached_property
    def modules(self) -> frozenset[str]:
        """The last parts of the names of the modules that the package builds."""
        return frozenset(each for script in self.scripts for each in script.built)

    @cached_property
    def functions(self) -> dict[str, list[Function]]:
        """The functions of the extension's files by their names."""
        found: dict[str, list[Function]] = {}
        for each in (each for source in self.extension for each in _defined(source)):
            found.setdefault(each.name, []).append(each)
        return found

    @cached_property
    def here(self) -> tuple[Function, ...]:
        """The functions of the judged file, whether it uses torch or not."""
        return () if self.script is not None else _defined(self.source)

    @cached_property
    def bound(self) -> tuple[Bound, ...]:
        """What Python can call, of which the definition is seen."""
        found = []
        for each in self.registrations:
            if each.function is not None:
                made = _function(each.source, each.function)
            else:
                named = self.functions.get(_bound_name(each), []) if each.bound is not None else []
                made = named[0] if len(named) == 1 else None
            if made is not None:
                found.append(Bound(made, each))
        return tuple(found)

    def called(self, call: Node, source: Source) -> Function | None:
        """The one function of the extension that a call is of."""
        callee = call.child_by_field_name("function")
        name = unqualified(source.node_code(callee)) if callee is not None else ""
        named = self.functions.get(name, [])
        return named[0] if len(named) == 1 else None

    def applied(self, call: Node, source: Source) -> list[Function]:
        """The forward and the backward of the autograd function in C++ whose `apply` a call is of."""
        callee = call.child_by_field_name("function")
        owner, _, last = source.node_code(callee).rpartition("::") if callee is not None else ("", "", "")
        both = (*self.functions.get("forward", ()), *self.functions.get("backward", ())) if last == "apply" else ()
        return [each for each in both if each.owner == unqualified(owner)]

    def reached(self, function: Function) -> tuple[Function, ...]:
        """The function and those of the extension that it calls, itself, through others or through autograd."""
        known = self._reached.get(function.node.id)
        if known is not None:
            return known
        found: dict[int, Function] = {}
        pending = [function]
        while pending and len(found) < _MOST_REACHED:
            each = pending.pop()
            if each.node.id not in found:
                found[each.node.id] = each
                for call in each.calls:
                    called = self.called(call, each.source)
                    pending += self.applied(call, each.source) if called is None else [called]
        self._reached[function.node.id] = tuple(found.values())
        return self._reached[function.node.id]

    @cached_property
    def _reached(self) -> dict[int, tuple[Function, ...]]:
        """What was asked for before, by the function's node."""
        return {}

    @cached_property
    def macros(self) -> dict[str, str]:
        """The bodies of the macros with parameters, by name."""
        return {
            match[1]: match[3] for source in self.extension for match in _DEFINE.finditer(source.code_text())
        }  # fmt: skip

    def registered(self, space: str, name: str) -> set[str]:
        """Under which keys and with what of torch.library an operator is registered, on both sides."""
        cpp = {r.key or r.method for r in self.registrations if (r.space, r.name) == (space, name)}
        names = (f"{space}::{name}", ANY) if space != _BUILT else (ANY,)
        python = {
            what
            for s in self.scripts
            for what, op, _ in s.registered
            if op.partition(".")[0] in names or (space == _BUILT and op.partition("::")[2].partition(".")[0] == name)
        }
        return cpp | python


@lru_cache(maxsize=MOST_SOURCES)
def uses_torch(source: Source) -> bool:
    return _TORCH.search(source.data) is not None


def is_of_stable_abi(source: Source) -> bool:
    """Whether a text includes torch's stable ABI, which has no names of ATen and c10."""
    return b"torch/csrc/stable/" in source.data


def is_script(path: str) -> bool:
    return path.endswith(".py")


def unit_of(source: Source, others: tuple[Source, ...] = ()) -> Unit:
    """A file with those of its extension; `others` may hold files of both sides."""
    every = (source, *(each for each in others if each.path != source.path))
    scripts = tuple(_script(each) for each in every if is_script(each.path) and _SCRIPT.search(each.data))
    return Unit(source, tuple(each for each in every if not is_script(each.path)), scripts)


@lru_cache(maxsize=MOST_SOURCES)
def _script(source: Source) -> Script:
    return Script(source)


@lru_cache(maxsize=MOST_SOURCES)
def _registrations(source: Source) -> tuple[Registration, ...]:
    return tuple(registrations(source))


@lru_cache(maxsize=MOST_SOURCES)
def _defined(source: Source) -> tuple[Function, ...]:
    made = (_function(source, node) for node in nodes_below(source, source.root, "function_definition"))
    return tuple(each for each in made if each is not None)


def _function(source: Source, node: Node) -> Function | None:
    if node.type == "lambda_expression":
        declarator = node.child_by_field_name("declarator")
        listed = uncommented(declarator.child_by_field_name("parameters")) if declarator is not None else []
        return Function(source, node, "lambda", tuple(_named(source, each) for each in listed))
    declarator = function_declarator(node)
    name = declarator.child_by_field_name("declarator") if declarator is not None else None
    if name is None or node.child_by_field_name("type") is None:
        return None
    parameters = tuple(_named(source, each) for each in parameters_of(node))
    return Function(source, node, unqualified(source.plain_text(name)), parameters)


def _named(source: Source, parameter: Node) -> tuple[str, str]:
    declarator = parameter.child_by_field_name("declarator")
    inner: Node | None = declarator
    while inner is not None and inner.type != "identifier":
        inner = inner.child_by_field_name("declarator") or (uncommented(inner)[-1] if uncommented(inner) else None)
    if declarator is None or inner is None:
        return "", source.node_code(parameter)
    kind = source.code_text(parameter.start_byte, inner.start_byte)
    return source.node_code(inner), " ".join(kind.split())


def _bound_name(registration: Registration) -> str:
    bound = registration.bound
    names = list(descendants(bound, "identifier", "qualified_identifier")) if bound is not None else []
    if bound is not None and bound.type in ("identifier", "qualified_identifier"):
        names = [bound]
    return unqualified(registration.source.plain_text(names[-1])) if names else ""
