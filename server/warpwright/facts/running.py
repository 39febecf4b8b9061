"""Which warps of a launch are interpreted, and for how many others each stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

from warpwright.facts import ir
from warpwright.facts.calls import Overloads
from warpwright.facts.interpret import Interpreter
from warpwright.facts.launches import LaunchSite
from warpwright.facts.model import MAX_THREADS_PER_BLOCK, SECTOR_BYTES, WARP, Basis, Dim3, Launch
from warpwright.facts.position import Position
from warpwright.facts.predication import Key
from warpwright.facts.recorder import Recorder
from warpwright.facts.steps import OutOfStepsError, Steps
from warpwright.facts.unit import Unit
from warpwright.facts.values import ASSUMED, EXACT, AnyValue, Value
from warpwright.facts.warp_memory import MAX_STEPS, WarpContext
from warpwright.facts.warp_start import argument, warp_context

FIRST_WARPS = 8
"""Warps of the first block that are run before their cost is known."""
SLIGHT = 1e-3
"""The weight of a warp that is run for the code that only it reaches, in its block and of its block."""
FORCED_RUNS = 3
"""Runs in which conditions that were one-sided are followed both ways; each may come upon new ones."""
STEP_BUDGET = 20_000
"""Steps of the interpreter that one block shape of one kernel may take, at most."""
STEPS_BY_FILE = 320_000
STEPS_BY_LINE = 20
"""A large file's kernels share so many steps for the file and for each of its lines: a generated one ends too."""
LEAST_STEPS = 250
ALLOWANCE = MAX_STEPS // STEP_BUDGET
"""So many times the steps of one block shape are for a warp whose loops are long."""
SHAPE_SHARES = 2
"""So many times a kernel's share of the file's steps are for its block shapes together."""
KERNEL_SHARES = 9
"""So many times the steps of one block shape are for all shapes of a kernel, for what only some of its warps reach, and
for its text."""


def run_warps(
    unit: Unit, function: ir.Function, launch: Launch, site: LaunchSite | None, recorder: Recorder
) -> str | None:
    """Interpret a sample of warps; returns why the sample is not whole, if so."""
    block = tuple(extent or 1 for extent in launch.block)
    shape: Dim3 = (block[0], block[1], block[2])
    threads = shape[0] * shape[1] * shape[2]
    if not 0 < threads <= MAX_THREADS_PER_BLOCK:
        return f"a block of {threads} threads cannot be launched"
    arguments = [argument(parameter, unit.extent, i, site) for i, parameter in enumerate(function.parameters)]
    blocks = list(_sample_blocks(launch, unit.extent))
    warps = (threads + WARP - 1) // WARP
    run = _Run(
        unit, function, launch, shape, arguments, recorder, ASSUMED if launch.basis is not Basis.EXACT else EXACT
    )
    budget = unit.step_budget
    recorder.drifts = run.drifts(blocks[0][0], budget)
    first = FIRST_WARPS if budget == STEP_BUDGET else 2
    try:
        while blocks:
            block_index, block_weight, edge = blocks.pop(0)
            inside = tuple(
                (index, SECTOR_BYTES) if count is None else (index, count - 1) if index < count - 1 else None
                for index, count in zip(block_index, launch.grid, strict=True)
            )
            affordable = max(2, budget // (run.cost * (len(blocks) + 1))) if run.cost else first
            samples = _sample_warps(warps, affordable)
            while samples:
                warp, warp_weight = samples.pop(0)
                steps = run.warp(Position(block_index, warp, warp_weight, block_weight, edge, inside))
                if steps > budget:  # one warp has to stand for all
                    samples, blocks = [], []
                elif steps > budget // 4:  # the last warp stands for the others, the last block for the edge
                    samples = samples[-1:] and [(warps - 1, float(warps - 1))]
                    blocks = blocks[-1:]
        run.explore(_spread_blocks(launch), warps, budget)
    except OutOfStepsError:
        return None if unit.steps.spent else "one warp takes more steps than are followed"
    return None


@dataclass(slots=True)
class _Run:
    """What the interpreted warps of one launch have in common, and the steps of the dearest of them."""

    unit: Unit
    function: ir.Function
    launch: Launch
    shape: Dim3
    arguments: list[AnyValue]
    recorder: Recorder
    basis: int
    cost: int = 0
    starts: dict[str, Value] = field(default_factory=lambda: {})
    functions: dict[tuple[int, str], ir.Function] = field(default_factory=lambda: {})
    overloads: dict[ir.Call, Overloads] = field(default_factory=lambda: {})

    def warp(self, position: Position) -> int:
        """Interpret one warp; returns its steps. Raises OutOfStepsError where they are too many."""
        recorder = self.recorder
        context = warp_context(self.shape, self.launch, position, self.basis)
        interpreter = self._interpreter(recorder, context)
        position.guards = interpreter.guards
        recorder.begin_warp()
        alive = 0
        try:
            alive = interpreter.run(self.function, list(self.arguments))
        finally:
            self.unit.steps.take(interpreter.steps)
            recorder.flush()
            if recorder.records_barriers:  # one that explores is not compared with the warps of its block
                recorder.warps_seen.setdefault(position.block, {})[position.warp] = alive
        self.cost = max(self.cost, interpreter.steps)
        return interpreter.steps

    def _interpreter(self, recorder: Recorder, context: WarpContext, start: int = 0) -> Interpreter:
        interpreter = Interpreter(self.unit, recorder, context, self.starts, self.functions)
        interpreter.overloads = self.overloads
        interpreter.steps, interpreter.limit = start, min(MAX_STEPS, start + self.unit.steps.left)
        interpreter.allowance = min(MAX_STEPS, ALLOWANCE * self.unit.step_budget)
        return interpreter

    def drifts(self, block: Dim3, budget: int) -> dict[Key, list[int]]:
        """By how many bytes each access moves from this block to the next along each axis, where that is not a multiple
        of a sector: blocks inside of the grid differ in alignment then. They are compared by their first warp."""
        if all(count is not None and count <= 2 for count in self.launch.grid):
            return {}
        if budget < 2 * LEAST_STEPS:  # of so many kernels, blocks are not compared
            self.recorder.one_alignment = True
            return {}
        here = self._firsts(block, budget)
        out: dict[Key, list[int]] = {}
        for axis, count in enumerate(self.launch.grid):
            if count is not None and count <= 2:
                continue
            x, y, z = (i + (number == axis) for number, i in enumerate(block))
            for key, (at, active) in self._firsts((x, y, z), budget).items():
                if key in here and here[key][1] == active:
                    out.setdefault(key, [0, 0, 0])[axis] = at - here[key][0]
        return {key: steps for key, steps in out.items() if any(step % SECTOR_BYTES for step in steps)}

    def _firsts(self, block: Dim3, budget: int) -> dict[Key, tuple[int, int]]:
        """Where the accesses of a block's first warp start. With few steps left, loops run one iteration."""
        recorder = Recorder()
        context = warp_context(self.shape, self.launch, Position(block, 0, 1.0, 1.0, False), self.basis)
        start = MAX_STEPS - max(budget // 4, LEAST_STEPS)
        interpreter = self._interpreter(recorder, context, start)
        try:
            interpreter.run(self.function, list(self.arguments))
        except OutOfStepsError:
            self.recorder.one_alignment = True
        self.unit.steps.take(interpreter.steps - start)
        return recorder.firsts

    def explore(self, blocks: list[Dim3], warps: int, budget: int) -> None:
        """Find what no sampled warp did: in other blocks, and then by following both ways of what stayed one-sided.

        These warps weigh next to nothing, so that they tell of the code that they are the first to reach and leave
        the counts of the rest as they are.
        """
        self.recorder.records_barriers = False
        for number, block in enumerate(blocks):
            if self.recorder.unexplored and self.cost < budget // 2:
                budget -= self.warp(Position(block, (2 * number + 1) % warps, SLIGHT, SLIGHT, False))
        for run in range(FORCED_RUNS):
            unexplored = self.recorder.unexplored
            if unexplored and (run == 0 or self.cost < budget):
                self.recorder.forced |= unexplored
                budget -= self.warp(Position(blocks[0], 0, SLIGHT, SLIGHT, False))


def _spread_blocks(launch: Launch) -> list[Dim3]:
    """Blocks of the grid that lie far from each other, none of which is an edge."""
    extents = [
        extent if extent is not None else 1 + 4 * (threads != 1)
        for extent, threads in zip(launch.grid, launch.block, strict=True)
    ]
    shares = ((1, 3, 5), (5, 1, 3), (3, 5, 1), (7, 6, 2))
    return [(x * extents[0] // 8, y * extents[1] // 8, z * extents[2] // 8) for x, y, z in shares]


def step_share(unit: Unit) -> int:
    """A kernel's share of the file's steps. It goes in halves, so that hardly any edit changes it for all kernels."""
    even = (STEPS_BY_FILE + STEPS_BY_LINE * unit.lines) // max(1, sum(1 for _ in unit.kernels()))
    return _halved(16 * STEP_BUDGET, even)


def step_budget(share: int, shapes: int) -> int:
    """The steps of each block shape of a kernel with that share, of which so many are looked at.

    >>> step_budget(40_000, 1), step_budget(40_000, 4), step_budget(40_000, 5)
    (20000, 20000, 10000)
    """
    return _halved(STEP_BUDGET, min(share, SHAPE_SHARES * share // shapes))


def kernel_steps(share: int) -> Steps:
    """What a kernel with that share may take for all that is read and run of it."""
    return Steps(KERNEL_SHARES * min(share, STEP_BUDGET))


def _halved(steps: int, most: int) -> int:
    while steps > max(most, LEAST_STEPS):
        steps //= 2
    return steps


def _sample_blocks(launch: Launch, extent: int) -> Iterator[tuple[Dim3, float, bool]]:
    """(block, how many blocks it stands for, is it the last along an axis): an inner one, the first, and one of each
    edge and corner of the grid. Where `extent` is uneven, also the one that holds the end of so many elements."""
    end = [extent // (threads or 1) if threads != 1 else 0 for threads in launch.block]
    if None in launch.grid:
        inside = [int(threads != 1) for threads in launch.block]
        at = inside if extent % WARP == 0 else end
        x, y, z = (i if count is None else 0 for i, count in zip(at, launch.grid, strict=True))
        yield (x, y, z), 1.0, False
        return
    if extent % WARP:
        x, y, z = (min(i, (count or 1) - 1) for i, count in zip(end, launch.grid, strict=True))
        yield (x, y, z), 1.0, False
    along_x, along_y, along_z = (_classes(max(1, count or 1)) for count in launch.grid)
    blocks = [
        ((i, j, k), float(of_x * of_y * of_z), end_x or end_y or end_z)
        for (k, of_z, end_z), (j, of_y, end_y), (i, of_x, end_x) in product(along_z, along_y, along_x)
    ]
    inner, weight, edge = blocks[0]
    if inner == (0, 0, 0) or weight == 1:
        yield blocks[0]
    else:
        yield inner, weight - 1, edge
        yield (0, 0, 0), 1.0, False
    yield from blocks[1:]


def _classes(count: int) -> list[tuple[int, int, bool]]:
    """(index, how many it stands for, is it the last) of the blocks along one axis: one inside, and the last, which
    alone may stick out of the data.

    The one inside lies at the golden section: half way would often be where a row or an image begins, as no other does.

    >>> _classes(1), _classes(2), _classes(7), _classes(4096)[0]
    ([(0, 1, True)], [(0, 1, False), (1, 1, True)], [(4, 6, False), (6, 1, True)], (2531, 4095, False))
    """
    if count == 1:
        return [(0, 1, True)]
    return [(count * 618 // 1000 if count > 2 else 0, count - 1, False), (count - 1, 1, True)]


def _sample_warps(count: int, affordable: int) -> list[tuple[int, float]]:
    """(warp, how many warps it stands for): all, or the first, the last and some spread between them.

    >>> _sample_warps(3, 8), _sample_warps(32, 4)
    ([(0, 1.0), (1, 1.0), (2, 1.0)], [(0, 1.0), (10, 15.0), (21, 15.0), (31, 1.0)])
    """
    if count <= affordable:
        return [(warp, 1.0) for warp in range(count)]
    if affordable <= 2:
        return [(0, 1.0), (count - 1, float(count - 1))]
    inner = affordable - 2
    between = (
        [1 + (count - 2) * i // inner for i in range(inner)]
        if inner > 2
        else [count * (i + 1) // 3 for i in range(inner)]
    )
    return [(0, 1.0), *((warp, (count - 2) / inner) for warp in between), (count - 1, 1.0)]
