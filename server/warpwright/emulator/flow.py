"""A kernel's PTX as basic blocks in the order in which waiting lanes run them.

Calls are replaced by the text of the function that they call, so that a kernel is one graph. Lanes of a warp that went
different ways meet again where the hardware lets them: a block runs when no lane that could still come to it is
earlier in the order. The order keeps each loop together, its header first and everything behind the loop after it, and
a lane that goes back to a header waits for those that are still inside the loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from warpwright.emulator.ptx.model import Instruction, Label, Operand, Register, Symbol

ENDS = {"bra", "brx", "ret", "exit", "trap"}


@dataclass(frozen=True, slots=True)
class Goto:
    """Where lanes go next: the block, and the rank at which they wait for it."""

    block: int
    rank: float


@dataclass(slots=True)
class Block:
    """Straight code. `last` is the instruction that decides where lanes go: a branch, an end or a barrier, or None.

    What the lanes of a warp do together (see `is_meeting`) is at most the first instruction of `body`. `next` is where
    lanes go that no branch takes elsewhere, None behind an end; `taken` holds a branch's targets. `live_out` are
    the registers that code behind reads before it writes them.
    """

    index: int
    body: list[Instruction]
    last: Instruction | None = None
    next: Goto | None = None
    taken: tuple[Goto, ...] = ()
    live_out: frozenset[str] = frozenset()
    successors: tuple[int, ...] = ()

    @property
    def instructions(self) -> list[Instruction]:
        """The body and `last`."""
        return self.body if self.last is None else [*self.body, self.last]


def is_barrier(instruction: Instruction) -> bool:
    """Whether lanes stop here until others come: `bar.sync`, `barrier.cta.red`, `barrier.cluster.wait`,
    `mbarrier.try_wait` and so on, not `bar.arrive`."""
    kinds = set(instruction.modifiers)
    if instruction.opcode == "mbarrier":
        return bool(kinds & {"try_wait", "test_wait"})
    if instruction.opcode not in {"bar", "barrier"}:
        return False
    return "wait" in kinds if "cluster" in kinds else bool(kinds & {"sync", "red"}) and "warp" not in kinds


def is_meeting(instruction: Instruction) -> bool:
    """Whether lanes of a warp, those of its member mask, do this together: `shfl.sync`, `vote.sync`, `bar.warp.sync`.

    Such an instruction begins a block, so that lanes that come early can wait for the others.
    """
    if instruction.opcode in {"bar", "barrier"}:
        return "warp" in instruction.modifiers
    return instruction.opcode in {"shfl", "vote", "match", "redux"} and "sync" in instruction.modifiers


def ends_block(instruction: Instruction) -> bool:
    return instruction.opcode in ENDS or is_barrier(instruction)


def blocks_of(body: Iterable[Instruction | Label], indexed: Mapping[str, tuple[str, ...]]) -> list[Block]:
    """The basic blocks of a body without calls, in running order; the first is where every lane starts.

    `indexed` maps the name of a `.branchtargets` list to its labels. Raises KeyError for a label that is not there.
    """
    blocks, labels = _cut(body)
    _connect(blocks, labels, indexed)
    order, last_of_loop = _running_order([block.successors for block in blocks])
    rank_of = {old: rank for rank, old in enumerate(order)}
    ordered = [blocks[old] for old in order]
    for rank, block in enumerate(ordered):
        block.index = rank

        def goto(old: int, source: int = rank) -> Goto:
            new = rank_of[old]
            return Goto(new, last_of_loop[old] + 0.5 if new <= source else float(new))

        block.next = None if block.next is None else goto(block.next.block)
        block.taken = tuple(goto(t.block) for t in block.taken)
        block.successors = tuple(rank_of[s] for s in block.successors)
    _find_live(ordered)
    return ordered


def _cut(body: Iterable[Instruction | Label]) -> tuple[list[Block], dict[str, int]]:
    blocks = [Block(0, [])]
    labels: dict[str, int] = {}
    for item in body:
        current = blocks[-1]
        if isinstance(item, Label):
            if current.body or current.last is not None:
                current = Block(len(blocks), [])
                blocks.append(current)
            labels[item.name] = current.index
            continue
        if current.last is not None or (current.body and is_meeting(item)):
            current = Block(len(blocks), [])
            blocks.append(current)
        if ends_block(item):
            current.last = item
        else:
            current.body.append(item)
    return blocks, labels


def _connect(blocks: Sequence[Block], labels: Mapping[str, int], indexed: Mapping[str, tuple[str, ...]]) -> None:
    for block in blocks:
        last = block.last
        behind = block.index + 1 if block.index + 1 < len(blocks) else None
        falls = last is None or last.guard is not None or is_barrier(last)
        if falls and behind is not None:
            block.next = Goto(behind, 0.0)
        if last is not None and last.opcode == "bra":
            block.taken = (Goto(labels[_symbol(last.operands[0])], 0.0),)
        elif last is not None and last.opcode == "brx":
            block.taken = tuple(Goto(labels[name], 0.0) for name in indexed[_symbol(last.operands[1])])
        targets = [*([block.next] if block.next else []), *block.taken]
        block.successors = tuple(dict.fromkeys(t.block for t in targets))


def _symbol(operand: Operand) -> str:
    match operand:
        case Symbol(name, _) | Register(name):
            return name
    raise KeyError(str(operand))


def _running_order(successors: Sequence[tuple[int, ...]]) -> tuple[list[int], dict[int, int]]:
    """Nodes that are reached, each loop in one piece with its header first, and for each header its loop's last rank.

    A weak topological order. Source: F. Bourdoncle, "Efficient chaotic iteration strategies with widenings", 1993.
    """
    order: list[int] = []
    last: dict[int, int] = {}

    def place(components: Sequence[tuple[set[int], int]]) -> None:
        for component, entry in components:
            order.append(entry)
            if len(component) > 1:
                place(_components(entry, component - {entry}, successors)[1:])
            last[entry] = len(order) - 1

    place(_components(0, set(range(len(successors))), successors))
    return order, last


def _components(start: int, allowed: set[int], successors: Sequence[tuple[int, ...]]) -> list[tuple[set[int], int]]:
    """Strongly connected components that `start` reaches within `allowed`, in topological order, with their entries.

    A `start` that is not allowed itself is left but never entered again, so it comes first and alone. Tarjan's
    algorithm without recursion; an entry is the node of a component that was found first.
    """
    number: dict[int, int] = {start: 0}
    low: dict[int, int] = {start: 0}
    stack, on_stack = [start], {start}
    work = [(start, iter(successors[start]))]
    found: list[tuple[set[int], int]] = []
    while work:
        node, following = work[-1]
        for follower in following:
            if follower not in allowed:
                continue
            if follower not in number:
                number[follower] = low[follower] = len(number)
                stack.append(follower)
                on_stack.add(follower)
                work.append((follower, iter(successors[follower])))
                break
            if follower in on_stack:
                low[node] = min(low[node], number[follower])
        else:
            work.pop()
            if work:
                parent = work[-1][0]
                low[parent] = min(low[parent], low[node])
            if low[node] == number[node]:
                component: set[int] = set()
                while node not in component:
                    component.add(stack.pop())
                on_stack -= component
                found.append((component, node))
    return found[::-1]


def registers_in(operand: Operand) -> Iterable[str]:
    """The names of the registers that stand in an operand."""
    match operand:
        case Register(name):
            yield name
        case _:
            for part in ("base", "first", "second", "operand"):
                inner = getattr(operand, part, None)
                if isinstance(inner, Register):
                    yield inner.name
            for item in getattr(operand, "items", ()):
                yield from registers_in(item)


WRITES_NOTHING = {"st", "red", "bra", "brx", "ret", "exit", "trap", "membar", "fence", "prefetch", "bar", "barrier"}


def reads_and_writes(instruction: Instruction) -> tuple[set[str], set[str]]:
    """Registers that an instruction reads and writes. A guarded one reads what it writes: other lanes keep theirs.

    >>> from warpwright.emulator.ptx.model import Guard
    >>> add = Instruction("add", ("u32",), (Register("%r1"), Register("%r2"), Register("%r3")), None, None, 1)
    >>> reads, writes = reads_and_writes(add)
    >>> sorted(reads), sorted(writes)
    (['%r2', '%r3'], ['%r1'])
    """
    operands = instruction.operands
    reads: set[str] = set()
    writes: set[str] = set()
    first_is_result = has_result(instruction)
    for place, operand in enumerate(operands):
        is_memory = hasattr(operand, "base")
        (writes if place == 0 and first_is_result and not is_memory else reads).update(registers_in(operand))
    if instruction.opcode == "wgmma":
        reads |= writes
    if instruction.guard is not None:
        reads.add(instruction.guard.register)
        reads |= writes
    return reads, writes


def has_result(instruction: Instruction) -> bool:
    """Whether the first operand is a destination."""
    if instruction.opcode in {"bar", "barrier"}:
        return "red" in instruction.modifiers
    if instruction.opcode == "cp":
        return False
    return instruction.opcode not in WRITES_NOTHING


def _find_live(blocks: Sequence[Block]) -> None:
    """Fill in `live_out`: the usual backward equations, to their fixed point."""
    uses: list[set[str]] = []
    kills: list[set[str]] = []
    for block in blocks:
        used: set[str] = set()
        killed: set[str] = set()
        for instruction in block.instructions:
            reads, writes = reads_and_writes(instruction)
            used |= reads - killed
            killed |= writes
        uses.append(used)
        kills.append(killed)
    live_in = [frozenset(u) for u in uses]
    live_out: list[frozenset[str]] = [frozenset()] * len(blocks)
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            i = block.index
            out = frozenset().union(*(live_in[s] for s in block.successors)) if block.successors else frozenset()
            into = frozenset(uses[i] | (out - kills[i]))
            if out != live_out[i] or into != live_in[i]:
                live_out[i], live_in[i] = out, into
                changed = True
    for block in blocks:
        block.live_out = live_out[block.index]
