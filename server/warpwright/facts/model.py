"""What is true of the kernels of one translation unit. Plain data; every reader shares these names, which is
why they stand in one module, past 400 lines.

Example: in `out[x * n + y]` with x from threadIdx.x, a warp's load is one Access with 32 active lanes, its addresses
(`Access.lanes`), and the sectors that they touch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from tree_sitter import Node

from warpwright.facts.resources import KernelResources
from warpwright.syntax.flags import Flags
from warpwright.syntax.source import Source, Span

WARP = 32
SECTOR_BYTES = 32
BANKS = 32
BANK_BYTES = 4
WIDEST = 16
"""Bytes of the widest access of one lane."""
MAX_THREADS_PER_BLOCK = 1024
ASSUMED_EXTENT = 4096
"""What a run-time number that the text does not give is taken to be."""
UNEVEN_EXTENT = 4093
"""The same where the question is what an uneven size does to a block: a prime."""


class Basis(StrEnum):
    """Where a number comes from."""

    EXACT = "exact"
    ASSUMED = "assumed"
    DATA_DEPENDENT = "data-dependent"
    UNKNOWN = "unknown"
    EMULATED = "emulated"
    MEASURED = "measured"


class Space(StrEnum):
    GLOBAL = "global"
    SHARED = "shared"
    LOCAL = "local"
    CONSTANT = "constant"


class AccessKind(StrEnum):
    LOAD = "load"
    STORE = "store"
    ATOMIC = "atomic"


class Divergence(StrEnum):
    """How a branch splits warps.

    boundary: only the warps at the edge of the data diverge (`if (i < n)`); partial: some warps; every-warp: all.
    """

    UNIFORM = "uniform"
    BOUNDARY = "boundary"
    PARTIAL = "partial"
    EVERY_WARP = "every-warp"
    DATA_DEPENDENT = "data-dependent"
    UNKNOWN = "unknown"


Dim3 = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A kernel parameter. `element_bytes` is of the pointed-to type for a pointer, of the value otherwise."""

    name: str
    type: str
    is_pointer: bool
    is_const: bool
    element_bytes: int | None
    span: Span


@dataclass(frozen=True, slots=True)
class SharedArray:
    """A __shared__ variable. `dims` is empty for a scalar and (None,) for `extern __shared__ T a[]`.

    `leaves_rows` is true where an index was seen past the end of its row, as in `tile[0][i]` with i up to the size of
    the whole array. `used_bytes` is where the highest byte ends that any thread of any launch touches; None unless each
    index is exact and every loop around one was followed to its end.
    """

    name: str
    element_type: str
    element_bytes: int | None
    dims: tuple[int | None, ...]
    dynamic: bool
    span: Span
    leaves_rows: bool = False
    used_bytes: int | None = None

    @property
    def bytes(self) -> int | None:
        """Static size in bytes; None where a part of it is unknown; 0 for a dynamic array."""
        if self.dynamic:
            return 0
        total = self.element_bytes
        for dim in self.dims:
            total = total * dim if total is not None and dim is not None else None
        return total


@dataclass(frozen=True, slots=True)
class HostLoop:
    """The innermost loop of the host function around a launch. `iterations` is None where the text does not say how
    often it is run, or does not say so for certain."""

    span: Span
    iterations: int | None


@dataclass(frozen=True, slots=True)
class Sweep:
    """The blocks of a launch whose loop changes them: the first one, the last one and how many. `last` is None where
    the loop's end is not known."""

    first: tuple[int | None, int | None, int | None]
    last: tuple[int | None, int | None, int | None] | None
    count: int


@dataclass(frozen=True, slots=True)
class Launch:
    """One `kernel<<<grid, block, shared, stream>>>(...)`, or the shape assumed where no launch is found.

    `span` is the whole call expression, None for an assumed shape. `source` says where the shape comes from, as
    `a.cu:41`, or `default`, or `__launch_bounds__`. `checked` is true where the launch's error is read afterwards.
    `loop` is None where it stands in no loop. `sweep` is that of which the block is one.
    """

    grid: tuple[int | None, int | None, int | None]
    block: tuple[int | None, int | None, int | None]
    dynamic_shared_bytes: int | None
    basis: Basis
    source: str
    span: Span | None = None
    checked: bool = True
    loop: HostLoop | None = None
    sweep: Sweep | None = None

    @property
    def threads(self) -> int | None:
        x, y, z = self.block
        return x * y * z if x is not None and y is not None and z is not None else None


@dataclass(frozen=True, slots=True)
class LaneAddresses:
    """Byte addresses of one request, by lane; None for a lane that is off. The worst request looked at."""

    warp: int
    block: Dim3
    addresses: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Structure:
    """The structures that an array holds: `bytes` from one to the next, each at a multiple of `align`."""

    name: str
    bytes: int
    align: int


@dataclass(frozen=True, slots=True)
class Access:
    """One memory access in the text, for one block shape. Counts are averages over the requests looked at.

    `addresses_per_request` is how many different addresses the active lanes want. `loop_step` is by how many bytes
    every active lane's address moves from one iteration of the innermost loop to the next: 0 where it stays, None where
    there is no loop or the lanes or iterations differ; `iterations` is how often one run of that loop comes here.
    `misaligned` is a request with an address that is not a multiple of the access's size, which faults; None where none
    is known. `structure` is what the array's elements are, None where they are numbers; `value_bytes` is the size of
    the value that is read or written, which moves in pieces of `bytes`, and `type` its name, such as "float".
    `by_thread` is false where nothing of the address depends on the thread within its block, which the compiler sees
    too. `run_time_index`: of a local array, whether a run-time value picks the element here.
    `thinned`, of an atomic: data decide which of the active lanes really come here. `reached` is false where none of
    the warps looked at comes here by the sizes that were assumed, so that nothing tells how often it runs.
    """

    span: Span
    expression: str
    array: str | None
    launch: int
    space: Space
    kind: AccessKind
    bytes: int
    basis: Basis
    active_lanes: float
    requests: int
    sectors_per_request: float | None
    ideal_sectors_per_request: float | None
    wavefronts_per_request: float | None
    ideal_wavefronts_per_request: float | None
    why: str
    lanes: LaneAddresses | None = None
    in_loop: bool = False
    joined: bool = False  # the compiler lets another access do it, whose counts these are
    idle: float = 0.0  # share of the requests in which a predicate leaves no lane on
    addresses_per_request: float | None = None
    iterations: float = 1.0
    loop_step: int | None = None
    misaligned: LaneAddresses | None = None
    structure: Structure | None = None
    value_bytes: int = 0
    type: str = ""
    by_thread: bool = True
    run_time_index: bool = False
    thinned: bool = False
    reached: bool = True

    @property
    def excess(self) -> float | None:
        """Transactions over the fewest possible; 1.0 is perfect. None where nothing was counted or another access
        does this one's work."""
        counts = self.transactions if not self.joined else None
        return counts[0] / counts[1] if counts is not None and counts[1] else None

    @property
    def transactions(self) -> tuple[float, float] | None:
        """Wavefronts of shared memory, else sectors, of a request with a lane on, and the fewest: the numbers of an
        access that people are shown, wherever it is. None where nothing was counted."""
        if self.space is Space.SHARED:
            got, ideal = self.wavefronts_per_request, self.ideal_wavefronts_per_request
        else:
            got, ideal = self.sectors_per_request, self.ideal_sectors_per_request
        if got is None or ideal is None:
            return None
        busy = 1 - self.idle if self.idle < 1 else 1
        return got / busy, ideal / busy


@dataclass(frozen=True, slots=True)
class Branch:
    """A condition that a warp evaluates. `span` is the condition; `statement` the whole if, loop or ?:.

    `sides` are the instructions of each side of an `if`, 1000 and more where a call, loop, atomic or barrier is among
    them; `predicated` where the compiler makes predicates of it, so that there is no branch and no warp splits.
    """

    span: Span
    statement: Span
    kind: str  # "if" | "for" | "while" | "do" | "switch" | "conditional"
    condition: str
    launch: int
    divergence: Divergence
    warps_diverging: float | None
    in_loop: bool
    why: str
    sides: tuple[int, ...] = ()
    predicated: bool = False


@dataclass(frozen=True, slots=True)
class Barrier:
    """A block-wide barrier. `divergent` is true where threads of one block are known to disagree about reaching it.

    `condition` is the innermost condition that splits the block, `reason` says how.
    """

    span: Span
    expression: str
    divergent: bool
    basis: Basis
    condition: Span | None
    reason: str


@dataclass(frozen=True, slots=True)
class Race:
    """Two threads that use the same bytes of an array, with nothing between that orders them.

    `write` is the place of the store, or atomic as `by` says, `other` of the other access, whose kind is `kind`;
    `threads` are the numbers in their `blocks` of those that do so, the writing one first, `turns` their iterations of
    a loop around both, from 0, where these differ, and `address` the bytes from the array's start. `in_warp` where they
    are lanes of one warp; `at_once` where these store in one instruction.
    """

    array: str
    space: Space
    write: Span
    other: Span
    kind: AccessKind
    by: AccessKind
    launch: int
    threads: tuple[int, int]
    blocks: tuple[Dim3, Dim3]
    turns: tuple[int, int] | None
    address: int
    in_warp: bool
    at_once: bool


@dataclass(frozen=True, slots=True)
class MissedWait:
    """A place where a thread waits for another that does not come: `threads` are their numbers in their `blocks`, the
    waiting one first. The other is None where the thread waits with a mask that leaves out the thread itself, or all
    threads wait: at a barrier that `wanted` threads open, of which `came` have come."""

    span: Span
    launch: int
    blocks: tuple[Dim3, Dim3]
    threads: tuple[int, int | None]
    came: int = 0
    wanted: int = 0


@dataclass(frozen=True, slots=True)
class DoubtfulWait:
    """A place where all lanes of a warp wait for each other, under a condition that is data which lanes read each for
    themselves."""

    span: Span
    condition: Span


@dataclass(frozen=True, slots=True)
class UnwrittenRead:
    """A thread that reads shared memory or an array of its own which nothing has written, or global memory that neither
    the host nor the kernel has, `address` bytes from the array's start."""

    span: Span
    array: str
    space: Space
    launch: int
    block: Dim3
    thread: int
    address: int


@dataclass(frozen=True, slots=True)
class OutOfBounds:
    """A thread whose access of `bytes` certainly lies outside of its array of `size` bytes: at `address`, from the
    array's start.

    `thread` is its number in its block. `supposed` is the size that the host function was taken to be called with; None
    where all follows from the text.
    """

    span: Span
    array: str
    kind: AccessKind
    launch: int
    block: Dim3
    thread: int
    address: int
    bytes: int
    size: int
    supposed: int | None = None


@dataclass(frozen=True, slots=True)
class Promotion:
    """An expression of floats that is computed in double because of literals such as 0.1 (`literals`, their places).

    `operations` are done in double, calls of `functions` among them; those that the compiler does in float because the
    result is the same are not counted. `comparison`: nothing but a comparison is double.
    """

    span: Span
    literals: tuple[Span, ...]
    operations: int
    functions: tuple[str, ...]
    comparison: bool
    in_loop: bool


@dataclass(frozen=True, slots=True)
class Division:
    """An integer `/` or `%` by a run-time value in a loop. `fixed_divisor`: the same at every iteration; `strided`: no
    loop around moves by less than a run-time value, as one that strides over the data by the size of the grid."""

    span: Span
    op: str
    dividend: str
    divisor: str
    bits: int
    signed: bool
    fixed_divisor: bool
    strided: bool


@dataclass(frozen=True, slots=True)
class Power:
    """A call of `pow` or `powf` with a constant exponent. `bits` of the result: 64 where it is computed in double."""

    span: Span
    base: Span
    exponent: float
    name: str
    base_type: str
    bits: int
    in_loop: bool


@dataclass(frozen=True, slots=True)
class RunFault:
    """What a run of the kernel did wrong at one place of its text. `kind` is a `facts.profile.FaultKind`, `message` one
    sentence for people.

    `threads` are (block, thread), the first that did it; of a race `other` is where the other access stands, and the
    last of `threads` is its thread. `address` is in bytes from the start of `array` where that is known. `basis` says
    who ran it, the grid, the block and the sizes what was launched.
    """

    kind: str
    span: Span
    message: str
    threads: tuple[tuple[Dim3, Dim3], ...]
    other: Span | None
    array: str | None
    address: int | None
    count: int
    basis: Basis
    grid: Dim3 | None
    block: Dim3 | None
    sizes: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class KernelRun:
    """A run of the kernel's very text: what was launched, the lines that accessed an array in some way, and what went
    wrong: the kinds of `facts.profile.FaultKind` and the lines, what may come of a guess included."""

    basis: Basis
    grid: Dim3
    block: Dim3
    sizes: tuple[tuple[str, int], ...]
    accessed: frozenset[tuple[str, int, Space, AccessKind, str | None]]
    faults: frozenset[str]
    faulty_lines: frozenset[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Callee:
    """A function that a kernel may call, itself or through others: any whose name occurs there."""

    name: str
    source: Source
    node: Node


@dataclass(frozen=True, slots=True)
class Kernel:
    """A `__global__` function, or (node None) one that is launched here and defined elsewhere."""

    name: str
    source: Source
    span: Span
    name_span: Span
    node: Node | None
    parameters: tuple[Parameter, ...] = ()
    callees: tuple[Callee, ...] = field(default=(), compare=False, repr=False)
    macros: Mapping[str, str] = field(default_factory=dict[str, str], compare=False, repr=False)
    """The bodies, without parameters, of the macros that the kernel and its callees may use, whatever file has them."""
    number_types: Mapping[str, str] = field(default_factory=dict[str, str], compare=False, repr=False)
    """The names that the user gave types of numbers, as in `typedef float real`, each with that type: those that it and
    its callees use."""
    sources: Mapping[str, Source] = field(default_factory=dict[str, Source], compare=False, repr=False)
    """The files of its unit."""
    again: Callable[[Source], Program] | None = field(default=None, compare=False, repr=False)
    """The facts about it with another version of one of its unit's files; None of a kernel that no analysis made."""
    shared_arrays: tuple[SharedArray, ...] = ()
    launches: tuple[Launch, ...] = ()
    launched_elsewhere: str = ""
    """Why files that are not read may launch it, one clause; empty where all of its launches are here."""
    accesses: tuple[Access, ...] = ()
    branches: tuple[Branch, ...] = ()
    barriers: tuple[Barrier, ...] = ()
    races: tuple[Race, ...] = ()
    outside: tuple[OutOfBounds, ...] = ()
    missed_waits: tuple[MissedWait, ...] = ()
    doubtful_waits: tuple[DoubtfulWait, ...] = ()
    unwritten: tuple[UnwrittenRead, ...] = ()
    faults: tuple[RunFault, ...] = ()
    """What runs of this very text did wrong; none where it was not run."""
    runs: tuple[KernelRun, ...] = ()
    promotions: tuple[Promotion, ...] = ()
    divisions: tuple[Division, ...] = ()
    powers: tuple[Power, ...] = ()
    incomplete: str | None = None  # why part of the kernel could not be followed, for people
    arch: str = "sm_90"
    compiled: tuple[KernelResources, ...] = ()
    """What the compiler says of each instance of it; none where it was not compiled, or has no instance."""
    carveout: int | None = 100
    """Percent of the L1 cache that the host lets be shared memory; None where it asks for a share that is not known."""

    @property
    def shared_bytes(self) -> int | None:
        """Static shared memory of one block in bytes; None where an extent is unknown."""
        total = 0
        for array in self.shared_arrays:
            if array.bytes is None:
                return None
            total += array.bytes
        return total


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What analysis takes for granted where the text is silent. `block`, and `blocks` by kernels' names, come from the
    user's settings. `defines` are macros by name; None for one that is taken away. `included` are files that are read
    before the text."""

    arch: str = "sm_90"
    block: Dim3 | None = None
    defines: Mapping[str, str | None] = field(default_factory=lambda: {})
    included: tuple[str, ...] = ()
    blocks: Mapping[str, Dim3] = field(default_factory=lambda: {})

    def block_of(self, kernel: str) -> Dim3 | None:
        """The block shape that the user gives for a kernel."""
        return self.blocks.get(kernel, self.block)

    def compiled_with(self, flags: Flags) -> Assumptions:
        """These and what the compiler's command line says; where both say something, these hold."""
        included = tuple(dict.fromkeys((*flags.included, *self.included)))
        return replace(self, defines={**flags.defines, **self.defines}, included=included)


@dataclass(frozen=True, slots=True)
class Program:
    """A translation unit: the file asked for and the quoted includes that were found, read with `assume`."""

    source: Source
    sources: Mapping[str, Source]
    kernels: tuple[Kernel, ...]
    assume: Assumptions = field(default_factory=Assumptions)
    unread_includes: tuple[tuple[Span, str], ...] = ()
    """Its includes that the analysis did not read, each with its place, those of the system among them."""

    @property
    def defined_kernels(self) -> tuple[Kernel, ...]:
        return tuple(k for k in self.kernels if k.node is not None)

    def kernel(self, name: str) -> Kernel | None:
        return next((k for k in self.kernels if k.name == name), None)
