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

from warpwright.facts.model import WARP, Access, Basis, Branch, Divergence, Kernel
from warpwright.rules.base import Finding, Fix, Severity
from warpwright.rules.words import (
    block_shape_matters,
    holds_for,
    launch_evidence,
    launch_of,
    launch_related,
    number,
)
from warpwright.syntax.nodes import ancestors, descendants, node_at

severity = Severity.WARNING

MOST = 0.5
"""Share of the warps at the branch that must split."""
FEW_LANES = WARP / 4
"""Average lanes on up to which the branch is a warning; with more of them on it is information."""

HEAVY = 3
"""Accesses and calls that each side has to have for a branch outside of any loop to be said."""

_SPLITTING = (Divergence.PARTIAL, Divergence.EVERY_WARP)
_PARITY = re.compile(r"%|(?<!&)&(?!&)")
_BARRIERS = ("__syncthreads", "__syncwarp", "sync")
_REDUCE = "Address sequentially: halve the stride each step and let the first lanes do the work."
_PACK = "Give the work to neighbouring lanes, so that whole warps are on or off."
_FIXES = (Fix("sequential-reduction-addressing", "Address the reduction sequentially", safe=False),)


def check(kernel: Kernel) -> Iterator[Finding]:
    for branch in kernel.branches:
        if branch.kind not in ("if", "switch") or branch.divergence not in _SPLITTING:
            continue
        if branch.warps_diverging is None or branch.warps_diverging < MOST:
            continue
        work = [_work(branch, side) for side in _sides(branch)]
        two_sided = len(work) > 1 and min(work) > 0
        if not any(work) or not (branch.in_loop or (two_sided and min(work) >= HEAVY)):
            continue
        guarded = _guarded(kernel, branch)
        lanes = max((access.active_lanes for access in guarded), default=None)
        if not _is_scattered(branch, guarded) or (lanes is not None and lanes <= 1.0):
            continue
        launch = launch_of(kernel, branch.launch)
        known = launch is not None and (launch.basis is Basis.EXACT or not block_shape_matters(kernel))
        grave = known and (two_sided or lanes is None or lanes <= FEW_LANES)
        on = f" and {number(lanes)} of 32 lanes are on inside" if lanes is not None and not two_sided else ""
        both = ", one side after the other" if two_sided else ""
        reduction = _in_doubling_loop(branch)
        yield Finding(
            span=branch.span,
            message=(
                f"Warps split in {branch.warps_diverging:.0%} of their visits to this branch"
                f"{both}{on}{holds_for(launch, Basis.EXACT)}. {_REDUCE if reduction else _PACK}"
            ),
            severity=Severity.WARNING if grave else Severity.INFORMATION,
            evidence={
                "warps_diverging": round(branch.warps_diverging, 3),
                "active_lanes": round(lanes, 3) if lanes is not None else None,
                "divergence": branch.divergence.value,
                "basis": launch.basis.value if launch is not None else Basis.UNKNOWN.value,
                **launch_evidence(launch),
            },
            fixes=_FIXES if reduction else (),
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


def _work(branch: Branch, side: Node) -> int:
    """Accesses and calls of a side; locals alone become predicated instructions and count nothing."""
    source = branch.statement.source
    work = sum(1 for _ in descendants(side, "subscript_expression", "pointer_expression"))
    for call in descendants(side, "call_expression"):
        function = call.child_by_field_name("function")
        name = source.node_text(function).rsplit(".", 1)[-1].rsplit("::", 1)[-1] if function else ""
        work += name not in _BARRIERS
    loops = any(True for _ in descendants(side, "for_statement", "while_statement", "do_statement"))
    return work + (HEAVY if loops and work else 0)


def _guarded(kernel: Kernel, branch: Branch) -> list[Access]:
    """Accesses inside the branch for the same launch, conditions left out."""
    span = branch.statement
    return [
        a
        for a in kernel.accesses
        if a.launch == branch.launch and a.span.source is span.source and branch.span.end <= a.span.start < span.end
    ]


def _is_scattered(branch: Branch, guarded: list[Access]) -> bool:
    """Whether the lanes that are on are not one run of neighbours; by the condition where no lanes are known."""
    patterns = [a.lanes.addresses for a in guarded if a.lanes is not None]
    if not patterns:
        return _PARITY.search(branch.condition) is not None
    return any(_has_gap([address is not None for address in pattern]) for pattern in patterns)


def _has_gap(on: list[bool]) -> bool:
    """
    >>> _has_gap([True, False, True, False]), _has_gap([False, True, True, False])
    (True, False)
    """
    runs = sum(1 for i, lane in enumerate(on) if lane and (i == 0 or not on[i - 1]))
    return runs > 1


def _in_doubling_loop(branch: Branch) -> bool:
    span = branch.statement
    node = node_at(span.source.root, span.start, span.end)
    if node is None:
        return False
    loop = next((n for n in ancestors(node) if n.type == "for_statement"), None)
    update = loop.child_by_field_name("update") if loop is not None else None
    return update is not None and re.search(r"\*=\s*2|<<=\s*1|\*\s*2|<<\s*1", span.source.node_text(update)) is not None
