"""Which of several kernels of one name a launch means.

Overloads are told apart by how many arguments they take, kernels of different namespaces by the launch's qualifier or
its own namespace. Where that leaves several, the launch counts for each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from warpwright.facts.callees import namespaces
from warpwright.facts.launches import LaunchSite
from warpwright.facts.unit import FunctionText
from warpwright.syntax.nodes import node_at, parameters_of


def by_name(sites: Iterable[LaunchSite]) -> dict[str, list[LaunchSite]]:
    """The launches by the name that they launch, in their order."""
    found: dict[str, list[LaunchSite]] = {}
    for site in sites:
        found.setdefault(site.kernel, []).append(site)
    return found


def by_kernel(
    kernels: Iterable[FunctionText], sites: Mapping[str, list[LaunchSite]]
) -> dict[FunctionText, list[LaunchSite]]:
    """The launches of each kernel, in their order."""
    namesakes: dict[str, list[FunctionText]] = {}
    for text in kernels:
        namesakes.setdefault(text.name, []).append(text)
    found: dict[FunctionText, list[LaunchSite]] = {}
    for name, texts in namesakes.items():
        named = sites.get(name, [])
        if len(texts) == 1:
            found[texts[0]] = named
            continue
        arities = [(text, _arity(text), namespaces(text.source, text.node)) for text in texts]
        found |= {text: [] for text in texts}
        for site in named:
            for text in _meant(arities, site):
                found[text].append(site)
    return found


_Candidate = tuple[FunctionText, range, list[str]]
"""A kernel, how many arguments it takes, and its namespaces, outermost first."""


def _meant(namesakes: Sequence[_Candidate], site: LaunchSite) -> list[FunctionText]:
    left = [kernel for kernel in namesakes if len(site.arguments) in kernel[1]] or namesakes
    everyone = [text for text, _, _ in left]
    span = site.launch.span
    if span is None:
        return everyone
    if site.qualifier:
        return [t for t, _, path in left if tuple(path[-len(site.qualifier) :]) == site.qualifier] or everyone
    here = namespaces(span.source, node_at(span.source.closed_root, span.start, span.end))
    visible = [(path, text) for text, _, path in left if path == here[: len(path)]]
    nearest = max((len(path) for path, _ in visible), default=0)
    return [text for path, text in visible if len(path) == nearest] or everyone


def _arity(text: FunctionText) -> range:
    """How many arguments a call of the kernel may have: some of its parameters may have defaults."""
    parameters = [p for p in parameters_of(text.node) if text.source.node_code(p).strip() != "void"]
    needed = [p for p in parameters if p.type != "optional_parameter_declaration"]
    return range(len(needed), len(parameters) + 1)
