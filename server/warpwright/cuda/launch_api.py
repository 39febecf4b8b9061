"""Launches by a call of the runtime library: cudaLaunchKernel and its kin (CUDA Runtime API, "Execution Control")."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.syntax.encoding import decoded
from warpwright.syntax.names import unqualified
from warpwright.syntax.nodes import descendants, enclosing, uncommented
from warpwright.syntax.source import Source

API_NAMES = rb"\b(?:cuda|hip)Launch(?:Cooperative)?Kernel(?:ExC?)?\b"
_CONFIGURED = re.compile(r"(?:cuda|hip)LaunchKernelExC?")
_FIELDS = ("gridDim", "blockDim", "dynamicSmemBytes", "stream")
_DEFAULT = "0"


@dataclass(frozen=True, slots=True)
class ApiLaunch:
    """`shape` has the grid, the block and the bytes of shared memory, and `stream` the stream, as far as they are
    written in the call; else `config` is the name of the variable that has them. Arguments are given one by one, or
    their addresses in the array that `packed` names."""

    kernel: Node
    shape: tuple[Node, ...] = ()
    config: str | None = None
    arguments: tuple[Node, ...] = ()
    packed: Node | None = None
    stream: Node | None = None


def api_launch(source: Source, call: Node) -> ApiLaunch | None:
    """What a call of the library launches; None for another call, and for one that is not written to its end."""
    function = call.child_by_field_name("function")
    name = unqualified(source.node_code(function)) if function is not None else ""
    given = uncommented(call.child_by_field_name("arguments"))
    if not re.fullmatch(decoded(API_NAMES), name) or len(given) < 2:
        return None
    if _CONFIGURED.fullmatch(name):
        config = given[0].child_by_field_name("argument") if given[0].type == "pointer_expression" else given[0]
        written = source.node_code(config) if config is not None else None
        if name.endswith("C"):
            return ApiLaunch(_plain(given[1]), config=written, packed=given[2] if len(given) > 2 else None)
        return ApiLaunch(_plain(given[1]), config=written, arguments=tuple(given[2:]))
    packed, shared, stream = (given[at] if len(given) > at else None for at in (3, 4, 5))
    shape = (*given[1:3], *([shared] if shared is not None else ()))
    return ApiLaunch(_plain(given[0]), shape, packed=packed, stream=stream)


def stream_of(source: Source, call: Node, api: ApiLaunch) -> str | None:
    """The stream of a launch as it is written, "0" where nothing gives one: in the call, or for the configuration
    that it names, which must be a variable of the function around it; None where that is not seen.

    Example: `s` of `cudaLaunchConfig_t c{}; c.stream = s; cudaLaunchKernelEx(&c, f, x);`
    """
    if api.config is None:
        return source.node_code(api.stream) if api.stream is not None else _DEFAULT
    function = enclosing(call, "function_definition")
    body = function.child_by_field_name("body") if function is not None else None
    name = re.escape(api.config)
    before = source.code_text(body.start_byte, call.start_byte) if body is not None else ""
    declared = re.search(rf"\bcudaLaunchConfig_t\s+{name}\s*(?:;|=?\s*\{{)", before)
    if declared is None or re.search(rf"&\s*{name}\b(?!\s*\.)", before):
        return None
    assigned = re.findall(rf"\b{name}\s*\.\s*stream\s*=\s*([^;]*?)\s*;", before)
    if assigned:
        return str(assigned[-1])
    listed = configured(source, call, api.config).get("stream")
    return source.node_code(listed) if listed is not None else _DEFAULT


def configured(source: Source, call: Node, config: str) -> dict[str, Node]:
    """The fields of a launch's configuration that its definition before the call lists, by name.

    Example: gridDim and blockDim of `cudaLaunchConfig_t c = {grid, block};`
    """
    listed = initializer(source, call, config)
    found: dict[str, Node] = {}
    for position, item in enumerate(uncommented(listed)):
        if item.type == "initializer_pair":
            value = item.child_by_field_name("value") or uncommented(item)[-1]
            found[source.node_code(uncommented(item)[0]).lstrip(".")] = value
        elif position < len(_FIELDS):
            found[_FIELDS[position]] = item
    return found


def addressed(source: Source, call: Node, packed: Node) -> list[Node]:
    """The variables whose addresses an array of arguments holds, `void *args[] = {&a, &n}`."""
    listed = packed if packed.type == "initializer_list" else initializer(source, call, source.node_code(packed))
    return [_plain(item) for item in uncommented(listed)]


def initializer(source: Source, call: Node, name: str) -> Node | None:
    """The list in braces that a variable is defined with, in the function around a call."""
    function = enclosing(call, "function_definition")
    found: Node | None = None
    for node in descendants(function, "init_declarator") if function is not None else ():
        label = next(descendants(node.child_by_field_name("declarator") or node, "identifier"), None)
        value = node.child_by_field_name("value")
        if node.start_byte < call.start_byte and label is not None and source.node_code(label) == name:
            found = value if value is not None and value.type == "initializer_list" else found
    return found


def _plain(node: Node) -> Node:
    """An expression without the casts and the `&` around it: `(void *)&kernel` is the kernel."""
    while True:
        if node.type == "cast_expression":
            inner = node.child_by_field_name("value")
        elif node.type == "pointer_expression":
            inner = node.child_by_field_name("argument")
        elif node.type == "parenthesized_expression" and len(uncommented(node)) == 1:
            inner = uncommented(node)[0]
        elif node.type == "call_expression":  # reinterpret_cast<void *>(kernel)
            function = node.child_by_field_name("function")
            given = uncommented(node.child_by_field_name("arguments"))
            is_cast = function is not None and function.type == "template_function" and len(given) == 1
            inner = given[0] if is_cast else None
        else:
            return node
        if inner is None:
            return node
        node = inner
