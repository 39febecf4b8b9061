"""An access starts where its size or the memory's sectors do not.

## Why is this bad?

A vector load needs an address that is a multiple of its size: a `float4` one of 16 bytes. A cast promises that and
checks nothing; where the promise is broken, the kernel ends with "misaligned address". That is an error.

Consecutive lanes that use consecutive elements, the first of which is not at the start of a sector, touch one sector
more than they would: 5 in place of 4 for 32 floats. That is a hint, as the next warp finds the sector in a cache.

## Example

```cuda
__global__ void scale(float *out, const float *in, float factor) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 v = *reinterpret_cast<const float4 *>(in + i);
  out[i] = factor * (v.x + v.y + v.z + v.w);
}

void run(float *out, const float *in, int n) { scale<<<n / 256, 256>>>(out, in, 0.25f); }
```

## Use instead

Lanes that are 16 bytes apart:

```cuda
__global__ void scale(float *out, const float *in, float factor) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 v = *reinterpret_cast<const float4 *>(in + 4 * i);
  out[i] = factor * (v.x + v.y + v.z + v.w);
}

void run(float *out, const float *in, int n) { scale<<<n / 256, 256>>>(out, in, 0.25f); }
```

## Limits

- Pointers that a kernel is given are taken to be aligned as memory from cudaMalloc is. Where only the distance to that
  start is wrong, in all lanes alike, the finding is a warning: a pointer into an array could make up for it.
- An address with a number in it that the text does not give is not judged, unless the distance between the lanes alone
  is wrong.
- Addresses that depend on data are judged by a run (`warpwright check --profile`).
- Contiguous lanes off a sector are said once for each kernel, and not for stencils, whose neighbours come out of the L1
  cache.
  There is no fix to press.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from warpwright.facts.model import SECTOR_BYTES, WARP, Access, Basis, Kernel, Space
from warpwright.facts.profile import FaultKind
from warpwright.rules.base import Finding, Severity
from warpwright.rules.faults import of_runs
from warpwright.rules.memory._lanes import first_address, stride
from warpwright.rules.weighing import SURE, worst_by_place
from warpwright.rules.words import because, code, launch_evidence, launch_of, launch_related, per_request, plural

severity = Severity.ERROR

LINE = 128
"""Bytes of a line of the L1 cache, which serves what another access of the warp has brought."""
STRADDLES = 0.9
"""Sectors too many in a request, or in each four sectors of it, from which nearly all requests straddle."""


def check(kernel: Kernel) -> Iterator[Finding]:
    read = list(_read(kernel))
    yield from read
    yield from of_runs(
        kernel, FaultKind.MISALIGNED, told=(found for found in read if found.severity is not Severity.HINT)
    )


def _read(kernel: Kernel) -> Iterator[Finding]:
    faults = worst_by_place((a for a in kernel.accesses if _faults(kernel, a)), lambda a: a.bytes)
    places = {access.span.start for access in faults}
    for access in faults:
        yield from _fault(kernel, access)
    off = [a for a in kernel.accesses if a.span.start not in places and _straddles(a)]
    if off and not _is_stencil(kernel):
        yield _straddling(kernel, max(off, key=lambda a: (a.excess or 0.0, -a.span.start)))


def _faults(kernel: Kernel, access: Access) -> bool:
    """Whether the misaligned address follows from the text, or from it and an assumed block."""
    launch = launch_of(kernel, access.launch)
    known = access.basis is Basis.EXACT or (launch is not None and launch.basis is not Basis.EXACT)
    return access.misaligned is not None and known


def _fault(kernel: Kernel, access: Access) -> Iterator[Finding]:
    lanes = access.misaligned
    if lanes is None:
        return
    launch = launch_of(kernel, access.launch)
    lane, at = next((i, a) for i, a in enumerate(lanes.addresses) if a is not None and a % access.bytes)
    apart = len({a % access.bytes for a in lanes.addresses if a is not None}) > 1
    step = stride(lanes)
    if apart and step is not None:
        why = f"lane stride {abs(step)} B"
    else:
        why = f"lane {lane} is {plural(at % access.bytes, 'byte')} off"
    sure = "faults" if apart else f"faults, unless {access.array} itself starts as far off"
    yield Finding(
        span=access.span,
        message=(
            f"Misaligned {access.bytes}-byte {access.kind.value} {code(access.expression)}: {why}\n"
            f"The address must be a multiple of {access.bytes}: it {sure}."
        ),
        severity=Severity.ERROR if apart and access.basis is Basis.EXACT else Severity.WARNING,
        evidence={
            "bytes": access.bytes,
            "warp": lanes.warp,
            "block": list(lanes.block),
            "lane": lane,
            "bytes_past": at % access.bytes,
            "basis": access.basis.value,
            **launch_evidence(launch),
        },
        related=launch_related(launch),
    )


def _straddles(access: Access) -> bool:
    """Whether nearly all requests are of consecutive elements and touch a sector more than they need."""
    got, ideal = access.sectors_per_request, access.ideal_sectors_per_request
    if access.space is not Space.GLOBAL or access.basis not in SURE or got is None or ideal is None:
        return False
    if (
        stride(access.lanes) != access.bytes
        or (first_address(access) or 0) % SECTOR_BYTES == 0
        or access.active_lanes < WARP / 2
        or got - ideal < STRADDLES * max(1.0, ideal / 4)
    ):
        return False
    slides = access.iterations > 1 and (access.loop_step is None or access.loop_step % SECTOR_BYTES != 0)
    return not slides


def _is_stencil(kernel: Kernel) -> bool:
    """Whether some array is read at consecutive elements by the same lanes: what starts off a sector is in a cache."""
    starts: dict[tuple[object, ...], set[int]] = {}
    for access in kernel.accesses:
        first = first_address(access)
        if access.space is Space.GLOBAL and access.lanes is not None and first is not None:
            key = (access.array, access.launch, access.lanes.warp, access.lanes.block)
            starts.setdefault(key, set()).add(first)
    return any(0 < b - a < LINE for those in starts.values() for a, b in pairwise(sorted(those)))


def _straddling(kernel: Kernel, access: Access) -> Finding:
    got, ideal = access.sectors_per_request or 0.0, access.ideal_sectors_per_request or 0.0
    launch = launch_of(kernel, access.launch)
    past = (first_address(access) or 0) % SECTOR_BYTES
    return Finding(
        span=access.span,
        message=(
            f"Misaligned warp {access.kind.value} {code(access.expression)}: {per_request(access, 'sector')}"
            + because(launch, access.basis, f"contiguous, but {plural(past, 'byte')} past a sector boundary")
            + f"\nShift `{access.array}` or the threads, so that a warp starts at a multiple of 32 bytes."
        ),
        severity=Severity.HINT,
        evidence={
            "sectors_per_request": round(got, 3),
            "ideal_sectors_per_request": round(ideal, 3),
            "bytes_past_sector": past,
            "bytes": access.bytes,
            "basis": access.basis.value,
            **launch_evidence(launch),
        },
        related=launch_related(launch),
    )
