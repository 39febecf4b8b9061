"""What the rules share about interleaved reductions, whose strides double from step to step."""

from __future__ import annotations

import re
from collections.abc import Iterable

from warpwright.facts.model import Kernel
from warpwright.facts.types import builtin_type
from warpwright.rules.base import Fix
from warpwright.syntax.nodes import enclosing, node_at
from warpwright.syntax.source import Span

ADDRESS_SEQUENTIALLY = "Address sequentially: halve the stride each step and let the first lanes do the work."
"""What to do about an interleaved reduction, whichever of its costs was found."""
_DOUBLING = re.compile(r"(\w+)(?:\*=2[uU]?|<<=1|\+=\1|=\1\*2|=2\*\1|=\1<<1|=\1\+\1)")


def reduction_fix(kernel: Kernel, arrays: Iterable[str | None]) -> Fix:
    """Sequential addressing for a reduction of these arrays; safe where all hold integers, whose order is free."""
    named = set(arrays)
    kinds = [builtin_type(shared.element_type) for shared in kernel.shared_arrays if shared.name in named]
    exact = bool(kinds) and all(kind is not None and kind.is_integer for kind in kinds)
    return Fix("sequential-reduction-addressing", "Address the reduction sequentially", safe=exact)


def in_doubling_loop(span: Span) -> bool:
    """Whether the nearest `for` around a place doubles its variable, as interleaved reductions do."""
    node = node_at(span.source.root, span.start, span.end)
    loop = enclosing(node, "for_statement") if node is not None else None
    update = loop.child_by_field_name("update") if loop is not None else None
    return update is not None and _DOUBLING.fullmatch(re.sub(r"\s", "", span.source.node_code(update))) is not None
