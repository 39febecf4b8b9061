"""The launches of a unit by the kernel that they launch, read once, and kept over edits that they do not depend on."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock

from tree_sitter import Node

from warpwright.facts.launch_calls import launch_uses
from warpwright.facts.launches import HostReader, LaunchSite
from warpwright.facts.overloads import by_name
from warpwright.facts.steps import file_steps
from warpwright.facts.unit import FunctionText, Unit
from warpwright.syntax.nodes import enclosing
from warpwright.syntax.source import Source

MAX_UNITS = 16
Sites = Mapping[str, list[LaunchSite]]


@dataclass(slots=True)
class LaunchCache:
    """Launches by the host code that they were read from, each with the number of its place. They are kept without
    their spans, which would keep the text with them. Least recently used ones go first."""

    entries: OrderedDict[Hashable, tuple[list[tuple[int, LaunchSite]], bool]] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def sites(self, unit: Unit) -> tuple[list[LaunchSite], bool]:
        """The unit's launches, read anew only where something outside the bodies of kernels changed; whether they are
        all."""
        key = _host_code(unit)
        if key is None:
            return read_sites(unit)
        with self._lock:
            known = self.entries.get(key)
            if known is not None:
                self.entries.move_to_end(key)
        if known is not None:
            return _moved(unit, known[0]), known[1]
        sites, whole = read_sites(unit)
        kept = _without_text(unit, sites), whole
        with self._lock:
            self.entries[key] = kept
            while len(self.entries) > MAX_UNITS:
                self.entries.popitem(last=False)
        return sites, whole


def read_sites(unit: Unit) -> tuple[list[LaunchSite], bool]:
    """The unit's launches, and whether they are all: host code may nest too deeply, or take too many steps."""
    reader = HostReader(unit.reading(file_steps(unit.lines)))
    sites = list(reader.sites())
    return sites, reader.whole


@dataclass(slots=True)
class UnitLaunches:
    """Launches of one unit. A run-time number in them is taken to be the unit's `extent`."""

    cache: LaunchCache | None
    read: dict[tuple[int, bool], Sites] = field(default_factory=lambda: {})
    whole: bool = True  # of those read so far, none was left out

    def of(self, unit: Unit) -> Sites:
        """The unit's launches by kernel."""
        key = unit.extent, unit.supposes
        if key not in self.read:
            sites, whole = self.cache.sites(unit) if self.cache is not None else read_sites(unit)
            self.whole = self.whole and whole
            self.read[key] = by_name(sites)
        return self.read[key]


def _host_code(unit: Unit) -> Hashable | None:
    """All that launches depend on: the text without the bodies of kernels; None where device code launches too.

    Text that parses without an error has the same tree whatever stands in those bodies; for other text the tree is
    part of the answer.
    """
    if any(is_device_code(use.span.source, enclosing(use.node, "function_definition")) for use in launch_uses(unit)):
        return None
    bodies: dict[str, list[tuple[int, int]]] = {}
    for text in unit.kernels():
        body = text.node.child_by_field_name("body")
        if body is not None:
            bodies.setdefault(text.source.path, []).append((body.start_byte, body.end_byte))
    host = tuple((path, _without(source, bodies.get(path, []))) for path, source in unit.sources.items())
    trees = tuple(_outline(source) for source in unit.sources.values() if source.root.has_error)
    assume = unit.assume
    return unit.main.path, unit.extent, unit.supposes, assume.arch, tuple(assume.defines.items()), host, trees


def is_device_code(source: Source, function: Node | None) -> bool:
    """Whether a function is for the device; None is no function."""
    if function is None:
        return False
    body = function.child_by_field_name("body")
    head = source.code[function.start_byte : body.start_byte if body is not None else function.end_byte]
    return b"__global__" in head or b"__device__" in head


def _without(source: Source, bodies: list[tuple[int, int]]) -> bytes:
    out: list[bytes] = []
    at = 0
    for start, end in sorted(bodies):
        out.append(source.data[at:start])
        at = max(at, end)
    return b"".join([*out, source.data[at:]])


def _outline(source: Source) -> str:
    """The tree in short: of parts without an error, whose text is known, what they are and how long; a kernel's body is
    left out."""

    def short(child: Node) -> str:
        if child.has_error:
            return str(child)
        return child.type if _is_kernel(source, child) else f"{child.type}:{child.end_byte - child.start_byte}"

    return " ".join(map(short, source.closed_root.named_children))


def _is_kernel(source: Source, node: Node) -> bool:
    return node.type == "function_definition" and FunctionText("", node, source).is_kernel


def _without_text(unit: Unit, sites: list[LaunchSite]) -> list[tuple[int, LaunchSite]]:
    """A place may be several launches: a call in a host template, one in a loop, a macro's use."""
    numbers = {use.span: number for number, use in enumerate(launch_uses(unit))}
    return [
        (numbers[site.launch.span], replace(site, launch=replace(site.launch, span=None)))
        for site in sites
        if site.launch.span is not None
    ]


def _moved(unit: Unit, sites: list[tuple[int, LaunchSite]]) -> list[LaunchSite]:
    """The same launches where they stand now."""
    uses = list(launch_uses(unit))
    out: list[LaunchSite] = []
    for number, site in sites:
        span = uses[number].span
        out.append(replace(site, launch=replace(site.launch, span=span, source=f"{span.path}:{span.line}")))
    return out
