"""Tell the compiler how large the kernel's blocks are and how many should fit, so that it uses fewer registers.

## Before

What the comments say in the words of ptxas stands for a compile.

```cuda
// ptxas info    : Compiling entry function '_Z4stepPfPKfi' for 'sm_90'
// ptxas info    : Function properties for _Z4stepPfPKfi
//     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
// ptxas info    : Used 66 registers, used 0 barriers
__global__ void step(float *out, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = 0.5f * in[i];
}

void run(float *out, const float *in, int n) {
  step<<<(n + 255) / 256, 256>>>(out, in, n);
}
```

## After

```cuda
// ptxas info    : Compiling entry function '_Z4stepPfPKfi' for 'sm_90'
// ptxas info    : Function properties for _Z4stepPfPKfi
//     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
// ptxas info    : Used 66 registers, used 0 barriers
__global__ void __launch_bounds__(256, 4) step(float *out, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = 0.5f * in[i];
}

void run(float *out, const float *in, int n) {
  step<<<(n + 255) / 256, 256>>>(out, in, n);
}
```

A block that needs more registers than a multiprocessor has, which CUDA refuses to launch, gets its size alone.

## Assumes

- The file was compiled (`optimize`, `check --compile`, and editors in the background), and registers are what keeps
  another block out, by an eighth of them at most.
- Every launch is found, and the size of its blocks known: CUDA refuses to launch a larger block than is promised.

## Cost

The compiler may compute values twice, or spill some to local memory, to do with fewer registers. Results stay the same
bit for bit.
"""

from __future__ import annotations

import re

from warpwright.facts.compiled import LaunchOccupancy, occupancies
from warpwright.facts.lifts import Lift, percent
from warpwright.facts.model import Kernel
from warpwright.rewrites._code import host_launches, in_macro, macros_naming
from warpwright.rewrites._launched import launched_blocks
from warpwright.rewrites._movable import block_by_directive
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import descendants, function_declarator
from warpwright.syntax.source import Span

NAME = "add-launch-bounds"
title = "Add __launch_bounds__"
goals = ("speed",)
relies_on = (Reliance.BLOCK,)

MOST_GIVEN_UP = 1 / 8
"""Share of its registers that a thread is asked to do without: with more, the compiler spills."""


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    reason = _refusal(kernel)
    declarator = function_declarator(kernel.node) if kernel.node is not None else None
    if reason or declarator is None:
        return Declined(NAME, reason)
    most = max(launch.threads or 0 for launch in host_launches(kernel))
    found = list(occupancies(kernel))
    refused = next((each for each in found if not each.occupancy.blocks and _by_registers(each)), None)
    if refused is not None:
        now = refused.footprint
        return _rewrite(
            kernel,
            declarator.start_byte,
            f"{most}",
            f"A block of {now.threads} threads with {now.registers} registers each needs more than a multiprocessor "
            "has, and CUDA refuses to launch it. Told how large blocks are, the compiler uses no more than fit.",
        )
    steps = [
        (each, lift) for each in found for lift in each.lifts if _is_near(each, lift) and each.footprint.threads == most
    ]
    if not steps or len({(each.footprint, lift) for each, lift in steps}) > 1:
        return Declined(NAME, "Nothing to gain: no block more would fit with a few registers fewer.")
    each, lift = steps[0]
    now, after = each.footprint, lift.occupancy
    return _rewrite(
        kernel,
        declarator.start_byte,
        f"{most}, {after.blocks}",
        f"{now.registers} registers per thread leave room for {each.occupancy.blocks} blocks of {now.threads} threads "
        f"on a multiprocessor of {now.arch}; with {lift.registers} another fits: occupancy "
        f"{percent(each.occupancy.fraction)} -> {percent(after.fraction)} %. The bounds ask the compiler for that, "
        "which may cost spills.",
    )


def _rewrite(kernel: Kernel, place: int, bounds: str, explanation: str) -> Rewrite:
    edit = TextEdit(place, place, f"__launch_bounds__({bounds}) ")
    return Rewrite(NAME, f"Add __launch_bounds__({bounds})", kernel.source, (edit,), explanation)


def _refusal(kernel: Kernel) -> str:
    if kernel.node is None:
        return f"{kernel.name} is defined elsewhere."
    if in_macro(kernel.node):
        return f"{kernel.name} is defined by a macro."
    if found := re.search(r"__launch_bounds__|__maxnreg__|__cluster_dims__|__block_size__", kernel.span.code):
        return f"{kernel.name} has {found.group()} already."
    if _bound_elsewhere(kernel):
        return f"{kernel.name} has __launch_bounds__ by a macro or in another declaration."
    if not kernel.compiled:
        return f"How many registers {kernel.name} takes is not known: the file was not compiled."
    if any(each.spill_bytes for each in kernel.compiled):
        return f"{kernel.name} spills registers already."
    shapes = launched_blocks(kernel)
    return shapes if isinstance(shapes, str) else block_by_directive(kernel)


def _bound_elsewhere(kernel: Kernel) -> bool:
    source, node = kernel.source, kernel.node
    heads = [
        source.node_code(d) for d in descendants(source.root, "declaration") if "__global__" in source.node_code(d)
    ]
    if any("__launch_bounds__" in h and re.search(rf"\b{re.escape(kernel.name)}\s*\(", h) for h in heads):
        return True
    block = node.child_by_field_name("body") if node is not None else None
    head = source.code_text(node.start_byte, block.start_byte) if node is not None and block is not None else ""
    return any(re.search(rf"\b{m}\b", head) for m in macros_naming(source, re.compile("__launch_bounds__")))


def _by_registers(each: LaunchOccupancy) -> bool:
    return "registers" in each.occupancy.limiters


def _is_near(each: LaunchOccupancy, lift: Lift) -> bool:
    """Whether a step is one of registers alone, and of few."""
    if lift.registers is None or lift.shared_bytes is not None or lift.threads is not None or lift.carveout is not None:
        return False
    return each.footprint.registers - lift.registers <= MOST_GIVEN_UP * each.footprint.registers
