"""The launches of a kernel in host code: what stands between `<<<` and `>>>`, and what is passed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.cuda.launch_api import addressed, api_launch
from warpwright.cuda.walks import nodes_below
from warpwright.syntax.names import unqualified
from warpwright.syntax.nodes import descendants, enclosing, launch_configuration, uncommented
from warpwright.syntax.source import Source


@dataclass(frozen=True, slots=True)
class LaunchText:
    """A launch in host code: the call, what stands between <<< and >>>, the arguments, and the template arguments."""

    source: Source
    call: Node
    configuration: tuple[Node, ...]
    arguments: tuple[Node, ...]
    instance: tuple[str, ...]

    @property
    def function(self) -> Node | None:
        """The host function or lambda that it stands in."""
        return enclosing(self.call, "function_definition", "lambda_expression")

    @property
    def line(self) -> int:
        return self.source.position(self.call.start_byte)[0]


def launch_sites(sources: Iterable[Source], kernel: str) -> Iterator[LaunchText]:
    """All launches that name the kernel, in the order of the files and of the text; where there is none, the first of a
    local variable that holds it: `auto f = kernel<float>; f<<<...>>>(...)`."""
    held: LaunchText | None = None
    named_itself = False
    for source in sources:
        for call in nodes_below(source, source.root, "call_expression"):
            found = _launch(source, call)
            if found is None:
                continue
            function, configuration, arguments = found
            named: Node | None = function
            if unqualified(source.node_code(function)) != kernel:
                named = _held(source, function) if held is None else None
                if named is None or unqualified(source.node_code(named)) != kernel:
                    continue
            template = next(descendants(named, "template_argument_list"), None) if named is not None else None
            instance = tuple(source.node_code(a) for a in uncommented(template)) if template else ()
            site = LaunchText(source, call, configuration, arguments, instance)
            if named == function:
                named_itself = True
                yield site
            else:
                held = site
    if held is not None and not named_itself:
        yield held


def _launch(source: Source, call: Node) -> tuple[Node, tuple[Node, ...], tuple[Node, ...]] | None:
    """The kernel's name, the configuration and the arguments of a call that launches; None for another call."""
    configuration = launch_configuration(call)
    function, arguments = call.child_by_field_name("function"), call.child_by_field_name("arguments")
    if function is None or arguments is None:
        return None
    if configuration is not None:
        return function, tuple(uncommented(configuration)), tuple(uncommented(arguments))
    api = api_launch(source, call)
    if api is None or not api.shape:
        return None
    packed = addressed(source, call, api.packed) if api.packed is not None else api.arguments
    return api.kernel, api.shape, tuple(packed)


def _held(source: Source, function: Node) -> Node | None:
    """What the one local variable of that name that stands before a call is declared as."""
    around = enclosing(function, "function_definition", "lambda_expression")
    if function.type != "identifier" or around is None:
        return None
    name = source.node_code(function)
    found = [
        node.child_by_field_name("value")
        for node in nodes_below(source, around, "init_declarator")
        if (declared := node.child_by_field_name("declarator")) is not None
        and next(
            (source.node_code(i) for i in (declared, *descendants(declared, "identifier")) if i.type == "identifier"),
            "",
        )
        == name
        and node.end_byte <= function.start_byte
    ]
    value = found[0] if len(found) == 1 else None
    while value is not None and value.type in ("pointer_expression", "parenthesized_expression"):
        value = value.child_by_field_name("argument") or next(iter(uncommented(value)), None)
    return value
