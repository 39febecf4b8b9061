"""Which of several kernels of one name a launch means.

Overloads are told apart by how many arguments they take, kernels of different namespaces by the launch's qualifier or
its own namespace. Where that leaves several, the launch counts for each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tree_sitter import Node

from warpwright.facts.launches import LaunchSite
from warpwright.facts.unit import FunctionText
from warpwright.syntax.nodes import ancestors, node_at, parameters_of
from warpwright.syntax.source import Source


def by_name(sites: Iterable[LaunchSite]) -> dict[str, list[LaunchSite]]:
    """The launches by the name that they launch, in their order."""
    found: dict[str, list[LaunchSite]] = {}
    for site in sites:
        found.setdefault(site.kernel, []).append(site)
    return found


def sites_of(
    text: FunctionText, namesakes: Sequence[FunctionText], sites: Mapping[str, list[LaunchSite]]
) -> list[LaunchSite]:
    """The launches of one kernel; `namesakes` are all kernels of its name, itself among them."""
    named = sites.get(text.name, [])
    return named if len(namesakes) < 2 else [site for site in named if text in _meant(namesakes, site)]


def _meant(namesakes: Sequence[FunctionText], site: LaunchSite) -> Sequence[FunctionText]:
    left = [text for text in namesakes if _takes(text, len(site.arguments))] or namesakes
    span = site.launch.span
    if span is None:
        return left
    qualifier = span.text.partition("<<<")[0].partition("<")[0].split("::")[:-1]
    qualifier = [part.strip() for part in qualifier if part.strip()]
    if qualifier:
        return [text for text in left if _namespaces(text.source, text.node)[-len(qualifier) :] == qualifier] or left
    here = _namespaces(span.source, node_at(span.source.closed_root, span.start, span.end))
    visible = [(path, text) for text in left if (path := _namespaces(text.source, text.node)) == here[: len(path)]]
    nearest = max((len(path) for path, _ in visible), default=0)
    return [text for path, text in visible if len(path) == nearest] or left


def _takes(text: FunctionText, arguments: int) -> bool:
    """Whether a call with so many arguments fits the kernel's parameters, some of which may have defaults."""
    parameters = [p for p in parameters_of(text.node) if text.source.node_text(p).strip() != "void"]
    needed = [p for p in parameters if p.type != "optional_parameter_declaration"]
    return len(needed) <= arguments <= len(parameters)


def _namespaces(source: Source, node: Node | None) -> list[str]:
    """The named namespaces around a node, outermost first.

    `namespace a::b` is two of them; one without a name is none.
    """
    found: list[str] = []
    for around in ancestors(node) if node is not None else ():
        name = around.child_by_field_name("name") if around.type == "namespace_definition" else None
        if name is not None:
            found = [part.strip() for part in source.node_text(name).split("::")] + found
    return found
