"""How many elements the host code allocates behind a pointer that a launch passes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tree_sitter import Node

from warpwright.cuda.functions import function_name
from warpwright.cuda.walks import nodes_below
from warpwright.facts.model import Program
from warpwright.problems.deduced import template_parameters
from warpwright.problems.expressions import Expression, ExpressionError, Value, names, substitute
from warpwright.problems.host import MOST_CALLS, HostExpressions
from warpwright.problems.sites import elements
from warpwright.syntax.names import unqualified
from warpwright.syntax.nodes import declared_name, descendants, enclosing, parameters_of, uncommented
from warpwright.syntax.source import Source

_ALLOCATORS = {
    "cudaMalloc": 1, "cudaMallocManaged": 1, "cudaMallocAsync": 1, "cudaMallocHost": 1, "cudaHostAlloc": 1,
    "hipMalloc": 1,
}  # fmt: skip
"""By name, the place of the size in bytes; the pointer's address comes first."""
_FILLS = {"cudaMemset", "cudaMemsetAsync", "hipMemset"}
_POINTER = re.compile(r"[A-Za-z_]\w*(?:(?:\.|->)[A-Za-z_]\w*|\[\d+\])*")
_CAST = re.compile(r"^\((?:const)?\w+(?:<[^()]*>)?\*+(?:const)?\)|^(?:reinterpret|static|const)_cast<[^()]*>")


def pointer_name(text: str) -> str:
    """The variable that a pointer argument is; "" where it is none.

    >>> pointer_name("(void **)&d"), pointer_name("thrust::raw_pointer_cast(v.data())"), pointer_name("p.a + 4")
    ('d', 'v', '')
    >>> pointer_name("(float4*)in"), pointer_name("thrust::raw_pointer_cast(&v[0])"), pointer_name("s->x")
    ('in', 'v', 's.x')
    """
    plain = re.sub(r"\s+", "", text)
    while True:
        before = plain
        plain = _CAST.sub("", plain)
        plain = re.sub(r"^(?:thrust::)?raw_pointer_cast", "", plain)
        if plain.startswith("(") and plain.endswith(")"):
            plain = plain[1:-1]
        plain = plain.removeprefix("&")
        plain = re.sub(r"(\.|->)(?:data|get|begin)\(\)(?:\.get\(\))?$", "", plain)
        if plain == before:
            break
    plain = re.sub(r"\[0\]$", "", plain)
    return plain.replace("->", ".") if _POINTER.fullmatch(plain) else ""


class Allocations:
    """Finds allocations. `symbolic` are the macros that a launch passes by name."""

    def __init__(self, program: Program, symbolic: frozenset[str]) -> None:
        self.program = program
        self.symbolic = symbolic
        self.defaults: dict[str, Value] = {}

    def is_zeroed(self, text: str) -> bool:
        """Whether host code fills the array behind a pointer with zeros."""
        variable = pointer_name(text)
        for source in self.program.sources.values() if variable else ():
            for call in nodes_below(source, source.root, "call_expression"):
                function, arguments = call.child_by_field_name("function"), call.child_by_field_name("arguments")
                if function is None or arguments is None or source.plain_text(function) not in _FILLS:
                    continue
                given = [source.plain_text(a) for a in arguments.named_children]
                if len(given) > 1 and pointer_name(given[0]) == variable and given[1].strip() in ("0", "0x00", "0x0"):
                    return True
        return False

    def elements(self, source: Source, function: Node | None, text: str, bytes_each: int) -> Expression | None:
        """The elements behind the pointer that `text` is in a host function; None where no allocation is found.

        Raises ExpressionError for one whose size cannot be followed.
        """
        return self._elements(source, function, pointer_name(text), bytes_each, 0)

    def _elements(
        self, source: Source, function: Node | None, variable: str, bytes_each: int, depth: int
    ) -> Expression | None:
        if not variable or depth > MOST_CALLS:
            return None
        for scope in (function, None):  # its own function's first: the same name means another array elsewhere
            found = self._allocated(source if scope else None, scope, variable, bytes_each)
            if found is not None:
                return found
            if scope is not None:
                made = self._container(source, scope, variable, bytes_each)
                if made is not None:
                    return made
                passed = self._from_caller(source, scope, variable, bytes_each, depth)
                if passed is not None:
                    return passed
        return None

    def _allocated(self, only: Source | None, scope: Node | None, variable: str, bytes_each: int) -> Expression | None:
        sources = [only] if only is not None else self.program.sources.values()
        for source in sources:
            for call, size in _allocating(source, scope or source.root, variable):
                reader = self._reader(source, enclosing(call, "function_definition"))
                whole = reader.resolve(size)
                self._keep(reader.defaults)
                return elements(whole, bytes_each)
        return None

    def _container(self, source: Source, function: Node, variable: str, bytes_each: int) -> Expression | None:
        """A vector's count, `new T[n]`'s, `malloc(bytes)`'s, that of an array, or of what the variable is a copy of."""
        reader = self._reader(source, function)
        for declarator, value in reader.declarations(function):
            if source.plain_text(declarator) != variable or value is None:
                continue
            plain = value
            while plain.type in ("cast_expression", "parenthesized_expression") and plain.named_children:
                plain = uncommented(plain)[-1]
            if plain.type == "new_expression":
                size = next(descendants(plain, "new_declarator"), None)
                length = size.child_by_field_name("length") if size is not None else None
                found = reader.resolve(length) if length is not None else None
            elif plain.type == "call_expression" and reader.text(plain).startswith(("malloc", "std::malloc")):
                arguments = plain.child_by_field_name("arguments")
                found = elements(reader.resolve(uncommented(arguments)[0]), bytes_each) if arguments else None
            elif plain.type == "call_expression" and (made := self._given_back(reader, plain, bytes_each)) is not None:
                found = made
            elif plain.type in ("parameter_list", "argument_list", "call_expression"):
                found = reader.container_count(plain)
            else:
                continue
            self._keep(reader.defaults)
            return found
        return None

    def _given_back(self, reader: HostExpressions, call: Node, bytes_each: int) -> Expression | None:
        """What a function of the program allocates and returns, as in `float *x = on_device(host, n)`, in the terms of
        its caller; None for a call of another. Raises ExpressionError for a size that cannot be followed."""
        called = call.child_by_field_name("function")
        name = unqualified(reader.text(called)) if called is not None else ""
        defined = [
            (source, definition)
            for source in self.program.sources.values()
            for definition in nodes_below(source, source.root, "function_definition")
            if function_name(source, definition) == name
        ]
        if len(defined) != 1:
            return None
        source, definition = defined[0]
        size = _size_of_returned(source, definition)
        if size is None:
            return None
        helper = self._reader(source, definition)
        text = plain = source.plain_text(size)
        for kind in template_parameters(source, definition):
            text = re.sub(rf"\bsizeof\s*\(\s*{kind}\s*\)", str(bytes_each), text)
        own = elements(helper.resolve(size) if text == plain else helper.resolve_text(text), bytes_each)
        parameters = [declared_name(source, p.child_by_field_name("declarator")) for p in parameters_of(definition)]
        given = dict(zip(parameters, uncommented(call.child_by_field_name("arguments")), strict=False))
        if unknown := sorted(names(own) - given.keys()):
            raise ExpressionError(f"`{unknown[0]}` of `{reader.text(call)}` cannot be followed")
        return substitute(own, {name: reader.resolve(given[name]) for name in names(own)})

    def _from_caller(
        self, source: Source, function: Node, variable: str, bytes_each: int, depth: int
    ) -> Expression | None:
        """Where the variable is the function's parameter: what its callers pass, the first that can be followed."""
        head, _, rest = variable.partition(".")
        place = next(
            (
                number
                for number, parameter in enumerate(parameters_of(function))
                if head in [source.plain_text(d) for d in descendants(parameter, "identifier")][-1:]
            ),
            None,
        )
        own = function_name(source, function)
        if place is None or own is None:
            return None
        for other in self.program.sources.values():
            for call in nodes_below(other, other.root, "call_expression"):
                called, arguments = call.child_by_field_name("function"), call.child_by_field_name("arguments")
                if called is None or arguments is None or len(arguments.named_children) <= place:
                    continue
                if unqualified(other.plain_text(called)) != own:
                    continue
                passed = pointer_name(other.plain_text(uncommented(arguments)[place]))
                outer = enclosing(call, "function_definition")
                if not passed or outer is None or outer == function:
                    continue
                try:
                    whole = f"{passed}.{rest}" if rest else passed
                    found = self._elements(other, outer, whole, bytes_each, depth + 1)
                except ExpressionError:
                    continue
                if found is not None:
                    return found
        return None

    def _reader(self, source: Source, function: Node | None) -> HostExpressions:
        return HostExpressions(self.program, source, function, self.symbolic)

    def _keep(self, defaults: Mapping[str, Value]) -> None:
        for name, value in defaults.items():
            self.defaults.setdefault(name, value)


def _allocating(source: Source, scope: Node, variable: str) -> Iterator[tuple[Node, Node]]:
    """The calls that allocate what a pointer points to, with the size in bytes that each asks for."""
    for call in nodes_below(source, scope, "call_expression"):
        function, arguments = call.child_by_field_name("function"), call.child_by_field_name("arguments")
        if function is None or arguments is None:
            continue
        place = _ALLOCATORS.get(unqualified(source.plain_text(function)))
        given = arguments.named_children
        if place is not None and len(given) > place and pointer_name(source.plain_text(given[0])) == variable:
            yield call, given[place]


def _size_of_returned(source: Source, definition: Node) -> Node | None:
    """The bytes of what a function allocates and returns in the end."""
    returned = {
        source.plain_text(value)
        for statement in nodes_below(source, definition, "return_statement")
        for value in uncommented(statement)
    }
    variable = pointer_name(returned.pop()) if len(returned) == 1 else ""
    found = list(_allocating(source, definition, variable)) if variable else []
    return found[0][1] if len(found) == 1 else None
