"""The order in which rewrites are tried: what gained most before comes first.

It decides what a search has tried that is cut short. [docs/optimize.md] compares it with the model's plan and chance.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpwright.rewrites.registry import all_rewrites
from warpwright.rules.base import Finding

GAINS = {
    "aggregate-atomics": 9.44,
    "tile-matrix-product": 7.34,
    "warp-per-row": 5.17,
    "privatize-histogram": 4.56,
    "stage-transpose-in-shared": 2.83,
    "swap-thread-axes": 2.65,
    "fewer-merges": 2.48,
    "thread-array-in-shared": 2.38,
    "pad-shared-array": 2.31,
    "swizzle-shared-array": 2.11,
    "stage-tile-in-shared": 2.03,
    "interchange-loops": 1.98,
    "running-power": 1.82,
    "tile-in-registers": 1.62,
    "vectorize-row-walk": 1.58,
    "shuffle-scan": 1.56,
    "unroll-loop": 1.54,
    "expand-power": 1.46,
    "vectorize-elementwise": 1.38,
    "loop-over-rows": 1.37,
    "vectorize-rows": 1.34,
    "accumulate-in-register": 1.31,
    "suffix-float-literals": 1.30,
    "jam-loops": 1.24,
    "fast-math-functions": 1.23,
    "stage-rows-in-shared": 1.21,
    "several-rows-at-once": 1.20,
    "enlarge-grid": 1.16,
    "replace-division": 1.16,
    "grid-stride-loop": 1.15,
    "sequential-reduction-addressing": 1.15,
    "stage-common-loads": 1.12,
    "drop-border-tests": 1.10,
    "smaller-blocks": 1.08,
    "add-restrict": 1.06,
    "coarsen-threads": 1.06,
    "occupancy-block-size": 1.06,
    "recompute-instead-of-store": 1.04,
    "share-first-thread-loop": 1.04,
    "join-lane-pairs": 1.03,
    "loop-over-blocks": 1.02,
    "skew-shared-array": 1.02,
    "coarsen-rows": 1.00,
    "double-buffer-tiles": 1.00,
    "hoist-loop-invariant-load": 1.00,
    "shuffle-reduction": 1.00,
    "split-flat-index": 1.00,
    "spread-serial-loop": 1.00,
}
"""How many times as fast a kernel was after this rewrite alone, on an H200 over the samples to which it applies: the
geometric mean, with a loss counted as no gain and one sample more on which nothing was gained, so that few count for
less. `benchmarks/plans.py --gains` prints them from `benchmarks/results/optimize_cuda.json`."""

UNKNOWN = 1.1
"""For a rewrite that applied to no sample."""


def fixed_order(goal: str, findings: Sequence[Finding]) -> tuple[str, ...]:
    """The names of all rewrites for a goal, first to be tried first: for speed by what they gained, else what cures one
    of the kernel's findings before the others.

    >>> fixed_order("speed", ())[0]
    'aggregate-atomics'
    """
    cures = {fix.rewrite for finding in findings for fix in finding.fixes}

    def place(name: str) -> tuple[float, bool, str]:
        return -GAINS.get(name, UNKNOWN) if goal == "speed" else 0.0, name not in cures, name

    return tuple(sorted((kind.name for kind in all_rewrites() if goal in kind.goals), key=place))
