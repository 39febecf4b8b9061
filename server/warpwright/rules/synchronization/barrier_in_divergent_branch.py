"""A barrier that part of the block does not reach.

## Why is this bad?

`__syncthreads()` waits for every thread of the block that still runs. When some of them take the other side of a branch
and go on, the behaviour is undefined: the block hangs, or meets at another barrier and works with data that was not
ready. It often goes unseen as long as the size of the data is a multiple of the block's.

A barrier *after* an early `return` is a different matter and is not reported: since Volta, threads that have ended are
not waited for.

## Example

```cuda
__global__ void smooth(float *out, const float *in, int n) {
  __shared__ float window[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    window[threadIdx.x] = in[i];
    __syncthreads();
    if (threadIdx.x > 0)
      out[i] = 0.5f * (window[threadIdx.x - 1] + window[threadIdx.x]);
  }
}

void run(float *out, const float *in, int n) {
  smooth<<<(n + 255) / 256, 256>>>(out, in, n);
}
```

## Use instead

Every thread reaches the barrier; only the accesses are guarded:

```cuda
__global__ void smooth(float *out, const float *in, int n) {
  __shared__ float window[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    window[threadIdx.x] = in[i];
  }
  __syncthreads();
  if (i < n) {
    if (threadIdx.x > 0)
      out[i] = 0.5f * (window[threadIdx.x - 1] + window[threadIdx.x]);
  }
}

void run(float *out, const float *in, int n) {
  smooth<<<(n + 255) / 256, 256>>>(out, in, n);
}
```

## Limits

- It is an error where the threads part at the launch that was found, and a warning where that depends on run-time
  values: a guard `i < n` splits a block only when n is not a multiple of its size.
- Of several barriers that one such condition may split, the first is shown.
- Barriers of a part of the block are read in assembly of one such instruction, `bar.sync 1, 64;` or `bar.arrive`, whose
  numbers may be operands that the text gives, and in objects of `cuda::barrier` in shared memory. The warps of a block
  whose ways are known are followed through them: what cannot go on is an error. So are barriers of a cluster whose
  blocks come there at different times, where the kernel has `__cluster_dims__`.
- Waits for all lanes of a warp (`__syncwarp()`, shuffles, votes, groups of 32) under a condition on data that the lanes
  read each for themselves are a warning, one for each condition. What shuffles give is taken to be the same for all.
- A condition on data that threads read each for themselves is a warning: the data may be the same for all. A run
  finds threads of a block that wait at different barriers, and lanes that a shuffle's or a vote's mask names and that
  do not come to it (`warpwright check --profile`), and confirms what the text shows; it notes as information threads
  that ended before a barrier.
- The fix leaves to the author what the other threads should put in shared memory: they put nothing there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from warpwright.facts.model import Basis, Kernel, RunFault
from warpwright.facts.profile import FaultKind
from warpwright.rules.base import Finding, Fix, Related, Severity
from warpwright.rules.faults import of_runs
from warpwright.rules.verdicts import confirmed
from warpwright.rules.weighing import COUNTED
from warpwright.rules.words import because, code, launch_evidence, launch_of, launch_related, place_of

severity = Severity.ERROR

_MOVE = Fix("move-barrier-out-of-branch", "Move the barrier out of the branch")
_FIXES_OF_WAITS = (_MOVE, Fix("name-lanes-that-come", "Name the lanes that come"))
_FIXES_OF_COUNTS = (Fix("count-threads-that-come", "Count the threads that come"),)

_WAITS = (FaultKind.BARRIER_NOT_REACHED, FaultKind.OUTSIDE_MASK, FaultKind.DEADLOCK)


def check(kernel: Kernel) -> Iterator[Finding]:
    parted = replace(kernel, faults=tuple(fault for fault in kernel.faults if not _is_of_ended(fault)))
    read = list(confirmed(parted, [*_read(kernel), *_missed(kernel), *_doubtful(kernel)], *_WAITS))
    yield from read
    yield from of_runs(kernel, FaultKind.OUTSIDE_MASK, told=read)
    for fault in kernel.faults:
        only_ended = _is_of_ended(fault)
        grade = Severity.INFORMATION if only_ended else None
        yield from of_runs(replace(kernel, faults=(fault,)), FaultKind.BARRIER_NOT_REACHED, told=read, severity=grade)


def _is_of_ended(fault: RunFault) -> bool:
    """Whether a barrier is one that threads have ended before."""
    return fault.kind == FaultKind.BARRIER_NOT_REACHED and fault.other is None and len(fault.threads) < 2


def _missed(kernel: Kernel) -> Iterator[Finding]:
    """Masks and barriers of the grid."""
    said: set[tuple[str, int, int]] = set()
    for wait in kernel.missed_waits:
        launch = launch_of(kernel, wait.launch)
        if wait.span.key in said:
            continue
        said.add(wait.span.key)
        waiting, absent = wait.threads
        if absent is None and wait.wanted:
            problem = f"Missed barrier: thread {waiting} waits here for {wait.wanted} threads, only {wait.came} arrive"
        elif absent is None:
            problem = f"Mask excludes its caller: thread {waiting} is not in it"
        elif wait.blocks[0] == wait.blocks[1]:
            problem = f"Missed barrier: thread {waiting} waits here for thread {absent}, which does not arrive"
        else:
            waited = place_of(wait.blocks[1])
            problem = (
                f"Missed barrier: block {place_of(wait.blocks[0])} waits here for block {waited}, which does not arrive"
            )
        yield Finding(
            span=wait.span,
            message=f"{problem}{because(launch, Basis.EXACT)}",
            evidence={
                "basis": Basis.EXACT.value,
                "threads": list(wait.threads),
                "blocks": [list(block) for block in wait.blocks],
                **launch_evidence(launch),
            },
            fixes=_FIXES_OF_COUNTS if wait.wanted else _FIXES_OF_WAITS,
            related=launch_related(launch),
        )


def _doubtful(kernel: Kernel) -> Iterator[Finding]:
    """Waits for all lanes of a warp under a condition that lanes read each for themselves; one for each condition."""
    said: set[tuple[str, int, int]] = {wait.span.key for wait in kernel.missed_waits}
    for wait in kernel.doubtful_waits:
        if wait.span.key in said or wait.condition.key in said:
            continue
        said.add(wait.condition.key)
        yield Finding(
            span=wait.span,
            message=(
                f"Divergent wait: may not be reached by all lanes of the warp ({code(wait.condition.text)})"
                "\nThe condition depends on data that can differ between lanes, but the call waits for all of them."
                "\nKeep all lanes in the loop while one has work (`__any_sync`), or pass the mask of those that arrive."
            ),
            severity=Severity.WARNING,
            evidence={
                "basis": Basis.DATA_DEPENDENT.value,
                "condition": wait.condition.text,
                "condition_line": wait.condition.line,
            },
            related=(Related(wait.condition, "this condition splits the warp"),),
        )


def _read(kernel: Kernel) -> Iterator[Finding]:
    said: set[tuple[str, int]] = set()
    for barrier in kernel.barriers:
        condition = barrier.condition
        known = barrier.basis in COUNTED or barrier.basis is Basis.DATA_DEPENDENT
        if not barrier.divergent or not known or condition is None:
            continue
        certain = barrier.basis not in (Basis.ASSUMED, Basis.DATA_DEPENDENT)
        if not certain and (condition.path, condition.start) in said:
            continue
        said.add((condition.path, condition.start))
        reached = "not reached" if certain else "may not be reached"
        yield Finding(
            span=barrier.span,
            message=(
                f"Divergent barrier: {reached} by all threads of the block ({code(condition.text)})"
                f"\n{barrier.reason[:1].upper()}{barrier.reason[1:]}."
                f"\nMove {code(barrier.expression)} out of the branch and guard the accesses alone."
            ),
            severity=Severity.ERROR if certain else Severity.WARNING,
            evidence={
                "basis": barrier.basis.value,
                "reason": barrier.reason,
                "condition": condition.text,
                "condition_line": condition.line,
            },
            fixes=(_MOVE,),
            related=(Related(condition, "this condition splits the block"),),
        )
