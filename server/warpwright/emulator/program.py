"""One kernel ready to run: its blocks as Python functions, and where its variables lie."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from warpwright.emulator.contract import contracted
from warpwright.emulator.flow import Block, blocks_of
from warpwright.emulator.inline import Flat, RecursionFoundError, flatten, function_addresses
from warpwright.emulator.kinds import DTYPES
from warpwright.emulator.merging import Merged, find_lines, merge, widths_of
from warpwright.emulator.ptx.model import Function, Instruction, Module, Variable
from warpwright.emulator.spins import spin_headers
from warpwright.emulator.translate.registry import UnsupportedError
from warpwright.emulator.translate.writer import Names, Writer, kind_of
from warpwright.toolchain.machine_code import MemoryInstruction

MOST_SHARED_BYTES = 227 << 10


@dataclass(frozen=True, slots=True)
class Program:
    """A kernel translated. `steps` are its instructions; a step is an index into them, in profiles and faults too.

    `registers` holds each register's first value. `shared` and `local` map a variable to its byte offset; the block's
    dynamic shared memory begins at `static_shared_bytes`. `parameters` maps each of the kernel's own to (offset, size).
    `spins` are the first blocks of loops that wait for other threads, `cluster` the blocks of a
    cluster, 0 where there are none. `merged` maps the first step of an access that
    the machine code has as one to it, and the other steps to None: they are counted with the first.
    """

    module: Module
    kernel: str
    steps: tuple[Instruction, ...]
    blocks: tuple[Block, ...]
    functions: tuple[Callable[..., Any], ...]
    block_steps: tuple[tuple[int, ...], ...]
    last_steps: tuple[int | None, ...]
    registers: tuple[Any, ...]
    numbers: Mapping[str, int]
    shared: Mapping[str, int]
    static_shared_bytes: int
    local: Mapping[str, int]
    local_bytes: int
    parameters: Mapping[str, tuple[int, int]]
    parameter_bytes: int
    functions_at: Mapping[str, int]
    spins: frozenset[int]
    cluster: int = 0
    merged: Mapping[int, Merged | None] = field(default_factory=dict)
    sha256: str = ""
    """Of the compiler's PTX."""


@dataclass(frozen=True, slots=True)
class Outline:
    """A kernel before its instructions are translated: its blocks in running order, and a step for each instruction."""

    flat: Flat
    blocks: tuple[Block, ...]
    steps: tuple[Instruction, ...]
    names: Names

    def writers(self) -> Iterator[Writer]:
        """What translates each block."""
        step_of = {id(instruction): step for step, instruction in enumerate(self.steps)}
        for block in self.blocks:
            yield Writer(block, self.names, step_of)


def outline(module: Module, kernel: str) -> Outline:
    """Raises KeyError for an unknown kernel, UnsupportedError for a recursive function, an unknown type, clusters that
    are not a row of blocks."""
    function = module.functions[kernel]
    if module.address_bits != 64:
        raise UnsupportedError(f"PTX with addresses of {module.address_bits} bits is not emulated")
    cluster = cluster_of(function)
    if any(name == "explicitcluster" for name, _ in function.directives) and cluster is None:
        raise UnsupportedError("a cluster whose size only the launch gives is not emulated")
    if cluster is not None and any(n > 1 for n in cluster[1:]):
        raise UnsupportedError(f"a cluster of {' x '.join(map(str, cluster))} blocks is not emulated")
    try:
        flat = flatten(module, function)
    except RecursionFoundError as error:
        raise UnsupportedError(f"the recursive function {error} is not emulated") from error
    blocks = tuple(blocks_of(contracted(flat.body), flat.branch_targets))
    steps = tuple(i for block in blocks for i in block.instructions)
    kinds = {name: kind_of(kind) for name, kind in flat.registers.items()}
    stored = {name: kind if kind == "b1" else f"u{kind[1:]}" for name, kind in kinds.items()}
    numbers = {name: i for i, name in enumerate(stored)}
    parameter_names = [p.name for p in function.parameters]
    names = Names(numbers, stored, parameter_names, cluster is not None, {"where": np.where, "own": _own})
    return Outline(flat, blocks, steps, names)


def cluster_of(function: Function) -> tuple[int, ...] | None:
    """The blocks of a kernel's clusters along x, y and z, as its text gives them; None where it gives none."""
    return next((extents for name, extents in function.directives if name == "reqnctapercluster"), None)


def translate(module: Module, kernel: str) -> Program:
    """Make a kernel of the module ready to run. Raises KeyError for an unknown one and UnsupportedError by name."""
    function = module.functions[kernel]
    begun = outline(module, kernel)
    flat, blocks, steps, names = begun.flat, begun.blocks, begun.steps, begun.names
    step_of = {id(instruction): step for step, instruction in enumerate(steps)}
    text = "\n\n".join(writer.write() for writer in begun.writers())
    space: dict[str, Any] = names.objects
    exec(compile(text, f"<{kernel}>", "exec"), space)
    shared, shared_bytes = _lay_out(_shared_variables(module, flat))
    private = [v for v in flat.variables.values() if v.space in {"local", "param"}]
    local, local_bytes = _lay_out(private)
    parameters, parameter_bytes = _parameters(function.parameters)
    return Program(
        module,
        kernel,
        steps,
        blocks,
        tuple(space[f"block_{block.index}"] for block in blocks),
        tuple(tuple(step_of[id(i)] for i in block.instructions) for block in blocks),
        tuple(None if b.last is None else step_of[id(b.last)] for b in blocks),
        tuple(DTYPES[kind](0) for kind in names.kinds.values()),
        names.numbers,
        shared,
        shared_bytes,
        local,
        local_bytes,
        parameters,
        parameter_bytes,
        function_addresses(module),
        spin_headers(blocks),
        (cluster_of(function) or (0,))[0],
    )


def as_machine_code(program: Program, code: Sequence[MemoryInstruction]) -> Program:
    """The program with its accesses counted at the widths and lines that ptxas gave them; what it computes stays."""
    blocks = [[program.steps[step] for step in steps] for steps in program.block_steps]
    found = merge(blocks, widths_of(code))
    places = find_lines(blocks, code, found)
    steps = tuple(replace(i, place=places[n]) if n in places else i for n, i in enumerate(program.steps))
    merged: dict[int, Merged | None] = dict.fromkeys(member for one in found for member in one.members)
    return replace(program, steps=steps, merged=merged | {one.members[0]: one for one in found})


def _own(value: Any) -> Any:
    """A value that no other register holds, so that it may be changed in place."""
    return value if value.ndim == 0 else value.copy()


def _shared_variables(module: Module, flat: Flat) -> list[Variable]:
    everywhere = [*module.variables.values(), *flat.variables.values()]
    return [v for v in everywhere if v.space == "shared" and v.size is not None]


def _lay_out(variables: Iterable[Variable]) -> tuple[dict[str, int], int]:
    """Offsets in the order of declaration, each at its alignment, and the bytes in all."""
    offsets: dict[str, int] = {}
    end = 0
    for variable in variables:
        end = -(-end // variable.align) * variable.align
        offsets[variable.name] = end
        end += variable.size or 0
    return offsets, -(-end // 16) * 16


def _parameters(parameters: Iterable[Variable]) -> tuple[dict[str, tuple[int, int]], int]:
    """Where each kernel parameter lies in the parameter space (PTX ISA, "Kernel Function Parameters")."""
    placed: dict[str, tuple[int, int]] = {}
    end = 0
    for parameter in parameters:
        size = parameter.size or 0
        end = -(-end // parameter.align) * parameter.align
        placed[parameter.name] = (end, size)
        end += size
    return placed, end
