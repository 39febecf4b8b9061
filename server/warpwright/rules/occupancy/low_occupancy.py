"""The block's shape or shared memory leaves most of a multiprocessor's warps unused.

## Why is this bad?

A multiprocessor hides the latency of one warp behind the work of others. It holds up to 48 or 64 warps, but also no
more than 16 to 32 blocks, and no more blocks than its shared memory has room for. Blocks of 32 threads reach half of
the warps at best; blocks of 128 threads with 40 KB each, a third.

## Example

```cuda
__global__ void blur(float *out, const float *in, int n) {
  __shared__ float window[34];
  int i = blockIdx.x * 32 + threadIdx.x;
  window[threadIdx.x + 1] = in[i];
  if (threadIdx.x == 0) {
    window[0] = in[i - 1];
    window[33] = in[i + 32];
  }
  __syncthreads();
  out[i] = window[threadIdx.x] + window[threadIdx.x + 1] + window[threadIdx.x + 2];
}

void run(float *out, const float *in, int n) {
  blur<<<n / 32, 32>>>(out, in, n);
}
```

## Use instead

```cuda
__global__ void blur(float *out, const float *in, int n) {
  __shared__ float window[130];
  int i = blockIdx.x * 128 + threadIdx.x;
  window[threadIdx.x + 1] = in[i];
  if (threadIdx.x == 0) {
    window[0] = in[i - 1];
    window[129] = in[i + 128];
  }
  __syncthreads();
  out[i] = window[threadIdx.x] + window[threadIdx.x + 1] + window[threadIdx.x + 2];
}

void run(float *out, const float *in, int n) {
  blur<<<n / 128, 128>>>(out, in, n);
}
```

## Limits

- A hint: kernels that keep much in registers and shared memory, matrix products above all, run best at low occupancy.
- Said under 60%, where the number of warps can be raised by what the finding names: more threads per block, less shared
  memory per block, or a size that fills the multiprocessor evenly.
- Where the file was compiled (`check --compile`, and editors in the background), registers, shared memory and barriers
  are the compiler's and the occupancy is the driver's own, with the nearest step that raises it: at most a quarter of
  the registers, half of the shared memory, or a block of another size, whose shared memory is taken to stay or to grow
  with it, whichever leaves fewer warps; and an eighth more warps at least. Without a compile registers are not counted,
  since the text does not give them: the true occupancy can be lower.
- A grid too small to fill the machine is not judged, and neither is a launch whose block or shared memory the text does
  not give, or whose block is one of several that a loop tries.
- Blocks of fewer than 32 threads are partial-warp-block's.
- There is no fix to press where blocks share memory or wait for each other: the kernel's indices follow their shape.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, prod

from warpwright.facts.compiled import LaunchOccupancy, occupancies
from warpwright.facts.lifts import Footprint, cause_words, lift_words, percent, size_words
from warpwright.facts.model import MAX_THREADS_PER_BLOCK, WARP, Basis, Kernel, Launch
from warpwright.facts.occupancy import ARCHITECTURES, Occupancy, architecture_number, occupancy
from warpwright.rules.base import Finding, Fix, Severity
from warpwright.syntax.source import Span

severity = Severity.HINT

LOW = 0.6
"""Share of the multiprocessor's warps below which it is said."""
GAIN = 1 / 8
"""How many more warps, as a share of those now, a step has to bring."""
LEAST_LEFT = 1 / 2
"""Share of its shared memory that a block would have to keep; what has to give up more is another kernel."""
MULTIPROCESSORS = 32
"""A grid of fewer blocks than this many times the blocks that fit on one multiprocessor leaves most GPUs unfilled."""


def check(kernel: Kernel) -> Iterator[Finding]:
    yield from _of_compiled(kernel) if kernel.compiled else _of_text(kernel)


def _of_compiled(kernel: Kernel) -> Iterator[Finding]:
    """Of each launch the instance that fits least, where a step within reach lets more in."""
    worst: dict[Span, LaunchOccupancy] = {}
    for each in occupancies(kernel):
        span = each.launch.span
        low = each.occupancy.fraction < LOW and each.basis is Basis.EXACT and each.occupancy.blocks
        if span is None or not low or not _fills(each.launch, each.occupancy) or each.footprint.threads < WARP:
            continue
        if each.launch.sweep is not None:
            continue
        if span not in worst or each.occupancy.fraction < worst[span].occupancy.fraction:
            worst[span] = each
    said: set[Footprint] = set()
    for span, each in worst.items():
        steps = [step for step in each.lifts if step.occupancy.fraction >= (1 + GAIN) * each.occupancy.fraction]
        if not steps or each.footprint in said:
            continue
        said.add(each.footprint)
        now, footprint = each.occupancy, each.footprint
        instance = f" {each.resources.name}:" if len(kernel.compiled) > 1 else ""
        ways = "; ".join(lift_words(footprint, step) for step in steps)
        yield Finding(
            span=span,
            message=(
                f"Occupancy is {percent(now.fraction)}% on {footprint.arch}:{instance} {cause_words(footprint)}\n"
                f"{ways[0].upper()}{ways[1:]}."
            ),
            gain=1 - now.fraction,
            evidence={
                "occupancy": round(now.fraction, 4),
                "limiters": list(now.limiters),
                "blocks_per_multiprocessor": now.blocks,
                "warps_per_multiprocessor": now.warps,
                "instance": each.resources.name,
                "registers": footprint.registers,
                "threads": footprint.threads,
                "shared_bytes": footprint.shared_bytes,
                "arch": footprint.arch,
                "basis": each.basis.value,
                "source": "compiler",
            },
            fixes=(*_fixes(kernel), *(_BOUNDS for step in steps[:1] if step.registers is not None)),
        )


_BOUNDS = Fix("add-launch-bounds", "Limit registers with __launch_bounds__ so that another block fits")


def _fixes(kernel: Kernel) -> tuple[Fix, ...]:
    resize = Fix("occupancy-block-size", "Use the block size with the highest occupancy")
    return () if kernel.shared_arrays or kernel.barriers else (resize,)


def _fills(launch: Launch, now: Occupancy) -> bool:
    """Whether the grid has blocks enough for most GPUs, or may have."""
    blocks = prod(extent or 0 for extent in launch.grid) if None not in launch.grid else None
    return blocks is None or blocks >= now.blocks * MULTIPROCESSORS


def _of_text(kernel: Kernel) -> Iterator[Finding]:
    """Of each launch, with what the text gives: no registers."""
    said: set[tuple[object, ...]] = set()
    for launch in kernel.launches:
        shared = _shared_bytes(kernel, launch)
        threads = launch.threads
        if launch.span is None or launch.basis is not Basis.EXACT or shared is None or not threads or launch.sweep:
            continue
        if not WARP <= threads <= MAX_THREADS_PER_BLOCK or (launch.block, shared) in said:
            continue
        try:
            now = occupancy(kernel.arch, 0, shared, threads)
        except ValueError:  # an architecture that is not known
            return
        if now.fraction >= LOW or now.blocks == 0 or not _fills(launch, now):
            continue
        way = _way(kernel.arch, now, shared, threads)
        if not way:
            continue
        said.add((launch.block, shared))
        yield Finding(
            span=launch.span,
            message=(
                f"Occupancy is capped at {now.fraction:.0%} on {kernel.arch}: {_cause(now, shared, threads)}\n{way}"
            ),
            gain=1 - now.fraction,
            evidence={
                "occupancy": round(now.fraction, 4),
                "limiter": now.limiter,
                "blocks_per_multiprocessor": now.blocks,
                "warps_per_multiprocessor": now.warps,
                "threads": threads,
                "shared_bytes": shared,
                "arch": kernel.arch,
                "basis": launch.basis.value,
                "source": "text",
            },
            fixes=_fixes(kernel),
        )


def _shared_bytes(kernel: Kernel, launch: Launch) -> int | None:
    """Static and dynamic shared memory of one block; None where a part is not known."""
    static, dynamic = kernel.shared_bytes, launch.dynamic_shared_bytes
    return static + dynamic if static is not None and dynamic is not None else None


def _cause(now: Occupancy, shared: int, threads: int) -> str:
    if now.limiter == "shared memory":
        return f"{_blocks(now.blocks)}/SM with {size_words(shared)} of shared memory each"
    if now.limiter == "blocks":
        return f"{_blocks(now.blocks)}/SM x {-(-threads // WARP)} {'warp' if threads <= WARP else 'warps'}"
    return f"{_blocks(now.blocks)}/SM of {threads} threads"


def _way(arch: str, now: Occupancy, shared: int, threads: int) -> str:
    """How to lift the occupancy; empty where nothing that the text shows would."""
    limits = ARCHITECTURES[architecture_number(arch)]
    if now.limiter == "blocks":
        needed = -(-limits.threads // limits.blocks)
        return f"Use blocks of at least {-(-needed // WARP) * WARP} threads."
    if now.limiter == "warps":
        better = [t for t in (128, 256, 384, 512, 768, 1024) if occupancy(arch, 0, shared, t).fraction > now.fraction]
        best = max(better, key=lambda t: (occupancy(arch, 0, shared, t).fraction, -abs(t - threads)), default=None)
        return f"Blocks of {best} threads reach {occupancy(arch, 0, shared, best).fraction:.0%}." if best else ""
    enough = ceil(LOW * limits.threads / WARP / -(-threads // WARP))
    most = _most_shared(arch, threads, enough)
    if most is None or most < shared * LEAST_LEFT:
        return ""
    then = occupancy(arch, 0, most, threads)
    return f"With at most {size_words(most)} per block, {_blocks(then.blocks)} fit: {then.fraction:.0%}."


def _most_shared(arch: str, threads: int, blocks: int) -> int | None:
    """The most shared memory per block with which so many blocks fit; None where none does."""
    limits = ARCHITECTURES[architecture_number(arch)]
    granule = limits.shared_granule
    most = limits.shared_bytes // blocks // granule * granule - limits.reserved_shared_bytes
    return most if most > 0 and occupancy(arch, 0, most, threads).blocks >= blocks else None


def _blocks(count: int) -> str:
    return "1 block" if count == 1 else f"{count} blocks"
