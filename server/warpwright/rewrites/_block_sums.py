"""What many threads add atomically to one address, put together within warps and blocks: the lines for it."""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from warpwright.facts.model import WARP, Kernel
from warpwright.facts.types import CType
from warpwright.rewrites._accumulate import combined, neutral
from warpwright.rewrites._code import host_launches
from warpwright.rewrites._layout import free_name, indent_unit
from warpwright.syntax.nodes import descendants
from warpwright.syntax.source import Source


@dataclass(frozen=True, slots=True)
class AtomicSum:
    """An atomic at an address of `root`, which is `shared` or not. `outer` is the statement at the kernel's outermost
    level around it, `typed` its type as written; `several` where that is a template's, which can be another one at each
    launch."""

    call: Node
    statement: Node
    outer: Node
    function: str
    operation: str
    address: Node
    value: Node
    root: str
    shared: bool
    kind: CType
    typed: str
    several: bool

    @property
    def start(self) -> str:
        """The number that changes nothing, as it is written."""
        return "0" if self.several else neutral(self.operation, self.kind)


def step(found: AtomicSum, name: str, other: str) -> str:
    """The statement that puts another part to one."""
    return combined(found.operation, "", found.kind, name, other)


def has_some(kernel: Kernel, found: AtomicSum, name: str) -> str:
    """Whether a part holds anything, where a block that brings nothing may have an address beyond the array's end; ""
    where the address does not move, and an atomic of nothing does no harm."""
    fixed = {found.root, *(parameter.name for parameter in kernel.parameters)}
    moves = any(kernel.source.node_text(each) not in fixed for each in descendants(found.address, "identifier"))
    return f"{name} != {found.start}" if moves else ""


def warp_lines(kernel: Kernel, block: Node, found: AtomicSum, name: str, tests: list[str], some: str) -> list[str]:
    """The parts of a warp put together, and one lane's atomic."""
    rows = [launch.block for launch in host_launches(kernel)]
    number, _ = _thread(kernel)
    if all(x is not None and x % WARP == 0 for x, _, _ in rows):
        number = "threadIdx.x"
    lane = f"{number if number == 'threadIdx.x' else f'({number})'} % {WARP} == 0"
    return [
        *_shuffles(kernel, block, found, name),
        f"if ({' && '.join([lane, *tests, *filter(None, [some])])})",
        indent_unit(kernel.source, block) + _atomic(kernel.source, found, name),
    ]


def block_lines(kernel: Kernel, block: Node, found: AtomicSum, name: str, tests: list[str], some: str) -> list[str]:
    """The parts of a block put together, and one thread's atomic."""
    unit, parts = indent_unit(kernel.source, block), free_name(kernel.span.code, f"{name}s")
    warp = free_name(kernel.span.code, "warp")
    number, count = _thread(kernel)
    thread = number if number == "threadIdx.x" else free_name(kernel.span.code, "thread")
    return [
        *([f"int {thread} = {number};"] if thread != number else []),
        f"__shared__ {found.typed} {parts}[{WARP}];",
        *_shuffles(kernel, block, found, name),
        f"if ({thread} % {WARP} == 0)",
        f"{unit}{parts}[{thread} / {WARP}] = {name};",
        "__syncthreads();",
        f"if ({' && '.join([f'{thread} == 0', *tests])}) {{",
        f"{unit}for (int {warp} = 1; {warp} < {count} / {WARP}; {warp}++)",
        unit * 2 + step(found, name, f"{parts}[{warp}]"),
        *([f"{unit}if ({some})"] if some else []),
        unit * (2 if some else 1) + _atomic(kernel.source, found, name),
        "}",
    ]


def _thread(kernel: Kernel) -> tuple[str, str]:
    """A thread's index in its block, in the order in which warps are made of threads, and how many there are."""
    most = [max(launch.block[axis] or 1 for launch in host_launches(kernel)) for axis in range(3)]
    if most[2] > 1:
        number = "(threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x"
        return number, "blockDim.x * blockDim.y * blockDim.z"
    if most[1] > 1:
        return "threadIdx.y * blockDim.x + threadIdx.x", "blockDim.x * blockDim.y"
    return "threadIdx.x", "blockDim.x"


def _shuffles(kernel: Kernel, block: Node, found: AtomicSum, name: str) -> list[str]:
    offset = free_name(kernel.span.code, "offset")
    return [
        f"for (int {offset} = {WARP // 2}; {offset} > 0; {offset} /= 2)",
        indent_unit(kernel.source, block) + step(found, name, f"__shfl_down_sync(0xffffffff, {name}, {offset})"),
    ]


def _atomic(source: Source, found: AtomicSum, name: str) -> str:
    return f"{found.function}({source.node_text(found.address)}, {name});"
