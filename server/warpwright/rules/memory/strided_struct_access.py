"""Lanes read one member of neighbouring structures, and the members between travel along.

## Why is this bad?

Memory moves in sectors of 32 bytes. Where lane i uses `points[i].mass`, the lanes' addresses are a whole structure
apart: for a structure of 32 bytes a request moves 32 sectors and uses 4 bytes of each, where a plain array of masses
would take 4 sectors. Members that the kernel does not use cost bandwidth all the same.

## Example

```cuda
struct Particle {
  float x, y, z, mass;
  float vx, vy, vz, charge;
};

__global__ void weigh(float *out, const Particle *particles, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = 9.81f * particles[i].mass;
}

void run(float *out, const Particle *particles, int n) {
  weigh<<<(n + 255) / 256, 256>>>(out, particles, n);
}
```

## Use instead

An array for each member, so that consecutive lanes use neighbouring words:

```cuda
struct Particles {
  float *x, *y, *z, *mass;
  float *vx, *vy, *vz, *charge;
};

__global__ void weigh(float *out, Particles particles, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = 9.81f * particles.mass[i];
}

void run(float *out, Particles particles, int n) {
  weigh<<<(n + 255) / 256, 256>>>(out, particles, n);
}
```

## Limits

- One finding for each array of a kernel, whatever the number of its members that are used. There is no fix to press:
  the layout belongs to the whole program.
- Where the kernel uses most of what travels, the L1 cache serves the other members, and nothing is said, unless it uses
  all of a structure that could be moved in 8- or 16-byte pieces were it aligned so: that is a hint.
- Where each lane walks over an array in a large structure, uncoalesced-access says so.
- From 4 sectors for each one needed it is a warning, from 2 information.
- An index that is read from memory is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from warpwright.facts.model import WIDEST, Access, Kernel, Space, Structure
from warpwright.rules.base import Finding, Severity
from warpwright.rules.gains import without_excess
from warpwright.rules.memory._lanes import beside, first_address, steps_over_structures, used_offsets
from warpwright.rules.memory._neighbours import MOSTLY_USED
from warpwright.rules.weighing import COUNTED, weighed, worst_by_place
from warpwright.rules.words import because, code, launch_evidence, launch_of, launch_related, per_request

severity = Severity.WARNING

NOTABLE = 2.0
"""Sectors for each one needed from which it is said."""
GRAVE = 4.0
"""From here it is a warning."""
MANY = 8.0
"""Sectors too many in one request below which it is information at most."""


def check(kernel: Kernel) -> Iterator[Finding]:
    strided = [
        a for a in kernel.accesses if a.space is Space.GLOBAL and a.basis in COUNTED and steps_over_structures(a)
    ]
    said: set[str | None] = set()
    for access in sorted(worst_by_place(strided, lambda a: a.excess or 0.0), key=_gravity, reverse=True):
        structure, (got, ideal) = access.structure, access.transactions or (None, None)
        if structure is None or got is None or not ideal or access.array in said:
            continue
        said.add(access.array)
        together = beside(kernel, access)
        used = len(used_offsets(together, structure.bytes, first_address(access) or 0))
        level = _level(structure, got, ideal, used / structure.bytes)
        if level is None:
            continue
        launch = launch_of(kernel, access.launch)
        yield Finding(
            span=access.span,
            message=(
                f"Strided {access.kind.value} {code(access.expression)}: {per_request(access, 'sector')}"
                + because(
                    launch,
                    access.basis,
                    f"lane stride is one {_name(structure)} of {structure.bytes} bytes, {used} used",
                )
                + f"\n{_advice(structure, level)}"
            ),
            severity=weighed(kernel, access, level),
            gain=None if level is Severity.HINT else without_excess(kernel, access),
            evidence={
                "sectors_per_request": round(got, 3),
                "ideal_sectors_per_request": round(ideal, 3),
                "structure_bytes": structure.bytes,
                "structure_align": structure.align,
                "bytes_used": used,
                "basis": access.basis.value,
                **launch_evidence(launch),
            },
            related=launch_related(launch),
        )


def _gravity(access: Access) -> float:
    return (access.excess or 0.0) * access.requests


def _level(structure: Structure, got: float, ideal: float, share: float) -> Severity | None:
    """None for what an expert would leave as it is."""
    if share < MOSTLY_USED:
        if got < NOTABLE * ideal:
            return None
        return Severity.WARNING if got >= GRAVE * ideal and got - ideal >= MANY else Severity.INFORMATION
    return Severity.HINT if share == 1.0 and _piece(structure) >= 2 * max(4, structure.align) else None


def _piece(structure: Structure) -> int:
    """Bytes of the widest access that a structure of that size could be moved in."""
    return next(width for width in (WIDEST, 8, 4, 2, 1) if structure.bytes % width == 0)


def _name(structure: Structure) -> str:
    return structure.name if structure.name not in ("", "struct", "union") else "structure"


def _advice(structure: Structure, level: Severity) -> str:
    if level is Severity.HINT:
        return (
            f"With __align__({_piece(structure)}) it is moved in {_piece(structure)}-byte pieces instead of "
            f"{structure.align}-byte ones."
        )
    return "Use a structure of arrays for the members that are used together."
