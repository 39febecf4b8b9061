"""A branch splits most warps, and what it guards is long enough to cost.

## Why is this bad?

The lanes of a warp run one instruction at a time together. Where they disagree about a branch, both sides run one after
the other with the other lanes off: `if (threadIdx.x % 2 == 0)` makes every warp pay for both of its sides. When the
same work is given to consecutive lanes, each warp takes one side, and a side that no lane of a warp takes costs
nothing.

A short side is not a branch at all: the compiler predicates it, all warps issue its few instructions anyhow, and no
warp splits. Of such cases only interleaved reductions, `if (tid % (2 * s) == 0) sum[tid] += sum[tid + s];`, are
reported, as information: most of what all warps issue there is for lanes that are off, and the test divides.

## Example

```cuda
__global__ void relax(float *out, const float *in, int n, int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float x = in[i];
  for (int k = 0; k < rounds; k++) {
    if (threadIdx.x % 2 == 0)
      x = expf(-x) * in[k] + sinf(x);
    else
      x = logf(x * x + 1.0f) / in[k];
  }
  out[i] = x;
}

void run(float *out, const float *in, int n) {
  relax<<<(n + 255) / 256, 256>>>(out, in, n, 100);
}
```

## Use instead

Warps take turns, and each runs one side:

```cuda
__global__ void relax(float *out, const float *in, int n, int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float x = in[i];
  for (int k = 0; k < rounds; k++) {
    if (threadIdx.x / 32 % 2 == 0)
      x = expf(-x) * in[k] + sinf(x);
    else
      x = logf(x * x + 1.0f) / in[k];
  }
  out[i] = x;
}

void run(float *out, const float *in, int n) {
  relax<<<(n + 255) / 256, 256>>>(out, in, n, 100);
}
```

## Limits

A warning in a loop, where both sides are long or few lanes run a long one; else information. Said only where warps
diverge in at least half of their visits, and not of

- what the compiler predicates, sides of ten instructions and fewer above all, but for a reduction that doubles its
  stride: there the lanes that have no work keep all warps busy, which is information;
- a guard at the edge of the data (`if (i < n)`), an early `return`, and a condition on data that was read;
- one lane that acts for its warp (`if (lane == 0) atomicAdd(...)`);
- a run of consecutive lanes (`if (threadIdx.x < RADIUS)` for a halo), which packing would not help;
- loops whose trip count differs from lane to lane, and `?:`, which becomes a select.

There is no fix to press, except in a reduction that doubles its stride, which can be addressed sequentially.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from warpwright.facts.model import WARP, Access, Basis, Branch, Divergence, Kernel, Launch, Space
from warpwright.rules.base import Finding, Severity
from warpwright.rules.reductions import ADDRESS_SEQUENTIALLY, in_doubling_loop, reduction_fix
from warpwright.rules.weighing import is_shaped, is_small
from warpwright.rules.words import because, launch_evidence, launch_of, launch_related, number
from warpwright.syntax.nodes import node_at

severity = Severity.WARNING

MOST = 0.5
"""Share of the warps at the branch that must split."""
FEW_LANES = WARP / 4
"""Average lanes on up to which a long side is a warning."""
LONG, VERY_LONG = 10, 30
"""Instructions of a side from which splitting costs, and from which few lanes that run it do."""

MANY_LANES = WARP / 2
"""Average lanes on above which a branch without a second side is left alone: packing could not halve its cost."""

_SPLITTING = (Divergence.PARTIAL, Divergence.EVERY_WARP)
_PARITY = re.compile(r"%|(?<!&)&(?!&)")
_PACK = "Give the work to consecutive lanes, so that whole warps are active or idle."


def check(kernel: Kernel) -> Iterator[Finding]:
    for branch in kernel.branches:
        if branch.kind not in ("if", "switch") or branch.divergence not in _SPLITTING:
            continue
        if branch.warps_diverging is None or branch.warps_diverging < MOST:
            continue
        reduction = in_doubling_loop(branch.statement)
        short = branch.predicated or not branch.sides or max(branch.sides) < LONG
        if short and not reduction:
            continue
        launch = launch_of(kernel, branch.launch)
        if launch is None or (launch.basis is not Basis.EXACT and is_shaped(kernel, launch)):
            continue
        two_sided = not short and len(branch.sides) > 1 and min(branch.sides) >= LONG
        if not (branch.in_loop or two_sided):
            continue
        guarded = [access for side in _sides(branch) for access in _inside(kernel, branch, side)]
        lanes = max((access.active_lanes for access in guarded), default=None)
        if not _is_scattered(kernel, branch, launch):
            continue
        if lanes is not None and (lanes <= 1.0 or (lanes > MANY_LANES and not two_sided)):
            continue
        few = lanes is not None and lanes <= FEW_LANES and max(branch.sides) >= VERY_LONG
        grave = branch.in_loop and not short and (two_sided or few) and not is_small(kernel)
        on = f", {number(lanes)} of 32 lanes active inside" if lanes is not None and not two_sided else ""
        both = ", both sides executed" if two_sided else ""
        split = f"Divergent branch: {branch.warps_diverging:.0%} of warp visits diverge{both}{on}"
        idle = (
            f"Divergent branch: only {number(lanes)} of 32 lanes are active; no warp retires early"
            if lanes is not None
            else split
        )
        yield Finding(
            span=branch.span,
            message=(
                f"{idle if short else split}{because(launch, Basis.EXACT)}\n"
                + (ADDRESS_SEQUENTIALLY if reduction else _PACK)
            ),
            severity=Severity.WARNING if grave else Severity.INFORMATION,
            evidence={
                "warps_diverging": round(branch.warps_diverging, 3),
                "active_lanes": round(lanes, 3) if lanes is not None else None,
                "divergence": branch.divergence.value,
                "instructions": list(branch.sides),
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
