"""What host code does with a kernel, and with the pointers it is passed, that is not followed: told, not guessed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

from tree_sitter import Node

from warpwright.cuda.addresses import address_of
from warpwright.cuda.launch_api import API_NAMES
from warpwright.cuda.origins import MOST_OF_KERNEL, origins
from warpwright.cuda.paths import launch_paths
from warpwright.cuda.sites import launch_sites
from warpwright.cuda.walks import nodes_below
from warpwright.syntax.encoding import decoded
from warpwright.syntax.names import unqualified
from warpwright.syntax.nodes import ancestors, descendants, enclosing
from warpwright.syntax.source import Source

MOST_SITES = 32
"""Launches of one kernel whose paths are followed."""
_LAUNCH = re.compile(rf"<<<|{decoded(API_NAMES)}")
_ASKS = re.compile(r"(?:cuda|hip)(?:Func(?:Set|Get)\w+|Occupancy\w+)")
"""Functions that are told of a kernel and do not launch it."""
_DEVICE = ("__global__", "__device__")


@dataclass(frozen=True, slots=True)
class Unread:
    """A place of host code, and what is not known of it: a sentence without its full stop."""

    path: str
    line: int
    text: str


def unread_uses(sources: Sequence[Source], kernel: str) -> Iterator[Unread]:
    """Where host code names a kernel and what becomes of it there is not followed: a launch in a macro, a pointer to
    it, an argument of a function that launches.

    >>> text = b"__global__ void k(int *a);  void run(int *a) { k<<<1, 1>>>(a);\\nauto f = k;\\nf<<<2, 1>>>(a); }"
    >>> [(each.line, each.text) for each in unread_uses([Source("a.cu", text)], "k")]
    [(2, 'the launches by way of this use of `k` are not followed')]
    """
    followed = [(site.source, site.call) for site in launch_sites(sources, kernel)]
    word = re.compile(rf"\b{re.escape(kernel)}\b")
    for source in sources:
        if not word.search(source.node_code(source.root)):
            continue
        for node in descendants(source.root, "identifier", "preproc_arg"):
            if node.type == "preproc_arg":
                text = source.node_code(node)
                is_unread = word.search(text) is not None and _LAUNCH.search(text) is not None
            else:
                is_unread = source.node_code(node) == kernel and _is_unread(source, node, followed)
            if is_unread:
                line = source.position(node.start_byte)[0]
                yield Unread(source.path, line, f"the launches by way of this use of `{kernel}` are not followed")


def _is_unread(source: Source, node: Node, followed: Sequence[tuple[Source, Node]]) -> bool:
    name = source.node_code(node)
    for each in ancestors(node):
        if any(each == call for _, call in followed):
            return False
        if each.type in ("function_declarator", "using_declaration", "template_instantiation", "friend_declaration"):
            return False
        if each.type == "call_expression":
            called = each.child_by_field_name("function")
            if called is not None and _ASKS.fullmatch(unqualified(source.node_code(called))):
                return False
    around = enclosing(node, "function_definition")
    if around is None or any(child.type in _DEVICE for child in around.children):
        return False
    held = [value for source_, call in followed if source_ == source for value in _held_before(source, call, name)]
    return node not in held and not _is_local(source, around, name)


def _held_before(source: Source, call: Node, kernel: str) -> Iterator[Node]:
    """The kernel's name in the value of the local variable that a followed launch calls."""
    called = call.child_by_field_name("function")
    around = enclosing(call, "function_definition")
    if called is None or around is None or unqualified(source.node_code(called)) == kernel:
        return
    for node in nodes_below(source, around, "init_declarator"):
        yield from (each for each in descendants(node, "identifier") if source.node_code(each) == kernel)


def _is_local(source: Source, function: Node, name: str) -> bool:
    """Whether a parameter or a variable of a function has that name."""
    return any(
        source.node_code(declared) == name
        for node in nodes_below(source, function, "parameter_declaration", "init_declarator")
        if (label := node.child_by_field_name("declarator")) is not None
        for declared in ([label] if label.type == "identifier" else [*descendants(label, "identifier")][:1])
    )


def unread_pointers(sources: Sequence[Source], kernel: str, pointers: Sequence[bool]) -> Iterator[Unread]:
    """The launches of which two pointers are run as arrays of their own, and host code may make them one.

    >>> text = b"__global__ void k(int *a, int *b);  void run(int *x, int *y, bool s) {\\n"
    >>> text += b"int *o = s ? x : y; k<<<1, 1>>>(o, x); }"
    >>> [(each.line, each.text) for each in unread_pointers([Source("a.cu", text)], "k", [True, True])]
    [(2, 'whether `o` and `x` lead to one piece of memory is not known')]
    """
    left = MOST_OF_KERNEL
    for site in islice(launch_sites(sources, kernel), MOST_SITES):
        if len(site.arguments) != len(pointers):
            yield Unread(site.source.path, site.line, "its arguments are not those of the kernel one by one")
            continue
        given = [node for node, is_pointer in zip(site.arguments, pointers, strict=True) if is_pointer]
        for path in launch_paths(sources, site):
            if left <= 0:
                yield Unread(
                    *path.place, "its pointers are not followed: there are too many ways on which they are set"
                )
                return
            ends = [(node, end, origins(path, end)) for node in given for end in (address_of(path, node),)]
            left -= sum(each.values for *_, each in ends)
            for node, _, comes in ends:
                if comes.is_moved:
                    text = f"how far behind the start of its array `{site.source.node_code(node)}` points is not known"
                    yield Unread(*path.place, text)
            for (one, first, mine), (other, second, theirs) in combinations(ends, 2):
                if first.memory != second.memory and mine.variables & theirs.variables:
                    named = f"`{site.source.node_code(one)}` and `{site.source.node_code(other)}`"
                    yield Unread(*path.place, f"whether {named} lead to one piece of memory is not known")


def unread_instances(sources: Sequence[Source], kernel: str) -> Iterator[Unread]:
    """The calls of a template that launches with another grid or block for other template arguments: it is run with the
    first ones.

    >>> text = b"__global__ void k(int *a);  template <int B> void run(int *a) { k<<<1, B>>>(a); }"
    >>> text += b"  int main() { run<32>(0); run<64>(0); }"
    >>> [(each.line, each.text) for each in unread_instances([Source("a.cu", text)], "k")]
    [(1, 'the launch is not followed with the template arguments `<64>`')]
    """
    for site in islice(launch_sites(sources, kernel), MOST_SITES):
        around = site.function.parent if site.function is not None else None
        if around is None or around.type != "template_declaration":
            continue
        named = {site.source.node_code(each) for node in site.configuration for each in _names(node)}
        parameters = around.child_by_field_name("parameters")
        if parameters is None or not named & {site.source.node_code(each) for each in _names(parameters)}:
            continue
        first = ""
        for path in launch_paths(sources, site):
            called = path.calls[0].node.child_by_field_name("function") if path.calls else None
            given = next(descendants(called, "template_argument_list"), None) if called is not None else None
            text = path.calls[0].source.node_code(given) if given is not None else ""
            first = first or text
            if text != first:
                yield Unread(*path.place, f"the launch is not followed with the template arguments `{text}`")


def _names(node: Node) -> Iterator[Node]:
    yield from [node] if node.type == "identifier" else descendants(node, "identifier")
