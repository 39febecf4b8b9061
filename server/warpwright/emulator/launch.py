"""Run a kernel: arrays in, arrays out, with what was counted and found on the way."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np

from warpwright.emulator.machine.batch import Batch
from warpwright.emulator.machine.effects import ACCESSES, stores_to
from warpwright.emulator.machine.faults import FoundFault, KernelFaultError, race_in
from warpwright.emulator.machine.memory import Allocation, GlobalMemory
from warpwright.emulator.machine.races import Watch
from warpwright.emulator.machine.reach import Reach
from warpwright.emulator.machine.special import GRID_BARRIER, MULTIPROCESSORS
from warpwright.emulator.machine.standstill import gone_on
from warpwright.emulator.machine.tallies import Tallies
from warpwright.emulator.program import MOST_SHARED_BYTES, Program
from warpwright.facts.model import Dim3
from warpwright.facts.profile import FaultKind, Thread
from warpwright.progress import IsCancelled, Progress, never_cancelled, silent

MOST_THREADS = 1024
MOST_BYTES = 8 << 30
MOST_KEPT_BYTES = 64 << 20
"""Global memory of which a copy is kept beside: some tens of milliseconds, and little beside `MOST_BYTES`."""

BATCH_LANES = 1 << 15
"""Lanes that step together: enough that the cost of a step is theirs, few enough that their values stay in cache."""

MOST_RESIDENT_LANES = MULTIPROCESSORS * 2048
"""Threads of blocks that wait for each other: as many as a GPU holds at once."""

MOST_LANE_STEPS = 5_000_000_000
"""Instructions of threads, each instruction with `STEP_LANES` more, one that accesses memory as `MEMORY_COST`: about a
minute."""

MEMORY_COST = 5
MOST_FAULTS = 200


class LaunchError(Exception):
    """A launch that cannot be made. The message says why."""


@dataclass(frozen=True, slots=True)
class ArrayArgument:
    """A pointer to an array of its own, `offset` bytes behind its start. `data` is any array; the kernel's view of it
    is its bytes. `role` is "in", "out" or "in-out": what an "out" array holds before is there, and counts as never
    written."""

    name: str
    data: Any
    role: str = "in-out"
    offset: int = 0


@dataclass(frozen=True, slots=True)
class PointerArgument:
    """A pointer into the array of another argument, `offset` bytes behind its start."""

    name: str
    array: str
    offset: int


@dataclass(frozen=True, slots=True)
class ScalarArgument:
    """An argument by value; `data` is its bytes."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class StructArgument:
    """A struct by value, `size` bytes long: its numbers and pointers at byte offsets, zeros between them."""

    name: str
    size: int
    members: tuple[tuple[int, ArrayArgument | PointerArgument | ScalarArgument], ...]


Argument = ArrayArgument | PointerArgument | ScalarArgument | StructArgument


@dataclass(frozen=True, slots=True)
class Launch:
    grid: Dim3
    block: Dim3
    dynamic_shared_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """What a launch left. `outputs` holds every array but those of role "in", with the type of the argument's data;
    where a fault ended the run, they are as far as it came and `is_complete` is False. `printed` is what each call of
    `printf` wrote, of the first ones. `changed_inputs` are the arrays of role "in" that do not hold what they held;
    `lane_steps` is what the run took of `most_lane_steps`; `changed_variables` are the module's `__device__` variables
    that do not hold what they held, `variables` what all of them hold at the end. Of a run of some blocks outputs and
    changes are left out. `reach` is what of global memory it touched, where that was asked for."""

    outputs: Mapping[str, Any]
    tallies: Tallies
    faults: tuple[FoundFault, ...]
    is_complete: bool
    printed: tuple[str, ...] = ()
    changed_inputs: tuple[str, ...] = ()
    lane_steps: int = 0
    changed_variables: frozenset[str] = frozenset()
    variables: Mapping[str, bytes] = field(default_factory=dict)
    reach: Reach | None = None


@dataclass(slots=True)
class Prepared:
    """One launch as its batches see it. `is_whole` says that all blocks of the grid are run. Where `awaited` is there,
    it gets a thread, a space and an address for each access to memory."""

    program: Program
    grid: Dim3
    block: Dim3
    dynamic_shared_bytes: int
    shared_bytes: int
    memory: GlobalMemory
    symbols: Mapping[str, int]
    parameters: bytes
    tallies: Tallies
    most_lane_steps: int
    is_cancelled: IsCancelled
    reach: Reach | None = None
    counts_traffic: bool = True
    atomic_order: np.random.Generator | None = None
    faults: dict[tuple[Any, ...], FoundFault] = field(default_factory=lambda: {})
    printed: list[str] = field(default_factory=lambda: [])
    spent: int = 0
    is_whole: bool = True
    awaited: dict[int, tuple[Thread, str, int]] | None = None
    began: Any = None
    """What global memory held when the kernel began, where threads may wait for it to change."""
    costs: tuple[int, ...] = field(init=False)
    read_only: frozenset[int] = field(init=False)
    """The loads through the read-only cache, which may not know what the launch writes."""
    watch: Watch = field(init=False)

    def __post_init__(self) -> None:
        self.watch = Watch(self)
        steps = self.program.steps
        self.read_only = frozenset(n for n, step in enumerate(steps) if step.opcode == "ld" and "nc" in step.modifiers)
        if self.read_only and stores_to(steps, "global"):
            self.memory.track_writes()
        weights = [MEMORY_COST if step.opcode in ACCESSES else 1 for step in steps]
        self.costs = tuple(sum(weights[n] for n in block) or 1 for block in self.program.block_steps)

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def shared_stride(self) -> int:
        """Bytes from the shared memory of one block to that of the next."""
        return -(-self.shared_bytes // 16) * 16

    def shared_place(self, place: int) -> tuple[str | None, int | None]:
        """The shared variable that a byte of a block's shared memory belongs to, and the bytes from its start."""
        starts = [(start, name) for name, start in self.program.shared.items() if start <= place]
        if place >= self.program.static_shared_bytes or not starts:
            variables = self.program.module.variables.values()
            dynamic = next((v.name for v in variables if v.space == "shared" and v.size is None), None)
            return dynamic, place - self.program.static_shared_bytes
        start, name = max(starts)
        return name, place - start

    def note(self, fault: FoundFault) -> None:
        """Keep a fault that the run goes on from; of those of one kind at one place the first, and the count of all.

        Two accesses that race across warps are not reported as ones that race within a warp too.
        """
        kind = race_in(fault.space) if fault.kind is FaultKind.MISSING_SYNCWARP else fault.kind
        key = (kind, fault.step, fault.other_step)
        first = self.faults.get(key)
        if first is not None:
            shown = first if first.kind is kind else fault
            self.faults[key] = replace(shown, count=first.count + fault.count)
        elif len(self.faults) < MOST_FAULTS:
            self.faults[key] = fault


def run(
    program: Program,
    launch: Launch,
    arguments: Sequence[Argument],
    *,
    variables: Mapping[str, bytes] | None = None,
    unwritten: Collection[str] = (),
    most_lane_steps: int = MOST_LANE_STEPS,
    with_reach: bool = False,
    with_traffic: bool = True,
    some_blocks: int | None = None,
    ranges: Sequence[tuple[int, int]] = (),
    atomic_order: int | None = None,
    progress: Progress = silent,
    is_cancelled: IsCancelled = never_cancelled,
) -> Run:
    """Launch a translated kernel. Its faults are part of the result. Raises LaunchError and CancelledError.

    `variables` are the bytes that variables of the module hold, as host code sets them; others have their own. Those
    that `unwritten` names count as memory that nothing has written, so that reading what they hold is a fault. Of the
    grid, `some_blocks` from its middle are run where that is given, for counts: nobody looks at what they left. Where
    there are `ranges`, the numbers of some blocks and how many begin with each, these alone are run, and inputs that
    change are not looked for. What memory instructions move is not counted without `with_traffic`. Lanes that add
    floats to one word together do so in lane order, or in the random order of the seed `atomic_order`: a GPU promises
    none.
    """
    is_kept = some_blocks is None
    prepared, placed = _prepare(
        program, launch, arguments, variables or {}, unwritten, most_lane_steps, is_cancelled, with_outputs=is_kept
    )
    prepared.counts_traffic = with_traffic
    if program.spins and prepared.memory.size <= MOST_KEPT_BYTES:
        prepared.began = prepared.memory.data.copy()
    if with_reach:
        prepared.reach = Reach(prepared.memory.size)
    if atomic_order is not None:
        prepared.atomic_order = np.random.default_rng(atomic_order)
    writable = {v.name for v in program.module.variables.values() if v.space == "global"}
    kept = [a for a in prepared.memory.allocations[len(placed) :] if a.name in writable]
    held = [prepared.memory.data[a.start : a.end].copy() for a in kept]
    span = program.cluster or 1
    per_batch = max(1, BATCH_LANES // (prepared.threads * span)) * span
    _keep_freed_memory()
    is_complete = True
    with np.errstate(all="ignore"):
        try:
            waiting: list[Batch] = []
            middle = min(some_blocks or prepared.blocks, prepared.blocks)
            stretches = _whole(ranges or [((prepared.blocks - middle) // 2, middle)], span)
            asked = left = sum(count for _, count in stretches)
            prepared.is_whole = asked == prepared.blocks
            batches = [(n, min(per_batch, s + c - n)) for s, c in stretches for n in range(s, s + c, per_batch)]
            for first, count in batches:
                progress(f"Emulating {program.kernel}", 1 - left / asked)
                while len(waiting) * per_batch * prepared.threads >= MOST_RESIDENT_LANES:
                    waiting = gone_on(prepared, waiting, left)
                waiting.append(Batch(prepared, first, count))
                waiting = [batch for batch in waiting if not batch.run()]
                left -= count
            while waiting:
                waiting = gone_on(prepared, waiting, 0)
            for fault in prepared.watch.unused.faults():
                prepared.note(fault)
            for argument, allocation in placed if prepared.is_whole else ():
                if argument.role == "out" and not prepared.memory.is_written(allocation):
                    prepared.note(FoundFault(FaultKind.UNUSED_RESULT, 0, "", space="global", array=argument.name))
        except KernelFaultError as error:
            prepared.note(error.fault)
            is_complete = False
    if not is_kept:
        placed, kept, held = [], [], []
    memory = prepared.memory
    outputs = {
        argument.name: memory.data[a.start : a.end].view(argument.data.dtype).reshape(argument.data.shape)
        for argument, a in placed
        if argument.role != "in"
    }
    if not ranges:  # large arrays, of which little was touched, are neither copied nor looked through
        outputs = {name: data.copy() for name, data in outputs.items()}
    changed = tuple(
        argument.name
        for argument, a in placed
        if not ranges
        and argument.role == "in"
        and not np.array_equal(memory.data[a.start : a.end], _bytes_of(argument))
    )
    return Run(
        outputs,
        prepared.tallies,
        tuple(prepared.faults.values()),
        is_complete,
        tuple(prepared.printed),
        changed,
        prepared.spent,
        frozenset(
            a.name for a, old in zip(kept, held, strict=True) if not np.array_equal(memory.data[a.start : a.end], old)
        ),
        {a.name: memory.data[a.start : a.end].tobytes() for a in kept},
        prepared.reach,
    )


def _whole(stretches: Sequence[tuple[int, int]], span: int) -> list[tuple[int, int]]:
    """Stretches (first, count) of blocks in rising order, made as long as needed that none ends within a cluster of
    `span` blocks; a block is in one of them alone.

    >>> _whole([(1, 2), (3, 14)], 4), _whole([(5, 1)], 1)
    ([(0, 4), (4, 16)], [(5, 1)])
    """
    found: list[tuple[int, int]] = []
    end = 0
    for start, count in sorted(stretches):
        first, end = max(end, start // span * span), max(end, -(-(start + count) // span) * span)
        if end > first:
            found.append((first, end - first))
    return found


def _bytes_of(argument: ArrayArgument) -> Any:
    return np.ascontiguousarray(argument.data).reshape(-1).view(np.uint8)


def _keep_freed_memory() -> None:
    """Have the C library keep the memory of freed arrays for the next ones.

    glibc returns large blocks to the system, and each step of a batch would have its pages made anew, which takes
    longer than its arithmetic. Freeing one block raises the size from which it does so to that block's (mallopt(3),
    M_MMAP_THRESHOLD: at most 32 MiB). Other C libraries are left as they are.
    """
    np.empty(31 << 20, np.uint8)


def _prepare(
    program: Program,
    launch: Launch,
    arguments: Sequence[Argument],
    given_variables: Mapping[str, bytes],
    unwritten: Collection[str],
    most_lane_steps: int,
    is_cancelled: IsCancelled,
    *,
    with_outputs: bool,
) -> tuple[Prepared, list[tuple[ArrayArgument, Allocation]]]:
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    shared_bytes = program.static_shared_bytes + launch.dynamic_shared_bytes
    if min(*launch.grid, *launch.block) < 1 or threads > MOST_THREADS:
        raise LaunchError(f"a grid of {launch.grid} blocks of {launch.block} threads cannot be launched")
    if program.cluster and launch.grid[0] % program.cluster:
        raise LaunchError(f"a grid of {launch.grid} blocks cannot be cut into clusters of {program.cluster}")
    for name, extents in program.module.functions[program.kernel].directives:
        if name in ("maxntid", "reqntid") and threads > prod(extents):
            raise LaunchError(f"it is compiled for at most {prod(extents):,} threads a block, and not for {threads:,}")
    if shared_bytes > MOST_SHARED_BYTES:
        raise LaunchError(f"{shared_bytes:,} bytes of shared memory are more than the {MOST_SHARED_BYTES:,} of a block")
    if len(arguments) != len(program.parameters):
        raise LaunchError(f"{program.kernel} takes {len(program.parameters)} arguments, not {len(arguments)}")
    arrays = [part for argument in arguments for part in _parts(argument) if isinstance(part, ArrayArgument)]
    wanted = sum(a.data.nbytes for a in arrays)
    if wanted > MOST_BYTES:
        raise LaunchError(f"the arrays take {wanted:,} bytes; the emulator takes at most {MOST_BYTES:,}")
    memory = GlobalMemory()
    placed = [(a, memory.allocate(a.name, a.data.nbytes, is_tracked=a.role != "in")) for a in arrays]
    variables = {
        v.name: memory.allocate(v.name, v.size or 0, is_constant=v.space == "const", is_tracked=v.space == "global")
        for v in program.module.variables.values()
        if v.space in {"global", "const"}
    }
    bank = memory.allocate("the parameters", program.parameter_bytes, is_constant=True)
    grid_barrier = memory.allocate(GRID_BARRIER, 64)
    try:
        memory.freeze()
    except MemoryError as error:
        raise LaunchError(f"the arrays take {wanted:,} bytes, for which there is no memory") from error
    for argument, allocation in placed:
        if argument.role != "out":
            memory.fill(allocation, _bytes_of(argument))
        elif with_outputs:
            memory.leave(allocation, _bytes_of(argument))
    symbols = {**_symbols(program, variables, bank), GRID_BARRIER: grid_barrier.address}
    memory.fill(grid_barrier, np.zeros(grid_barrier.size, dtype=np.uint8))
    for name, allocation in variables.items():
        content = _initial(program.module.variables[name], symbols)
        given_bytes = np.frombuffer(given_variables.get(name, b"")[: content.size], dtype=np.uint8)
        put = memory.leave if name in unwritten else memory.fill
        put(allocation, np.concatenate([given_bytes, content[given_bytes.size :]]))
    parameters = bytearray(program.parameter_bytes)
    addresses = {argument.name: allocation.address for argument, allocation in placed}
    for (offset, size), given in zip(program.parameters.values(), arguments, strict=True):
        passed = _content(given, addresses)
        if len(passed) != size:
            raise LaunchError(f"the argument {given.name} has {len(passed)} bytes where the kernel takes {size}")
        parameters[offset : offset + size] = passed
    memory.fill(bank, np.frombuffer(bytes(parameters), dtype=np.uint8))
    tallies = Tallies(tuple(len(steps) for steps in program.block_steps))
    prepared = Prepared(
        program,
        launch.grid,
        launch.block,
        launch.dynamic_shared_bytes,
        shared_bytes,
        memory,
        symbols,
        bytes(parameters),
        tallies,
        most_lane_steps,
        is_cancelled,
    )
    return prepared, placed


def _parts(argument: Argument) -> Sequence[ArrayArgument | PointerArgument | ScalarArgument]:
    return [part for _, part in argument.members] if isinstance(argument, StructArgument) else [argument]


def _content(argument: Argument, addresses: Mapping[str, int]) -> bytes:
    """An argument as it lies in the parameters."""
    if isinstance(argument, ArrayArgument):
        return (addresses[argument.name] + argument.offset).to_bytes(8, "little")
    if isinstance(argument, PointerArgument):
        return (addresses[argument.array] + argument.offset).to_bytes(8, "little")
    if isinstance(argument, ScalarArgument):
        return argument.data
    content = bytearray(argument.size)
    for offset, part in argument.members:
        given = _content(part, addresses)
        content[offset : offset + len(given)] = given
    return bytes(content)


def _symbols(program: Program, variables: Mapping[str, Allocation], bank: Allocation) -> dict[str, int]:
    """Addresses: of global memory as kernels see them, of shared and local memory from the start of their own."""
    symbols = {name: allocation.address for name, allocation in variables.items()}
    symbols |= {**program.shared, **program.local, **program.functions_at}
    symbols |= {name: bank.address + offset for name, (offset, _) in program.parameters.items()}
    for variable in program.module.variables.values():
        if variable.space == "shared" and variable.size is None:
            symbols[variable.name] = program.static_shared_bytes
    return symbols


def _initial(variable: Any, symbols: Mapping[str, int]) -> Any:
    content = bytearray(variable.initial or b"").ljust(variable.size or 0, b"\0")
    for offset, symbol in (variable.relocations or {}).items():
        content[offset : offset + 8] = (symbols[symbol.name] + symbol.offset).to_bytes(8, "little")
    return np.frombuffer(bytes(content), dtype=np.uint8)
