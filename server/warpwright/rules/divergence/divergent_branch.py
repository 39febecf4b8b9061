"""A branch splits most warps again and again, and the lanes that work could be neighbours.

## Why is this bad?

The lanes of a warp run one instruction at a time together. Where they disagree about a branch, both sides run one after
the other with the other lanes off. `if (tid % (2 * s) == 0)` keeps one lane in two on at the first step of a
reduction, one in four at the second, and all the warps of the block stay busy with it. When the same work is given
to neighbouring lanes, whole warps are on or off, and those that are off cost nothing.

## Example

```cuda
__global__ void sum(int *out, const int *in) {
  __shared__ int partial[256];
  unsigned int tid = threadIdx.x;
  partial[tid] = in[blockIdx.x * blockDim.x + tid];
  __syncthreads();
  for (unsigned int s = 1; s < blockDim.x; s *= 2) {
    if (tid % (2 * s) == 0)
      partial[tid] += partial[tid + s];
    __syncthreads();
  }
  if (tid == 0)
    out[blockIdx.x] = partial[0];
}

void run(int *out, const int *in) {
  sum<<<1024, 256>>>(out, in);
}
```

## Use instead

```cuda
__global__ void sum(int *out, const int *in) {
  __shared__ int partial[256];
  unsigned int tid = threadIdx.x;
  partial[tid] = in[blockIdx.x * blockDim.x + tid];
  __syncthreads();
  for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (tid < s)
      partial[tid] += partial[tid + s];
    __syncthreads();
  }
  if (tid == 0)
    out[blockIdx.x] = partial[0];
}

void run(int *out, const int *in) {
  sum<<<1024, 256>>>(out, in);
}
```

## Limits

Said only where it costs: warps split in at least half of their visits; what the branch guards touches memory or calls a
function; and it is in a loop, or both of its sides do much. Not said of

- a guard at the edge of the data (`if (i < n)`), of an early `return`, and of a condition on data that was read;
- one lane that acts for its warp (`if (lane == 0) atomicAdd(...)`);
- a run of neighbouring lanes (`if (threadIdx.x < RADIUS)` for a halo), which packing would not help;
- loops whose trip count differs from lane to lane, and `?:`, which becomes a select.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from warpwright.facts.model import WARP, Access, Basis, Branch, Divergence, Kernel, Launch, Space
from warpwright.rules.base import Finding, Severity
from warpwright.rules.words import (
    ADDRESS_SEQUENTIALLY,
    holds_for,
    in_doubling_loop,
    is_shaped,
    launch_evidence,
    launch_of,
    launch_related,
    number,
    reduction_fix,
)
from warpwright.syntax.nodes import descendants, node_at

severity = Severity.WARNING

MOST = 0.5
"""Share of the warps at the branch that must split."""
FEW_LANES = WARP / 4
"""Average lanes on up to which the branch is a warning; with more of them on it is information."""

HEAVY = 3
"""Accesses and calls that each side has to have for a branch outside of any loop to be said."""

MANY_LANES = WARP / 2
"""Average lanes on above which a branch without a second side is left alone: packing could not halve its cost."""

_SPLITTING = (Divergence.PARTIAL, Divergence.EVERY_WARP)
_PARITY = re.compile(r"%|(?<!&)&(?!&)")
_BARRIERS = ("__syncthreads", "__syncwarp", "sync")
_PACK = "Give the work to neighbouring lanes, so that whole warps are on or off."


def check(kernel: Kernel) -> Iterator[Finding]:
    for branch in kernel.branches:
        if branch.kind not in ("if", "switch") or branch.divergence not in _SPLITTING:
            continue
        if branch.warps_diverging is None or branch.warps_diverging < MOST:
            continue
        launch = launch_of(kernel, branch.launch)
        if launch is None or (launch.basis is not Basis.EXACT and is_shaped(kernel, launch)):
            continue
        work = [_work(kernel, branch, side) for side in _sides(branch)]
        two_sided = len(work) > 1 and min(work) > 0
        if not any(work) or not (branch.in_loop or (two_sided and min(work) >= HEAVY)):
            continue
        guarded = [access for side in _sides(branch) for access in _inside(kernel, branch, side)]
        lanes = max((access.active_lanes for access in guarded), default=None)
        if not _is_scattered(kernel, branch, launch):
            continue
        if lanes is not None and (lanes <= 1.0 or (lanes > MANY_LANES and not two_sided)):
            continue
        grave = two_sided or lanes is None or lanes <= FEW_LANES
        on = f" and {number(lanes)} of 32 lanes are on inside" if lanes is not None and not two_sided else ""
        both = ", one side after the other" if two_sided else ""
        reduction = in_doubling_loop(branch.statement)
        yield Finding(
            span=branch.span,
            message=(
                f"Warps split in {branch.warps_diverging:.0%} of their visits to this branch"
                f"{both}{on}{holds_for(launch, Basis.EXACT)}. {ADDRESS_SEQUENTIALLY if reduction else _PACK}"
            ),
            severity=Severity.WARNING if grave else Severity.INFORMATION,
            evidence={
                "warps_diverging": round(branch.warps_diverging, 3),
                "active_lanes": round(lanes, 3) if lanes is not None else None,
                "divergence": branch.divergence.value,
                "basis": launch.basis.value,
                **launch_evidence(launch),
            },
            fixes=(reduction_fix(kernel, [access.array for access in guarded]),) if reduction else (),
            related=launch_related(launch),
        )


def _sides(branch: Branch) -> list[Node]:
    """What runs for one answer of the condition and for the other; the cases of a switch."""
    span = branch.statement
    node = node_at(span.source.root, span.start, span.end)
    while node is not None and node.type not in ("if_statement", "switch_statement"):
        node = node.parent
    if node is None:
        return []
    if node.type == "switch_statement":
        body = node.child_by_field_name("body")
        return [child for child in body.named_children if child.type == "case_statement"] if body else []
    sides = [node.child_by_field_name("consequence"), node.child_by_field_name("alternative")]
    return [side for side in sides if side is not None]


def _work(kernel: Kernel, branch: Branch, side: Node) -> int:
    """Accesses to memory and calls in a side; what stays in registers is predicated and counts nothing."""
    source = branch.statement.source
    work = len({access.span.start for access in _inside(kernel, branch, side)})
    for call in descendants(side, "call_expression"):
        function = call.child_by_field_name("function")
        name = source.node_text(function).rsplit(".", 1)[-1].rsplit("::", 1)[-1] if function else ""
        work += name not in _BARRIERS
    loops = any(True for _ in descendants(side, "for_statement", "while_statement", "do_statement"))
    return work + (HEAVY if loops and work else 0)


def _inside(kernel: Kernel, branch: Branch, side: Node) -> list[Access]:
    """Accesses to memory in a side of the branch, for the branch's launch."""
    return [
        access
        for access in kernel.accesses
        if access.launch == branch.launch
        and access.space in (Space.GLOBAL, Space.SHARED)
        and access.span.source is branch.statement.source
        and side.start_byte <= access.span.start < side.end_byte
    ]


def _is_scattered(kernel: Kernel, branch: Branch, launch: Launch) -> bool:
    """Whether the lanes that are on are no run of neighbours in the rows of the block, on either side.

    A row is what has one threadIdx.y. A run in each of them is an edge of the block's shape, and packing does not help.
    Where no lanes are known, a condition with `%` or `&` is taken to scatter them.
    """
    width = launch.block[0] or WARP
    row = width if WARP % width == 0 else WARP
    sides: list[bool] = []
    for side in _sides(branch):
        patterns = [a.lanes.addresses for a in _inside(kernel, branch, side) if a.lanes is not None]
        if patterns:
            sides.append(any(_has_gap([at is not None for at in pattern], row) for pattern in patterns))
    return all(sides) if sides else _PARITY.search(branch.condition) is not None


def _has_gap(on: list[bool], row: int) -> bool:
    """
    >>> _has_gap([True, False, True, False], 4), _has_gap([True, False, True, False], 2)
    (True, False)
    """
    rows = [on[start : start + row] for start in range(0, len(on), row)]
    return any(sum(1 for i, lane in enumerate(lanes) if lane and (i == 0 or not lanes[i - 1])) > 1 for lanes in rows)
