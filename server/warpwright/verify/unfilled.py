"""Arrays that a candidate's host code no longer fills: `cudaMemset(bins, 0, bytes)` is gone, and nothing else writes
`bins` before the launch. A kernel that reads such an array reads what the allocation happened to give.

It is said only where the whole of it is in the text: the array is one that host code allocates, and every other mention
of it is a launch of this kernel, a free, or a copy from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tree_sitter import Node

from warpwright.cuda.sites import launch_sites
from warpwright.facts.model import Program
from warpwright.problems.allocations import pointer_name
from warpwright.syntax.nodes import ancestors, descendants, is_argument
from warpwright.syntax.source import Source
from warpwright.verify.host_code import HostDifference

_FILL = re.compile(r"\bcuda(?:Memset|Memcpy)(?:Async)?\s*\(([^,]+),")
_ALLOCATES = re.compile(r"cudaMalloc(?:Async|Managed)?")
_FREES = re.compile(r"cudaFree(?:Async)?")
_COPIES = re.compile(r"cudaMemcpy(?:Async)?")


def unfilled_arrays(old: Program, new: Program, kernel: str, differences: Sequence[HostDifference]) -> tuple[str, ...]:
    """The parameters of the original's kernel that are such an array at some launch of the candidate's text."""
    gone = {pointer_name(found[1]) for each in differences if each.is_gone and (found := _FILL.search(each.text))} - {
        ""
    }
    mine, theirs = old.kernel(kernel), new.kernel(kernel)
    if not gone or mine is None or theirs is None:
        return ()
    sources = [*new.sources.values()]
    sites = [site for site in launch_sites(sources, kernel) if len(site.arguments) == len(mine.parameters)]
    empty = {name for name in gone if _is_left_empty(sources, name, [site.call for site in sites])}
    return tuple(
        dict.fromkeys(
            parameter.name
            for site in sites
            for parameter, argument in zip(mine.parameters, site.arguments, strict=False)
            if parameter.is_pointer and pointer_name(site.source.node_code(argument)) in empty
        )
    )


def _is_left_empty(sources: Sequence[Source], name: str, launches: Sequence[Node]) -> bool:
    """Whether host code allocates an array and never writes it, but by these launches."""
    uses = [(source, use) for source in sources for use in _uses(source, name)]
    allocated = [is_argument(source, use, _ALLOCATES) for source, use in uses]
    return any(allocated) and all(
        is_allocated or _is_declared(use) or any(each in launches for each in ancestors(use)) or _is_read(source, use)
        for is_allocated, (source, use) in zip(allocated, uses, strict=True)
    )


def _uses(source: Source, name: str) -> Iterator[Node]:
    """The mentions of a variable in host code, and of any of its name."""
    for use in descendants(source.root, "identifier", "preproc_arg"):
        if use.type == "preproc_arg":
            if re.search(rf"\b{re.escape(name)}\b", source.node_code(use)):
                yield use
        elif source.node_code(use) == name and not _is_on_device(use):
            yield use


def _is_on_device(use: Node) -> bool:
    around = [each for each in ancestors(use) if each.type == "function_definition"]
    return any(child.type in ("__global__", "__device__") for each in around for child in each.children)


def _is_declared(use: Node) -> bool:
    """Whether a variable is declared there without a value, or with none to speak of."""
    around = [each for each in ancestors(use) if each.type in ("declaration", "init_declarator", "call_expression")]
    return bool(around) and around[0].type == "declaration"


def _is_read(source: Source, use: Node) -> bool:
    """Whether it is freed, or copied from."""
    return is_argument(source, use, _FREES) or is_argument(source, use, _COPIES, 1)
