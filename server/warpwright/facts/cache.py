"""Facts of kernels that an edit did not touch, kept from one version of a file to the next.

What a kernel's facts depend on is its key: its text, the text of every function it can reach, the names they use, and
its launches. A hit is moved to where the kernel and those functions stand now.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace

from warpwright.facts.model import Kernel
from warpwright.facts.unit import FunctionText, Unit
from warpwright.facts.unit_launches import LaunchCache
from warpwright.syntax.source import Span

MAX_KERNELS = 512
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class _Entry:
    kernel: Kernel
    functions: tuple[tuple[str, int, int], ...]  # (path, start, end) of the kernel and of what it reaches


@dataclass(slots=True)
class KernelCache:
    """Least recently used entries go first. One per document set; not for several threads at once."""

    entries: OrderedDict[Hashable, _Entry] = field(default_factory=OrderedDict)
    launches: LaunchCache = field(default_factory=LaunchCache)

    def find(self, functions: list[FunctionText], key: Hashable) -> Kernel | None:
        """The facts under that key, moved to where the kernel and what it reaches stand; launches are the caller's."""
        entry = self.entries.get(key)
        if entry is None:
            return None
        self.entries.move_to_end(key)
        return _moved(entry, functions)

    def keep(self, functions: list[FunctionText], key: Hashable, kernel: Kernel) -> None:
        spans = tuple((f.source.path, f.outer.start_byte, f.outer.end_byte) for f in functions)
        self.entries[key] = _Entry(kernel, spans)
        while len(self.entries) > MAX_KERNELS:
            self.entries.popitem(last=False)


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
    return unit.assume.arch, unit.assume.block, texts, tuple(sorted(meanings)), launches


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


def reached(unit: Unit, text: FunctionText) -> list[FunctionText]:
    """The function and all whose names occur in it or in what it reaches, macros' bodies included, nearest first."""
    out, seen, queue = [text], {text.name}, [text.source.node_text(text.outer)]
    while queue:
        for name in dict.fromkeys(_NAME.findall(queue.pop())):
            if name in seen:
                continue
            seen.add(name)
            if name in unit.macros:
                queue.append(unit.macros[name].body)
            for function in (*unit.functions.get(name, []), *unit.methods.get(name, [])):
                if not function.is_kernel:
                    out.append(function)
                    queue.append(function.source.node_text(function.outer))
    return out


def _moved(entry: _Entry, functions: list[FunctionText]) -> Kernel | None:
    if len(functions) != len(entry.functions):
        return None
    text = functions[0]

    def move(span: Span) -> Span:
        for (path, start, end), function in zip(entry.functions, functions, strict=True):
            if span.path == path and start <= span.start <= end:
                shift = function.outer.start_byte - start
                return Span(function.source, span.start + shift, span.end + shift)
        raise LookupError(span)

    kernel = entry.kernel
    try:
        return replace(
            kernel,
            source=text.source,
            span=move(kernel.span),
            name_span=move(kernel.name_span),
            node=text.node,
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
        )
    except LookupError:  # a fact stands outside the functions, in a constant's text say: count again
        return None
