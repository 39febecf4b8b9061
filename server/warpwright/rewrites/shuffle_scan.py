"""Scan a block by shuffles and one total for each warp, instead of steps over shared memory or by one thread.

## Before

```cuda
__global__ void scan(int *out, const int *in) {
  __shared__ int sums[256];
  int tid = threadIdx.x;
  sums[tid] = in[blockIdx.x * blockDim.x + tid];
  __syncthreads();
  for (int offset = 1; offset < blockDim.x; offset *= 2) {
    int left = 0;
    if (tid >= offset)
      left = sums[tid - offset];
    __syncthreads();
    sums[tid] += left;
    __syncthreads();
  }
  out[blockIdx.x * blockDim.x + tid] = sums[tid];
}

void run(int *out, const int *in) {
  scan<<<8, 256>>>(out, in);
}
```

## After

```cuda
__global__ void scan(int *out, const int *in) {
  __shared__ int sums[256];
  int tid = threadIdx.x;
  sums[tid] = in[blockIdx.x * blockDim.x + tid];
  __shared__ int warp_totals[32];
  int value = sums[tid];
  for (int offset = 1; offset < 32; offset *= 2) {
    int left = __shfl_up_sync(0xffffffff, value, offset);
    if (tid % 32 >= offset)
      value += left;
  }
  if (tid % 32 == 31)
    warp_totals[tid / 32] = value;
  __syncthreads();
  if (tid < 32) {
    int total = tid < blockDim.x / 32 ? warp_totals[tid] : 0;
    for (int offset = 1; offset < 32; offset *= 2) {
      int left = __shfl_up_sync(0xffffffff, total, offset);
      if (tid >= offset)
        total += left;
    }
    warp_totals[tid] = total;
  }
  __syncthreads();
  if (tid >= 32)
    value += warp_totals[tid / 32 - 1];
  sums[tid] = value;
  out[blockIdx.x * blockDim.x + tid] = sums[tid];
}

void run(int *out, const int *in) {
  scan<<<8, 256>>>(out, in);
}
```

## Assumes

- The loop is the inclusive scan in place by doubling offsets (Hillis and Steele): each thread reads the element
  `offset` to the left, waits, adds it to its own, waits. Or thread 0 alone, between two barriers, makes the running
  sums of one shared array in place or in another, with or without the element itself. The elements are numbers of
  4 or 8 bytes.
- Every launch is found, with a one-dimensional block of whole warps, and the loop runs over as many elements.
- Every thread of the block comes to the loop: it stands under no condition, and no `return` stands before it.

## Cost

128 or 256 bytes of shared memory. Two barriers remain, of two for each doubling: 16 with 256 threads; those before and
behind stay where other threads set or use the elements. The order of the additions changes: sums of floating-point
numbers can change in the last bits. The error of any order of n numbers is at most about n * 2^-24 * sum(|x|) in float
and n * 2^-53 * sum(|x|) in double (N. J. Higham, Accuracy and Stability of Numerical Algorithms, section 4.2).
"""

from __future__ import annotations

import re

from tree_sitter import Node

from warpwright.cuda.numbers import number_at
from warpwright.facts.model import WARP, Kernel
from warpwright.facts.types import CType, builtin_type
from warpwright.rewrites._accumulate import shuffled_type
from warpwright.rewrites._code import NoMatchError, body_of, matched, names, overlaps, squeezed
from warpwright.rewrites._interleaved import is_barrier, is_thread_number
from warpwright.rewrites._layout import free_name, indent_unit, line_of, without_lines
from warpwright.rewrites._limits import SHARED_BYTES
from warpwright.rewrites._locals import locals_of
from warpwright.rewrites._movable import unmovable
from warpwright.rewrites._scans import Scan, doubling_scan, serial_scan
from warpwright.rewrites._templates import written_as
from warpwright.rewrites._threads import whole_warps
from warpwright.rewrites._tree_reduction import require_reorderable, require_whole_block
from warpwright.rewrites.base import Declined, Reliance, Rewrite
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import descendants, uncommented
from warpwright.syntax.source import Source, Span

NAME = "shuffle-scan"
title = "Scan with warp shuffles"
goals = ("speed",)
relies_on = (Reliance.BLOCK,)

_ALIKE = {
    "unsigned": "unsignedint", "uint32_t": "unsignedint", "uint": "unsignedint", "int32_t": "int",
    "unsignedlonglong": "unsignedlong", "size_t": "unsignedlong", "uint64_t": "unsignedlong", "longlong": "long",
    "int64_t": "long",
}  # fmt: skip
"""Other names of types, as on 64-bit Linux."""


def propose(kernel: Kernel, at: Span | None) -> Rewrite | Declined:
    block = body_of(kernel)
    reason = "No loop here makes running sums of a shared array, by doubling offsets or by one thread."
    for node in descendants(block, "for_statement", "if_statement"):
        if at is not None and not overlaps(kernel.source.span(node), at):
            continue
        match = doubling_scan if node.type == "for_statement" else serial_scan
        try:
            return _rewrite(kernel, block, match(kernel.source, block, node))
        except NoMatchError as mismatch:
            reason = str(mismatch) or reason
    return Declined(NAME, reason)


def _rewrite(kernel: Kernel, block: Node, scan: Scan) -> Rewrite:
    source = kernel.source
    if reason := unmovable(kernel):
        raise NoMatchError(reason)
    launches = matched(whole_warps(kernel))
    threads = max(launch.block[0] or 0 for launch in launches)
    if scan.bound != "blockDim.x":
        for launch in launches:
            if number_at(source, block, scan.bound) != launch.block[0]:
                raise NoMatchError(
                    f"The loop runs to {scan.bound}, which is not known to be the threads at {launch.source}."
                )
    require_whole_block(kernel, block, scan.node)
    shared = next((a for a in kernel.shared_arrays if a.name == scan.array), None)
    if shared is None:
        raise NoMatchError(f"`{scan.array}` is not a __shared__ array of {kernel.name}.")
    kind = shuffled_type(shared.element_type)
    if kind is None:
        raise NoMatchError(
            f"`{scan.array}` holds {shared.element_type}, which is not known to be what a shuffle takes."
        )
    written = _alike(shared.element_type)
    for kept in scan.kept:
        if _alike(kept) != written:
            raise NoMatchError(f"What is read of `{scan.source}` is kept as {kept}, not as {shared.element_type}.")
    read = next((a for a in kernel.shared_arrays if a.name == scan.source), None)
    if read is None or _alike(read.element_type) != written:
        raise NoMatchError(f"`{scan.source}` is not a __shared__ array of the type of `{scan.array}`.")
    require_reorderable(kernel, scan.array)
    require_reorderable(kernel, scan.source)
    if "volatile" in kernel.span.code:
        raise NoMatchError(f"{kernel.name} uses volatile memory, whose reads and writes may not change.")
    if scan.node.parent is None or scan.node.parent.type != "compound_statement":
        raise NoMatchError(f"The loop at line {line_of(source, scan.node)} is the body of another statement.")
    if threads <= WARP or (kernel.shared_bytes or 0) + WARP * 8 > SHARED_BYTES:
        raise NoMatchError(
            "Nothing to gain: the block is one warp, or has no shared memory left for the warps' totals."
        )
    typed, spelled = written_as(kernel, scan.array, shared.element_type), locals_of(kernel).types.get(scan.array, "")
    typed = spelled if builtin_type(spelled) is not None else typed
    lines = _lines(kernel, scan, typed, kind, indent_unit(source, block))
    edits, leading, trailing = _without_barriers(kernel, block, scan)
    if scan.waits_first and leading:
        lines.insert(0, scan.barrier)
    if trailing and not scan.serial and not scan.waits_first:
        lines.append(scan.barrier)
    indent = source.line_indent(scan.node.start_byte)
    text = f"\n{indent}".join(lines)
    exact = kind.is_integer
    steps = (threads - 1).bit_length()
    was = (
        f"Thread 0 added {threads} elements one after the other while the others waited."
        if scan.serial
        else f"The loop took {steps} steps over `{scan.array}` with {2 * steps} barriers."
    )
    return Rewrite(
        rewrite=NAME,
        title=title,
        source=source,
        edits=(TextEdit(scan.node.start_byte, scan.node.end_byte, text), *edits),
        explanation=(
            f"{was} Each warp now scans its {WARP} elements by __shfl_up_sync, in registers; the first warp "
            "scans the warps' totals, and each thread adds what stands before its warp."
            + ("" if exact else " The order of the additions changes, and with it the last bits.")
        ),
        safe=exact,
    )


def _without_barriers(kernel: Kernel, block: Node, scan: Scan) -> tuple[list[TextEdit], bool, bool]:
    """Edits that delete the barriers around a scan that order nothing any more, and whether one is needed before it and
    behind it.

    The two within the scan order what stands before it and what follows. The barrier before is for elements that other
    threads set, the one behind for those that other threads read; in a loop they also keep its turns apart.
    """
    source, node = kernel.source, scan.node
    siblings = [n for n in node.parent.named_children if n.type != "comment"] if node.parent == block else []
    if node not in siblings:
        return [], True, True
    place, edits = siblings.index(node), list[TextEdit]()
    before, behind = siblings[place - 1] if place else None, siblings[place + 1] if place + 1 < len(siblings) else None
    others = [
        use
        for array in {scan.array, scan.source}
        for use in names(block, source, array)
        if not node.start_byte <= use.start_byte < node.end_byte and not _is_own(source, block, use)
    ]
    leading = any(use.start_byte < node.start_byte for use in others)
    trailing = any(use.start_byte > node.end_byte for use in others) or scan.total
    if before is not None and is_barrier(before, source) and not leading:
        edits.append(without_lines(source, before))
    if scan.serial and behind is not None and is_barrier(behind, source) and not trailing:
        edits.append(without_lines(source, behind))
    return edits, leading, trailing


def _is_own(source: Source, block: Node, use: Node) -> bool:
    """Whether a use of an array is its declaration, or the element of the thread's index."""
    element = use.parent
    if element is None or element.type != "subscript_expression":
        return element is not None and element.type.endswith("declarator")
    indices = [squeezed(source.node_code(n)) for n in uncommented(element.child_by_field_name("indices"))]
    return len(indices) == 1 and is_thread_number(source, block, indices[0])


def _alike(kind: str) -> str:
    """A type without spaces, under one of its names."""
    text = re.sub(r"\s", "", kind)
    return _ALIKE.get(text, text)


def _lines(kernel: Kernel, scan: Scan, typed: str, kind: CType, unit: str) -> list[str]:
    text = kernel.source.code_text(kernel.span.start, scan.node.start_byte) + kernel.source.code_text(
        scan.node.end_byte, kernel.span.end
    )
    offset, left, value, total, totals = (
        free_name(text, name) for name in ("offset", "left", "value", "total", "warp_totals")
    )
    tid = scan.thread
    zero = "0" if kind.is_integer else "0.0f" if kind.size == 4 else "0.0"
    head = f"for (int {offset} = 1; {offset} < {WARP}; {offset} *= 2) {{"

    def step(of: str, lane: str) -> list[str]:
        return [
            head,
            f"{unit}{typed} {left} = __shfl_up_sync(0xffffffff, {of}, {offset});",
            f"{unit}if ({lane} >= {offset})",
            f"{unit * 2}{of} += {left};",
            "}",
        ]

    before = f"{totals}[{tid} / {WARP} - 1]"
    lines = [
        f"__shared__ {typed} {totals}[{WARP}];",
        f"{typed} {value} = {scan.source}[{tid}];",
        *step(value, f"{tid} % {WARP}"),
        f"if ({tid} % {WARP} == {WARP - 1})",
        f"{unit}{totals}[{tid} / {WARP}] = {value};",
        scan.barrier,
        f"if ({tid} < {WARP}) {{",
        f"{unit}{typed} {total} = {tid} < {scan.bound} / {WARP} ? {totals}[{tid}] : {zero};",
        *(unit + line for line in step(total, tid)),
        f"{unit}{totals}[{tid}] = {total};",
        "}",
        scan.barrier,
    ]
    if not scan.exclusive:
        lines += [f"if ({tid} >= {WARP})", f"{unit}{value} += {before};", f"{scan.array}[{tid}] = {value};"]
    else:
        lines += [
            f"{value} = __shfl_up_sync(0xffffffff, {value}, 1);",
            f"if ({tid} % {WARP} == 0)",
            f"{unit}{value} = {zero};",
            f"if ({tid} >= {WARP})",
            f"{unit}{value} += {before};",
            f"{scan.array}[{tid}] = {value};",
        ]
    if scan.total:
        last = f"{totals}[{scan.bound} / {WARP} - 1]"
        lines += [f"if ({tid} == 0)", f"{unit}{scan.array}[{scan.bound}] = {last};"]
    return lines
