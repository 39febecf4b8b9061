"""A kernel keeps more values than it has registers for, and moves the rest through local memory.

## Why is this bad?

A spilled register is stored to the thread's local memory and read back where it is needed. Local memory is global
memory behind the caches: each spill and each reload is a request of its own to L1, of 128 bytes for a warp, and takes
the place of data that would have been found there. Within a loop it is paid at every iteration.

## Example

```cuda
// ptxas info    : Compiling entry function '_Z5outerPfPKfS1_i' for 'sm_90'
// ptxas info    : Function properties for _Z5outerPfPKfS1_i
//     104 bytes stack frame, 260 bytes spill stores, 180 bytes spill loads
// ptxas info    : Used 64 registers, used 0 barriers
__global__ void __launch_bounds__(256, 4) outer(float *c, const float *a, const float *b, int n) {
  float sum[8][8] = {};
  for (int k = 0; k < n; k++) {
    float x[8], y[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
      x[i] = a[(k * 8 + i) * 256 + threadIdx.x];
      y[i] = b[(k * 8 + i) * 256 + threadIdx.x];
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
      for (int j = 0; j < 8; j++)
        sum[i][j] += x[i] * y[j];
  }
#pragma unroll
  for (int i = 0; i < 8; i++)
#pragma unroll
    for (int j = 0; j < 8; j++)
      c[((blockIdx.x * 8 + i) * 8 + j) * 256 + threadIdx.x] = sum[i][j];
}
```

## Use instead

```cuda
// ptxas info    : Compiling entry function '_Z5outerPfPKfS1_i' for 'sm_90'
// ptxas info    : Function properties for _Z5outerPfPKfS1_i
//     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
// ptxas info    : Used 128 registers, used 0 barriers
__global__ void __launch_bounds__(256, 2) outer(float *c, const float *a, const float *b, int n) {
  float sum[8][8] = {};
  for (int k = 0; k < n; k++) {
    float x[8], y[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
      x[i] = a[(k * 8 + i) * 256 + threadIdx.x];
      y[i] = b[(k * 8 + i) * 256 + threadIdx.x];
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
      for (int j = 0; j < 8; j++)
        sum[i][j] += x[i] * y[j];
  }
#pragma unroll
  for (int i = 0; i < 8; i++)
#pragma unroll
    for (int j = 0; j < 8; j++)
      c[((blockIdx.x * 8 + i) * 8 + j) * 256 + threadIdx.x] = sum[i][j];
}
```

## Limits

- Nothing is said of a file that was not compiled: `warpwright check --compile` does it, and editors do it in the
  background. The numbers are the compiler's, for the architecture that it compiled for and the instance of a template
  that spills most.
- A warning from 64 bytes per thread, stores and loads together, or from 256 where launch bounds or -maxrregcount allow
  fewer registers than a thread can have: who writes these trades registers for occupancy, and a few spills can be worth
  it. Else information.
- Bytes are those of the instructions in the machine code, each counted once; how often they run is a profile's to say.
- The lines are named where the compiler marks its spills and NVIDIA's disassembler is there.
- An array that is indexed by a run-time value lies in local memory, too, but is not a spill:
  dynamically-indexed-local-array finds those.
- There is no fix to press: which values are kept is a question of the algorithm.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from warpwright.facts.compiled import spill_lines
from warpwright.facts.model import Kernel
from warpwright.facts.resources import KernelResources
from warpwright.rules.base import Finding, Severity
from warpwright.rules.words import code

severity = Severity.WARNING

GRAVE = 64
"""Bytes per thread from which it is a warning."""
GRAVE_WHERE_LIMITED = 256
"""The same where the author has limited the registers."""
MOST_REGISTERS = 255
MOST_LINES = 5
"""Lines that the evidence names."""


def check(kernel: Kernel) -> Iterator[Finding]:
    spilling = [each for each in kernel.compiled if each.spill_bytes]
    if not spilling:
        return
    worst = max(spilling, key=lambda each: each.spill_bytes)
    others = f" This is the worst of {len(kernel.compiled)} instances." if len(kernel.compiled) > 1 else ""
    lines = spill_lines(kernel, worst)
    place = f" Most spills are at line {lines[0].line}." if lines else ""
    yield Finding(
        span=kernel.name_span,
        message=(
            f"Register spills in {code(worst.name if others else kernel.name)} on {worst.arch or kernel.arch}: "
            f"{worst.spill_store_bytes:,} B stored, {worst.spill_load_bytes:,} B loaded per thread\n"
            f"{_cure(worst)}{place}{others}"
        ),
        evidence={
            "instance": worst.name,
            "instances_that_spill": len(spilling),
            "arch": worst.arch or kernel.arch,
            "registers": worst.registers,
            "most_registers": worst.max_registers,
            "spill_store_bytes": worst.spill_store_bytes,
            "spill_load_bytes": worst.spill_load_bytes,
            "stack_bytes": worst.stack_bytes,
            "lines": [asdict(line) for line in lines[:MOST_LINES]],
            "basis": "exact",
            "source": "compiler",
        },
        severity=_severity(worst),
    )


def _is_limited(worst: KernelResources) -> bool:
    return worst.max_registers is not None and worst.max_registers < MOST_REGISTERS


def _severity(worst: KernelResources) -> Severity:
    grave = GRAVE_WHERE_LIMITED if _is_limited(worst) else GRAVE
    return Severity.WARNING if worst.spill_bytes >= grave else Severity.INFORMATION


def _cure(worst: KernelResources) -> str:
    less = "keep fewer values live: less unrolling, smaller per-thread arrays, or two kernels"
    if _is_limited(worst):
        by = "__launch_bounds__" if worst.max_threads else "-maxrregcount or __maxnreg__"
        return (
            f"Registers are limited to {worst.max_registers} ({by}): allow more at the price of occupancy, or {less}."
        )
    if worst.registers >= MOST_REGISTERS:
        return f"All {MOST_REGISTERS} registers of a thread are in use: {less}."
    return f"{worst.registers} registers are in use: {less}."
