"""Facts of kernels that an edit did not touch, kept from one version of a file to the next.

What a kernel's facts depend on is its key: its text, the text of every function it can reach, the names they use, and
its launches. A hit is moved to where the kernel and those functions stand now.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import NamedTuple

from warpwright.facts.model import Kernel
from warpwright.facts.unit import FunctionText, Unit
from warpwright.facts.unit_launches import LaunchCache
from warpwright.syntax.source import Source, Span

MAX_KERNELS = 512
MAX_VERSIONS = 4
"""Versions of one kernel that are kept: an edit that is taken back finds the facts from before it."""
_NUMBER = re.compile(r"(?:un)?signed|int|long|short|char|float|double|bool|const|size_t|u?int\d+_t")
MAX_NAMES = 8
"""Names of types behind each other that are followed."""
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class _Entry:
    """Facts of one version of a kernel; its spans know their paths but not the texts, which would be kept with them."""

    kernel: Kernel
    functions: tuple[tuple[str, int, int], ...]  # (path, start, end) of the kernel and of what it reaches


@dataclass(slots=True)
class KernelCache:
    """Least recently used entries go first. One per document set; several threads may use it at once."""

    kernels: OrderedDict[tuple[str, str], OrderedDict[Hashable, _Entry]] = field(default_factory=OrderedDict)
    launches: LaunchCache = field(default_factory=LaunchCache)
    _lock: Lock = field(default_factory=Lock)

    def find(self, functions: list[FunctionText], key: Hashable) -> Kernel | None:
        """The facts under that key, moved to where the kernel and what it reaches stand; launches are the caller's."""
        place = _signature(functions[0])
        with self._lock:
            versions = self.kernels.get(place)
            entry = versions.get(key) if versions is not None else None
            if versions is None or entry is None:
                return None
            self.kernels.move_to_end(place)
            versions.move_to_end(key)
        return _moved(entry, functions)

    def keep(self, functions: list[FunctionText], key: Hashable, kernel: Kernel) -> None:
        spans = tuple((f.source.path, f.outer.start_byte, f.outer.end_byte) for f in functions)
        place, entry = _signature(functions[0]), _Entry(_without_text(kernel), spans)
        with self._lock:
            versions = self.kernels.setdefault(place, OrderedDict())
            versions[key] = entry
            while len(versions) > MAX_VERSIONS:
                versions.popitem(last=False)
            while len(self.kernels) > MAX_KERNELS:
                self.kernels.popitem(last=False)


PROCESS_CACHE = KernelCache()
"""Of a process in which the same texts are analysed for one purpose after another: to be fixed, and to be verified."""


def _signature(function: FunctionText) -> tuple[str, str]:
    """What stays of a kernel while its body is edited: its file and its head."""
    source, body = function.source, function.node.child_by_field_name("body")
    end = body.start_byte if body is not None else function.node.end_byte
    return source.path, source.text(function.outer.start_byte, end)


def kernel_key(unit: Unit, functions: list[FunctionText], launches: Hashable) -> Hashable:
    """All that a kernel's facts depend on; `functions` is what it reaches, itself first."""
    texts = tuple((f.source.path, f.name, f.source.node_text(f.outer)) for f in functions)
    names: set[str] = set()
    pending = {n for _, _, t in texts for n in _NAME.findall(t)}
    meanings: list[str] = []
    while pending:
        name = pending.pop()
        if name in names:
            continue
        names.add(name)
        for meaning in _meanings(unit, name):
            meanings.append(f"{name}={meaning}")
            pending |= set(_NAME.findall(meaning)) - names
    return unit.assume.arch, unit.assume.block_of(functions[0].name), texts, tuple(sorted(meanings)), launches


def _meanings(unit: Unit, name: str) -> Iterator[str]:
    if name in unit.macros:
        macro = unit.macros[name]
        yield f"{macro.parameters} {macro.body}"
    if name in unit.types:
        yield unit.types[name].source.node_text(unit.types[name].node)
    if name in unit.variables:
        yield unit.variables[name].source.node_text(unit.variables[name].declaration)
    if name in unit.enumerators:
        node, step, source = unit.enumerators[name]
        yield f"{source.node_text(node) if node is not None else ''}+{step}"


class Reached(NamedTuple):
    """What a function leads to: itself and those whose names occur in it or in what it reaches, macros' bodies
    included, nearest first; these macros' bodies without their parameters; names of types of numbers, each with the
    type that it stands for."""

    functions: list[FunctionText]
    macros: dict[str, str]
    number_types: dict[str, str]


def reached(unit: Unit, text: FunctionText) -> Reached:
    """All that the text of a function leads to in its unit."""
    out, seen, queue = [text], {text.name}, [text.source.node_text(text.outer)]
    macros: dict[str, str] = {}
    while queue:
        for name in dict.fromkeys(_NAME.findall(queue.pop())):
            if name in seen:
                continue
            seen.add(name)
            if name in unit.macros:
                macro = unit.macros[name]
                queue.append(macro.body)
                names = "|".join(map(re.escape, macro.parameters or ()))
                macros[name] = re.sub(rf"\b(?:{names})\b", " ", macro.body) if names else macro.body
            for function in (*unit.functions.get(name, []), *unit.methods.get(name, [])):
                if not function.is_kernel:
                    out.append(function)
                    queue.append(function.source.node_text(function.outer))
    return Reached(out, macros, {name: kind for name in sorted(seen) if (kind := _number(unit, name))})


def _number(unit: Unit, name: str, depth: int = 0) -> str:
    """The one of C's numbers that a name of a type stands for: `typedef unsigned int uint;`, `using real = double;`.
    Empty for another name."""
    named = unit.types.get(name)
    if named is None or named.template or depth > MAX_NAMES:
        return ""
    text = re.sub(rf"\b{re.escape(name)}\b", "", named.source.node_code(named.node))
    alias = re.fullmatch(r"(?:typedef|using\s*=)\s+([\w\s]+?)\s*;", text.strip())
    words = alias[1].split() if alias is not None else []
    kinds = [word if _NUMBER.fullmatch(word) else _number(unit, word, depth + 1) for word in words]
    return " ".join(kinds) if all(kinds) else ""


def _without_text(kernel: Kernel) -> Kernel:
    texts: dict[str, Source] = {}

    def place(span: Span) -> Span:
        return Span(texts.setdefault(span.path, Source(span.path, b"")), span.start, span.end)

    launches = tuple(replace(launch, span=None) for launch in kernel.launches)  # a hit's are those of the caller
    return replace(_placed(kernel, place), node=None, launches=launches)


def _moved(entry: _Entry, functions: list[FunctionText]) -> Kernel | None:
    if len(functions) != len(entry.functions):
        return None

    def move(span: Span) -> Span:
        for (path, start, end), function in zip(entry.functions, functions, strict=True):
            if span.path == path and start <= span.start <= end:
                shift = function.outer.start_byte - start
                return Span(function.source, span.start + shift, span.end + shift)
        raise LookupError(span)

    try:
        return replace(_placed(entry.kernel, move), node=functions[0].node)
    except LookupError:  # a fact stands outside the functions, in a constant's text say: count again
        return None


def _placed(kernel: Kernel, move: Callable[[Span], Span]) -> Kernel:
    """The kernel with every span of it moved; its node stays."""
    span = move(kernel.span)
    return replace(
        kernel,
        source=span.source,
        span=span,
        name_span=move(kernel.name_span),
        parameters=tuple(replace(p, span=move(p.span)) for p in kernel.parameters),
        shared_arrays=tuple(replace(a, span=move(a.span)) for a in kernel.shared_arrays),
        accesses=tuple(replace(a, span=move(a.span)) for a in kernel.accesses),
        branches=tuple(replace(b, span=move(b.span), statement=move(b.statement)) for b in kernel.branches),
        promotions=tuple(
            replace(p, span=move(p.span), literals=tuple(map(move, p.literals))) for p in kernel.promotions
        ),
        divisions=tuple(replace(d, span=move(d.span)) for d in kernel.divisions),
        powers=tuple(replace(p, span=move(p.span), base=move(p.base)) for p in kernel.powers),
        barriers=tuple(
            replace(b, span=move(b.span), condition=move(b.condition) if b.condition is not None else None)
            for b in kernel.barriers
        ),
        races=tuple(replace(r, write=move(r.write), other=move(r.other)) for r in kernel.races),
        outside=tuple(replace(o, span=move(o.span)) for o in kernel.outside),
        missed_waits=tuple(replace(w, span=move(w.span)) for w in kernel.missed_waits),
        doubtful_waits=tuple(replace(w, span=move(w.span), condition=move(w.condition)) for w in kernel.doubtful_waits),
        unwritten=tuple(replace(u, span=move(u.span)) for u in kernel.unwritten),
    )
