"""Where kernels are defined and launched: symbols of a document, and the ways between a kernel and its launches. What
C++ itself names is clangd's, which goes beside this server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from warpwright.editor.analysis import Analysis
from warpwright.facts.document import dims_text
from warpwright.facts.model import Kernel, Launch
from warpwright.syntax.encoding import encoded
from warpwright.syntax.source import Span


@dataclass(frozen=True, slots=True)
class Symbol:
    """A kernel, or (`is_launch`) one of its launches. `name_span` lies in `span`."""

    name: str
    detail: str
    span: Span
    name_span: Span
    is_launch: bool


def symbols(analysis: Analysis) -> list[Symbol]:
    """The kernels that the document defines, and the launches in it, in the order of the text."""
    path = analysis.source.path
    found = [_kernel(kernel) for kernel in analysis.program.defined_kernels if kernel.span.path == path]
    found += [
        _launch(kernel, launch, span)
        for kernel in analysis.program.kernels
        for launch, span in launches(kernel)
        if span.path == path
    ]
    return sorted(found, key=lambda symbol: (symbol.span.start, symbol.span.end))


def kernel_at(analysis: Analysis, offset: int) -> Kernel | None:
    """The kernel whose name, or whose launch up to its arguments, is at this place of the document."""
    path = analysis.source.path
    for kernel in analysis.program.kernels:
        places = [_head(kernel, span) for _, span in launches(kernel)]
        if kernel.node is not None:
            places.append(kernel.name_span)
        if any(place.path == path and place.start <= offset <= place.end for place in places):
            return kernel
    return None


def launches(kernel: Kernel) -> Iterator[tuple[Launch, Span]]:
    """Each launch that is seen, once."""
    seen: set[tuple[str, int, int]] = set()
    for launch in kernel.launches:
        if launch.span is not None and launch.span.key not in seen:
            seen.add(launch.span.key)
            yield launch, launch.span


def _kernel(kernel: Kernel) -> Symbol:
    blocks = ", ".join(dict.fromkeys(dims_text(launch.block) for launch, _ in launches(kernel)))
    return Symbol(kernel.name, f"block {blocks}" if blocks else "no launch found", kernel.span, kernel.name_span, False)


def _launch(kernel: Kernel, launch: Launch, span: Span) -> Symbol:
    detail = f"grid {dims_text(launch.grid)}, block {dims_text(launch.block)}"
    return Symbol(f"{kernel.name}<<<...>>>", detail, span, _head(kernel, span), True)


def _head(kernel: Kernel, span: Span) -> Span:
    """The kernel's name in a launch; the whole launch where it stands elsewhere, as in `cudaLaunchKernel`."""
    name = encoded(kernel.name.rsplit("::", 1)[-1])
    start = span.source.data.find(name, span.start, span.end)
    return Span(span.source, start, start + len(name)) if start >= 0 else span
