"""The ways on which a launch is reached: the calls of the host functions around it, up to one that nobody calls.

Example: in `void run(float* y, float* x) { k<<<1, 32>>>(y, x); }  int main() { run(a, b); run(a, a); }` the launch has
two paths, and what the kernel is passed is another thing on each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.cuda.functions import function_name
from warpwright.cuda.sites import LaunchText
from warpwright.cuda.walks import nodes_below
from warpwright.syntax.names import unqualified
from warpwright.syntax.nodes import descendants, enclosing, parameters_of, uncommented
from warpwright.syntax.source import Source

_MEMBER = re.compile(r".*(?:\.|->)\s*", re.DOTALL)
"""What stands before the name of a member function that is called: `runner.`, `this->`."""
MOST_CALLS = 6
"""Functions that call one another on one path."""
MOST_PATHS = 24
"""Of one launch."""


@dataclass(frozen=True, slots=True)
class HostCall:
    """A call of a host function: the node, and the function that it stands in."""

    source: Source
    node: Node

    @property
    def function(self) -> Node | None:
        return enclosing(self.node, "function_definition")

    @property
    def arguments(self) -> list[Node]:
        return uncommented(self.node.child_by_field_name("arguments"))


@dataclass(frozen=True, slots=True)
class LaunchPath:
    """A launch and the calls that lead to it, the innermost first, in the sources that were read. It has no calls where
    nobody calls the function that launches, as of one that other files use."""

    site: LaunchText
    sources: tuple[Source, ...]
    calls: tuple[HostCall, ...] = ()

    @property
    def place(self) -> tuple[str, int]:
        """File and line of what tells it from the other paths: its outermost call, or the launch."""
        if not self.calls:
            return self.site.source.path, self.site.line
        outermost = self.calls[-1]
        return outermost.source.path, outermost.source.position(outermost.node.start_byte)[0]

    def argument(self, depth: int, place: int) -> tuple[Node, int] | None:
        """What is passed for parameter `place` of the function that the launch stands in (`depth` 0), of its caller
        (1), and so on: the argument, and the depth of the function that it stands in. None beyond the last call."""
        if depth >= len(self.calls):
            return None
        given = self.calls[depth].arguments
        return (given[place], depth + 1) if place < len(given) else None

    def scope(self, depth: int) -> tuple[Source, Node | None]:
        """The function that the launch stands in (0), its caller (1), and so on."""
        if depth == 0:
            return self.site.source, self.site.function
        call = self.calls[depth - 1]
        return call.source, call.function

    def inward(self, depth: int) -> Node:
        """In that function the launch, or the call that leads to it."""
        return self.site.call if depth == 0 else self.calls[depth - 1].node

    def position(self, depth: int) -> int:
        """The byte at which that stands."""
        return self.inward(depth).start_byte


def launch_paths(sources: Sequence[Source], site: LaunchText) -> list[LaunchPath]:
    """The paths of a launch in the order of the text, MOST_PATHS of them at most."""
    found: list[LaunchPath] = []
    for path in _outwards(sources, LaunchPath(site, tuple(sources))):
        found.append(path)
        if len(found) == MOST_PATHS:
            break
    return found


def _outwards(sources: Sequence[Source], path: LaunchPath) -> Iterator[LaunchPath]:
    source, function = path.scope(len(path.calls))
    if function is None or len(path.calls) == MOST_CALLS:
        yield path
        return
    is_called = False
    for call in calls_of(sources, source, function):
        around = call.function
        if around is None or around in (path.scope(depth)[1] for depth in range(len(path.calls) + 1)):
            continue  # a global's value, and a function that calls itself
        is_called = True
        yield from _outwards(sources, LaunchPath(path.site, path.sources, (*path.calls, call)))
    if not is_called:
        yield path


def calls_of(sources: Sequence[Source], source: Source, function: Node) -> Iterator[HostCall]:
    """The calls of a host function that pass as many arguments as it may take: in its own file alone where it is
    static."""
    is_lambda = function.type == "lambda_expression"
    name = _held_as(source, function) if is_lambda else function_name(source, function)
    if not name or name == "main":
        return
    parameters = parameters_of(function)
    least = sum(parameter.type == "parameter_declaration" for parameter in parameters)
    is_static = is_lambda or any(source.node_code(child) == "static" for child in function.children)
    for other in (source,) if is_static else sources:
        for node in nodes_below(other, other.root, "call_expression"):
            called = node.child_by_field_name("function")
            if called is None or _MEMBER.sub("", unqualified(other.node_code(called))) != name:
                continue
            call = HostCall(other, node)
            if least <= len(call.arguments) <= len(parameters):
                yield call


def _held_as(source: Source, function: Node) -> str:
    """The variable that a lambda is the value of: `f` in `auto f = [&](int *a) { ... };`."""
    around = function.parent
    declared = around.child_by_field_name("declarator") if around is not None else None
    return source.node_text(declared) if declared is not None and declared.type == "identifier" else ""


def parameter_place(source: Source, function: Node | None, name: str) -> int | None:
    """The place of the parameter of that name; None where a function has none."""
    for place, parameter in enumerate(parameters_of(function) if function is not None else ()):
        declared = [source.node_code(node) for node in descendants(parameter, "identifier")]
        if declared and declared[0] == name:
            return place
    return None
