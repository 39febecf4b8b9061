"""Lanes of a warp update one address with atomics that the compiler cannot combine.

## Why is this bad?

Atomics on one address run one after the other. Where the address is plainly the same for the whole warp and the numbers
are 32-bit integers, the compiler adds them up within the warp first and sends one atomic. It does not do so for float
and double, whose sums depend on their order, for 64-bit numbers, or where the address is computed from threadIdx,
however equal it turns out: then every lane's update waits in line. Adding up 16 million floats on an H200 took 29 ms by
one atomicAdd per thread, and 0.9 ms with a reduction in the warp before; on one address per block it was 20 times the
time of a plain store. In shared memory an atomicAdd of float is a loop that one lane at a time gets through.

## Example

```cuda
__global__ void sum(float *total, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    atomicAdd(total, in[i]);
}

void run(float *total, const float *in, int n) {
  sum<<<(n + 255) / 256, 256>>>(total, in, n);
}
```

## Use instead

```cuda
__global__ void sum(float *total, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float total_part = 0.0f;
  if (i < n)
    total_part += in[i];
  __shared__ float total_parts[32];
  for (int offset = 16; offset > 0; offset /= 2)
    total_part += __shfl_down_sync(0xffffffff, total_part, offset);
  if (threadIdx.x % 32 == 0)
    total_parts[threadIdx.x / 32] = total_part;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int warp = 1; warp < blockDim.x / 32; warp++)
      total_part += total_parts[warp];
    atomicAdd(total, total_part);
  }
}

void run(float *total, const float *in, int n) {
  sum<<<(n + 255) / 256, 256>>>(total, in, n);
}
```

## Limits

- A warning from 16 lanes for each address, information from 8; up to 4 the hardware combines them at no cost. Integer
  atomics on shared memory are information at most.
- Said only where the addresses of the lanes are known: the bins of a histogram depend on the data. Where data decide
  which lanes come, it is information.
- `atomicCAS` and `atomicExch`, of which locks and flags are made, are not judged.
- An atomic that few warps reach, and one in a launch of a single block, is a hint at most.
- The fix is refused where not every thread can come to the reduction, and changes the order of the sum.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpwright.facts.model import Access, AccessKind, Basis, Kernel, Space
from warpwright.facts.types import builtin_type
from warpwright.rules.base import Finding, Fix, Severity
from warpwright.rules.gains import without_turns
from warpwright.rules.weighing import COUNTED, is_shaped, is_small, worst_by_place
from warpwright.rules.words import because, launch_evidence, launch_of, launch_related, number
from warpwright.syntax.nodes import node_at

severity = Severity.WARNING

GRAVE = 16.0
"""Lanes for each address from which it is a warning."""
NOTABLE = 8.0
RARE = 1 / 32
"""Requests, as a share of those of the busiest access, below which few warps come here."""

_COMBINED = re.compile(r"atomic(Add|Sub|Min|Max|And|Or|Xor|Inc)(_block|_system)?\b")
"""What nvcc combines in a warp for 32-bit integers where the address is the same by its looks, the result unused."""
_COUNTED_UP = re.compile(r"atomic(Add|Sub|Inc)(_block|_system)?\b")
"""The same where the result is used."""
_IN_TURN = re.compile(r"atomic(CAS|Exch)")
_LITERAL_ADD = re.compile(r"atomicAdd(_block|_system)?\s*\(.*,\s*(?:\([\w\s]+\)\s*)?\d+[uUlL]*\s*\)", re.DOTALL)


def check(kernel: Kernel) -> Iterator[Finding]:
    atomics = [a for a in kernel.accesses if a.kind is AccessKind.ATOMIC and a.basis in COUNTED]
    for access in worst_by_place(atomics, lambda a: _per_address(a) or 0.0):
        together = _per_address(access)
        if together is None or together < NOTABLE or _is_combined(access) or _IN_TURN.match(access.span.code):
            continue
        launch = launch_of(kernel, access.launch)
        lanes = f"{'up to ' if access.thinned else ''}{number(access.active_lanes)} lanes"
        yield Finding(
            span=access.span,
            array=access.array or "",
            message=(
                f"Contended atomic on `{access.array}`: {lanes} of a warp serialize on {_addresses(access)}"
                f"{because(launch, access.basis, _why(access))}\n{_ADVICE}"
            ),
            severity=_severity(kernel, access, together),
            gain=without_turns(kernel, access),
            evidence={
                "active_lanes": round(access.active_lanes, 3),
                "addresses_per_request": access.addresses_per_request,
                "space": access.space.value,
                "type": access.type,
                "basis": access.basis.value,
                **launch_evidence(launch),
            },
            fixes=(Fix("aggregate-atomics", "Reduce within the block first", safe=_is_integer(access)),),
            related=launch_related(launch),
        )


_ADVICE = "Reduce within the warp or block first, so that one lane updates."


def _per_address(access: Access) -> float | None:
    """Active lanes for each different address of a request."""
    return access.active_lanes / access.addresses_per_request if access.addresses_per_request else None


def _severity(kernel: Kernel, access: Access, together: float) -> Severity:
    if is_small(kernel) or access.requests < RARE * max(other.requests for other in kernel.accesses):
        return Severity.HINT
    launch = launch_of(kernel, access.launch)
    assumed = launch is None or (launch.basis is not Basis.EXACT and is_shaped(kernel, launch))
    cheap = access.space is Space.SHARED and _is_small_integer(access)
    certain = together >= GRAVE and not (assumed or cheap or access.thinned)
    return Severity.WARNING if certain else Severity.INFORMATION


def _is_integer(access: Access) -> bool:
    kind = builtin_type(access.type)
    return kind is not None and kind.is_integer


def _is_small_integer(access: Access) -> bool:
    kind = builtin_type(access.type)
    return kind is not None and kind.is_integer and kind.size == 4


def _is_combined(access: Access) -> bool:
    """Whether the compiler makes one atomic of the warp's."""
    if access.by_thread:
        return False
    text = access.span.code
    if not _is_small_integer(access):
        kind = builtin_type(access.type)
        return kind is None or (kind.is_integer and _LITERAL_ADD.match(text) is not None)
    return bool((_COUNTED_UP if _is_used(access) else _COMBINED).match(text))


def _is_used(access: Access) -> bool:
    span = access.span
    node = node_at(span.source.root, span.start, span.end)
    return node is None or node.parent is None or node.parent.type != "expression_statement"


def _addresses(access: Access) -> str:
    count = access.addresses_per_request or 1.0
    return "one address" if count == 1 else f"{number(count)} addresses"


def _why(access: Access) -> str:
    if access.by_thread:
        return "the compiler cannot tell that the addresses are equal"
    if access.type in ("float", "double"):
        return f"the compiler does not aggregate {access.type} atomics"
    return "the compiler does not aggregate these"
