"""Whether kernels keep to what is asked beside their values: device memory, shared memory, tensor cores."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from warpwright.facts.occupancy import ARCHITECTURES, architecture_number
from warpwright.formulas.extents import at_sizes, strides_at
from warpwright.formulas.model import Formula, Tensor
from warpwright.formulas.types import TYPES
from warpwright.progress import IsCancelled
from warpwright.syntax.encoding import encoded
from warpwright.syntax.source import Source
from warpwright.toolchain.compilation import Compiled, CompiledPtx
from warpwright.toolchain.compile import compile_cubin, compile_ptx
from warpwright.toolchain.names import instance_of
from warpwright.verify.formulas import Written
from warpwright.writer.code import Code, Launch, taken
from warpwright.writer.coverage import sizes_of

_TENSOR_CORES = re.compile(r"^\s*(?:@!?%\w+ )?(?:wgmma\.mma_async|mma\.sync|wmma\.mma)", re.MULTILINE)
ALIGNMENT = 256
"""Of arrays in the workspace, and of what cudaMalloc hands out."""
MOST_NAMED = 6
"""Arrays in a sentence, the largest; `numbers` has all."""
AT_ONCE = 2
"""Compilations."""


Sized = tuple[Written, Mapping[str, int]]
"""Kernels, and the sizes at which they are launched."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for. `sizes` are those that a sentence names, `held` is what is in memory when most is, in
    bytes by name."""

    sizes: Mapping[str, int]
    held: Mapping[str, int]
    most_bytes: int | None = None
    tensor_cores: bool = False


@dataclass(frozen=True, slots=True)
class Limit:
    """One thing that was asked for: `text` is a sentence with the numbers, which `numbers` has by name."""

    what: str
    holds: bool
    text: str
    numbers: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {"what": self.what, "holds": self.holds, "text": self.text, **self.numbers}


def array_bytes(formula: Formula, sizes: Mapping[str, int]) -> dict[str, int]:
    """Of each array that a caller hands over, up to its last element.

    >>> from warpwright.formulas.resolve import formula_of
    >>> array_bytes(formula_of("x: f16[R, C](ld, 1), y[r] = sum[c] x[r, c]"), {"R": 2, "C": 3, "ld": 8})
    {'x': 22, 'y': 4}
    """
    found: dict[str, int] = {}
    for each in formula.tensors.values():
        count = _elements(each, sizes) * TYPES[each.type].bits // 8
        found[each.array] = max(found.get(each.array, 0), count)
    return found


def _elements(tensor: Tensor, sizes: Mapping[str, int]) -> int:
    shape = [at_sizes(each, sizes) for each in tensor.extents]
    if 0 in shape:
        return 0
    strides = strides_at(tensor, shape, sizes)
    return 1 + tensor.offset + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))


def held_by(made: Written, sizes: Mapping[str, int]) -> dict[str, int]:
    """The arrays of a formula, and the workspace where there is one."""
    held = array_bytes(made.formula, sizes)
    workspace = workspace_bytes(made.code, sizes_of(made.code, made.formula, sizes))
    return {**held, "workspace": workspace} if workspace else held


def workspace_bytes(code: Code, sizes: Mapping[str, int]) -> int:
    """What the workspace function of the code gives; `sizes` by the code's names."""
    arrays = (_elements(each, sizes) * TYPES[each.type].bits // 8 for each in code.temporaries)
    return sum(-(-each // ALIGNMENT) * ALIGNMENT for each in arrays)


def launches_on(code: Code, sizes: Mapping[str, int], arch: str) -> Iterator[Launch]:
    """What the launch function launches for arrays that are aligned as cudaMalloc does, on a GPU of `arch`: a path that
    asks for more shared memory than it has is not taken there. `sizes` by the code's names."""
    most = _most_shared(arch)
    for step in code.steps:
        fit = [each for each in step.paths if all(launch.shared_at(sizes) <= most for launch in each.launches)]
        path = taken(replace(step, paths=tuple(fit)), sizes, {})
        yield from path.launches if path is not None else ()


def limits_of(parts: Sequence[Sized], asked: Wanted, arch: str, is_cancelled: IsCancelled) -> list[Limit]:
    """What was asked for, each with whether it holds for all the parts, which are launched one after the other; with a
    limit on memory comes that of shared memory. Raises CancelledError."""
    found: list[Limit] = []
    if asked.most_bytes is not None:
        found.append(_memory(asked, asked.most_bytes))
    if asked.most_bytes is not None or asked.tensor_cores:
        launched = list(_launched(parts, arch, is_cancelled))
        found += [_shared(launched, arch)] if asked.most_bytes is not None and launched else []
        found += [_tensor_cores(launched, arch)] if asked.tensor_cores else []
    return found


@dataclass(frozen=True, slots=True)
class _Launched:
    kernel: str
    shared_bytes: int
    uses_tensor_cores: bool


def _launched(parts: Sequence[Sized], arch: str, is_cancelled: IsCancelled) -> Iterator[_Launched]:
    """Each launch, with what nvcc makes of its kernel; none of a part that it does not compile."""
    texts = dict.fromkeys(part.text for part, _ in parts)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        compiled = dict(zip(texts, pool.map(lambda text: _compiled(text, arch, is_cancelled), texts), strict=True))
    for part, sizes in parts:
        own = sizes_of(part.code, part.formula, sizes)
        ptx, code = compiled[part.text]
        for launch in launches_on(part.code, own, arch) if ptx.ok and code.ok else ():
            name = instance_of(ptx.kernels, launch.kernel, launch.arguments) or ""
            resources = instance_of(code.kernels, launch.kernel, launch.arguments)
            static = resources.shared_bytes if resources is not None else 0
            uses = _TENSOR_CORES.search(_body(ptx.text, name)) is not None
            yield _Launched(launch.kernel, static + launch.shared_at(own), uses)


def _compiled(text: str, arch: str, is_cancelled: IsCancelled) -> tuple[CompiledPtx, Compiled]:
    source = Source("formula.cu", encoded(text))
    ptx = compile_ptx(source, arch=arch, is_cancelled=is_cancelled)
    return ptx, compile_cubin(source, arch=arch, is_cancelled=is_cancelled, reads=())


def _body(ptx: str, name: str) -> str:
    found = re.search(rf"\.entry {re.escape(name)}\(.*?^\}}$", ptx, re.MULTILINE | re.DOTALL)
    return found[0] if found is not None else ""


def _memory(asked: Wanted, most_bytes: int) -> Limit:
    total = sum(asked.held.values())
    at = ", ".join(f"{name} = {number}" for name, number in asked.sizes.items())
    largest = sorted(asked.held.items(), key=lambda each: -each[1])
    named = [f"{name} {size:,}" for name, size in largest[:MOST_NAMED]]
    others = sum(size for _, size in largest[MOST_NAMED:])
    parts = ", ".join([*named, *([f"others {others:,}"] if others else [])])
    verb = "fit in" if total <= most_bytes else "do not fit in"
    said = f"{total:,} bytes of device memory{f' at {at}' if at else ''} ({parts}) {verb} {most_bytes:,}"
    return Limit("memory", total <= most_bytes, said, {"bytes": total, "most_bytes": most_bytes, "held": asked.held})


def _shared(launched: Sequence[_Launched], arch: str) -> Limit:
    most, found = _most_shared(arch), max(each.shared_bytes for each in launched)
    verb = "fit in" if found <= most else "do not fit in"
    said = f"{found:,} bytes of shared memory in a block {verb} the {most:,} of {arch}"
    return Limit("shared memory", found <= most, said, {"bytes": found, "most_bytes": most})


def _tensor_cores(launched: Sequence[_Launched], arch: str) -> Limit:
    using = [each.kernel for each in launched if each.uses_tensor_cores]
    named = ", ".join(dict.fromkeys(using))
    said = f"{len(using)} of {len(launched)} launches use tensor cores on {arch}{f' ({named})' if named else ''}"
    return Limit("tensor cores", bool(using), said, {"launches": len(launched), "with_tensor_cores": len(using)})


def _most_shared(arch: str) -> int:
    return ARCHITECTURES[architecture_number(arch)].shared_bytes_per_block
