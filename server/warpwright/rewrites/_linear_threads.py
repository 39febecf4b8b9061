"""The thread's index in a grid of one dimension, `blockIdx.x * blockDim.x + threadIdx.x`, as a kernel writes it."""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.algebra.trials import Values, holds
from warpwright.rewrites._code import squeezed
from warpwright.rewrites._formulas import Formula
from warpwright.syntax.nodes import ancestors
from warpwright.syntax.source import Source

_LINEAR = re.compile(
    r"(?:blockIdx\.x\*(?P<a>[\w.]+)|(?P<b>[\w.]+)\*blockIdx\.x)\+threadIdx\.x"
    r"|threadIdx\.x\+(?:blockIdx\.x\*(?P<c>[\w.]+)|(?P<d>[\w.]+)\*blockIdx\.x)"
)
_ALL_THREADS = re.compile(r"gridDim\.x\*(?P<a>[\w.]+)|(?P<b>[\w.]+)\*gridDim\.x")
OTHER_AXES = frozenset({"blockIdx.y", "blockIdx.z", "gridDim.y", "gridDim.z"})
"""What all threads of a block with one dimension have in common."""
_CAST = re.compile(r"\((?:unsigned|int|unsignedint|size_t|long|longlong|u?int(?:32|64)_t)\)|static_cast<[\w:]+>")
_PARTS = frozenset(
    {
        "binary_expression", "field_expression", "cast_expression", "parenthesized_expression", "call_expression",
        "argument_list",
    }
)  # fmt: skip
"""What the number is written with, `static_cast<int>(...)` among them."""

BLOCK, SIZE, THREAD = "blockIdx.x", "blockDim.x", "threadIdx.x"
"""What the number is made of."""


def is_thread_number(number: Formula, fixed: Values | None = None) -> bool:
    """Whether a formula is the thread's index for every value tried of what it is made of, but for those of `fixed`,
    and of nothing else."""

    def is_thread(values: Values) -> bool:
        return number.value(values) == values[BLOCK] * values[SIZE] + values[THREAD]

    parts = frozenset({BLOCK, SIZE, THREAD})
    return number.symbols <= parts and holds(is_thread, parts, fixed)


def whole_number(source: Source, use: Node) -> Node | None:
    """The largest expression around a built-in variable that is the thread's index or the number of threads."""
    best: Node | None = None
    for node in ancestors(use):
        if node.type not in _PARTS:
            break
        if size_in(source, node):
            best = node
    return best


def size_in(source: Source, node: Node) -> str:
    """What stands for the size of the block in `blockIdx.x * blockDim.x + threadIdx.x` or `gridDim.x * blockDim.x`;
    empty for any other expression."""
    text = _CAST.sub("", squeezed(source.node_code(node)))
    text = re.sub(r"\(([\w.]+(?:\*[\w.]+)?)\)", r"\1", text)
    match = _LINEAR.fullmatch(text) or _ALL_THREADS.fullmatch(text)
    return next((size for size in match.groupdict().values() if size), "") if match else ""
