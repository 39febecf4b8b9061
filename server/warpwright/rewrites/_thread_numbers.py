"""What in a kernel can depend on which thread runs it, other than through an index."""

from __future__ import annotations

import re
from collections.abc import Container

from tree_sitter import Node

from warpwright.cuda.functions import called_name
from warpwright.facts.model import Kernel
from warpwright.rewrites._code import callees_of, macros_of, naming
from warpwright.rewrites._threads import known_call
from warpwright.syntax.nodes import descendants
from warpwright.syntax.source import Source

NUMBER = re.compile(r"\b(?:threadIdx|blockIdx|blockDim|gridDim|warpSize)\b")
OF_GRID = re.compile(r"\b(?:blockIdx|gridDim)\b")
"""Which block it is, and of how many."""
WARP_LEVEL = re.compile(
    r"\b(?:__shfl\w*|__ballot\w*|__any\w*|__all\w*|__match\w*|__reduce\w*|__syncwarp|__activemask|warpSize|asm"
    r"|cooperative_groups|cg|wmma|mma_sync|__nanosleep)\b"
)
_TIED = re.compile(f"{NUMBER.pattern}|{WARP_LEVEL.pattern}")
_CALL = re.compile(r"\b(?!(?:if|for|while|switch|return|sizeof)\b)([A-Za-z_]\w*)\s*\(")


def calls_by_number(kernel: Kernel, block: Node) -> str:
    """What the kernel calls, itself or through other functions, that can depend on the thread's index; else empty."""
    source, functions = kernel.source, callees_of(kernel)
    texts = macros_of(kernel)
    macros = naming(texts, _TIED)
    followed: set[str] = set()
    waiting = _called(block, source, texts)
    while waiting:
        name = waiting.pop()
        if name in followed:
            continue
        followed.add(name)
        if name in texts and name not in macros:
            waiting += [called for text in texts[name] for called in _CALL.findall(text)]
        elif not (name in functions or known_call(name) or name in kernel.number_types):
            callee = name or "something"
            return f"{kernel.name} calls {callee}, which is not in this file and may read the thread's index."
        for file, function in functions.get(name, ()):
            callee = file.node_code(function)
            number = NUMBER.search(callee) or any(re.search(rf"\b{re.escape(m)}\b", callee) for m in macros)
            if number or WARP_LEVEL.search(callee) or "__shared__" in callee:
                return f"{kernel.name} calls {name}, which depends on the thread's index."
            waiting += _called(function, file, texts)
    return ""


def _called(node: Node, source: Source, macros: Container[str]) -> list[str]:
    """Names that are called below a node, and macros that are used there without arguments."""
    calls = [called_name(call, source) for call in descendants(node, "call_expression")]
    return calls + [word for name in descendants(node, "identifier") if (word := source.node_text(name)) in macros]
