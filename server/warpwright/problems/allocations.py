"""How many elements the host code allocates behind a pointer that a launch passes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tree_sitter import Node

from warpwright.cuda.functions import function_name
from warpwright.cuda.walks import nodes_below
from warpwright.facts.model import Program
from warpwright.problems.expressions import Expression, ExpressionError, Value
from warpwright.problems.host import MOST_CALLS, HostExpressions
from warpwright.problems.sites import elements
from warpwright.syntax.names import unqualified
from warpwright.syntax.nodes import descendants, enclosing, parameters_of, uncommented
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
            for call in nodes_below(source, scope or source.root, "call_expression"):
                function, arguments = call.child_by_field_name("function"), call.child_by_field_name("arguments")
                if function is None or arguments is None:
                    continue
                place = _ALLOCATORS.get(unqualified(source.plain_text(function)).split("<")[0])
                given = arguments.named_children
                if place is None or len(given) <= place or pointer_name(source.plain_text(given[0])) != variable:
                    continue
                reader = self._reader(source, enclosing(call, "function_definition"))
                size = reader.resolve(given[place])
                self._keep(reader.defaults)
                return elements(size, bytes_each)
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
            elif plain.type in ("parameter_list", "argument_list", "call_expression"):
                found = reader.container_count(plain)
            else:
                continue
            self._keep(reader.defaults)
            return found
        return None

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
                if unqualified(other.plain_text(called)).split("<")[0] != own:
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
