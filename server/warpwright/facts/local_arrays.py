"""Which arrays of a thread lie in local memory, and the accesses to them.

Registers have no addresses. nvcc (13.0, -O3, sm_90: read from its machine code) keeps an array in registers where every
index is known once loops are unrolled, and picks single elements of a small one by a chain of selects. The array goes
to local memory, which is the thread's own part of global memory, where

- it is larger than all the registers that a thread can have, and not only what one loop writes and reads again;
- its elements are not of 4 bytes and a run-time value indexes one;
- it has more than 24 words of 4 bytes and run-time values index it in a loop that is not unrolled, or at two places.

Between 2 and 24 words it depends on the code around, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from warpwright.facts import ir
from warpwright.facts.bodies import Body, LocalArray
from warpwright.facts.constants import fold
from warpwright.facts.model import WARP, Access, AccessKind, Basis, Space
from warpwright.facts.types import UNKNOWN_TYPE, CType
from warpwright.syntax.source import Span

REGISTER_BYTES = 255 * 4
"""The most registers of a thread (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability")."""
SELECTED_WORDS = 24
"""Words up to which elements can be picked by selects."""


@dataclass(frozen=True, slots=True)
class LocalUse:
    """One element of a local array, read or written.

    `dynamic` where a run-time value is one of its indices, `fixed` where all of them are literals. `in_loop`: in one
    whose length the compiler does not know; `loop` is the innermost of any kind.
    """

    array: LocalArray
    span: Span
    type: CType
    kind: AccessKind
    dynamic: bool
    fixed: bool
    in_loop: bool
    loop: ir.Loop | None


def local_uses(body: Body) -> Iterator[LocalUse]:
    """Every use of an element of a local array in one body."""
    for step in body.outline.steps if body.arrays else ():
        in_loop, loop = body.in_late_loop(step), step.loops[-1] if step.loops else None
        targets: dict[ir.Expr, bool] = {}
        inner: set[ir.Expr] = set()
        for node in step.nodes:
            match node:
                case ir.Assign(op=op, target=target):
                    targets[target] = bool(op)
                case ir.Update(target=target):
                    targets[target] = True
                case ir.Index(base=base) | ir.Member(base=base):
                    inner.add(base)
        for node in step.nodes:
            if not isinstance(node, (ir.Index, ir.Member)) or node in inner:
                continue
            array, kind = body.local_array(node), body.type_of(node)
            if array is None or kind.size is None or kind.kind == "array":
                continue
            dynamic = any(body.is_run_time(index) for index in _indices(node))
            fixed = all(fold(index) is not None for index in _indices(node))
            if node not in targets or targets[node]:
                yield LocalUse(array, node.span, kind, AccessKind.LOAD, dynamic, fixed, in_loop, loop)
            if node in targets:
                yield LocalUse(array, node.span, kind, AccessKind.STORE, dynamic, fixed, in_loop, loop)


def local_accesses(uses: Iterable[LocalUse], launch: int) -> list[Access]:
    """The accesses to local memory among the uses of all bodies of a kernel."""
    by_array: dict[LocalArray, list[LocalUse]] = {}
    for use in uses:
        by_array.setdefault(use.array, []).append(use)
    found: dict[tuple[str, int, int, AccessKind], Access] = {}
    for array, own in by_array.items():
        why = _why(array, own)
        for use in own if why else []:
            key = (use.span.path, use.span.start, use.span.end, use.kind)
            if key not in found or use.in_loop:
                found[key] = _access(array, use, launch, why)
    return list(found.values())


def _why(array: LocalArray, uses: list[LocalUse]) -> str:
    """Why the array lies in local memory; empty where it need not."""
    size = array.type.size
    if size is None or array.type.assumed:
        return ""
    # What one iteration writes and reads again stays in registers, and so do elements that are named one by one.
    moving = [use for use in uses if not use.fixed]
    if size > REGISTER_BYTES and (any(use.dynamic for use in moving) or len({use.loop for use in moving}) > 1):
        return f"Local array `{array.name}` of {size} bytes exceeds the register file of a thread"
    dynamic = {(use.span.path, use.span.start) for use in uses if use.dynamic}
    if not dynamic:
        return ""
    element = array.type
    while element.kind == "array":
        element = element.to or UNKNOWN_TYPE
    looped = any(use.dynamic and use.in_loop for use in uses)
    narrow = element.kind != "struct" and element.size != 4 and size > (element.size or 0)
    if narrow or (size > 4 * SELECTED_WORDS and (looped or len(dynamic) > 1)):
        return f"Local array `{array.name}` is indexed by run-time values, so it lives in local memory"
    return ""


def _access(array: LocalArray, use: LocalUse, launch: int, why: str) -> Access:
    return Access(
        span=use.span,
        expression=use.span.one_line,
        array=array.name,
        launch=launch,
        space=Space.LOCAL,
        kind=use.kind,
        bytes=use.type.size or 0,
        basis=Basis.ASSUMED,
        active_lanes=float(WARP),
        requests=1,
        sectors_per_request=None,
        ideal_sectors_per_request=None,
        wavefronts_per_request=None,
        ideal_wavefronts_per_request=None,
        why=why,
        in_loop=use.in_loop,
        type=use.type.name,
        run_time_index=use.dynamic,
    )


def _indices(node: ir.Expr) -> Iterator[ir.Expr]:
    while isinstance(node, (ir.Index, ir.Member)):
        if isinstance(node, ir.Index):
            yield node.index
        node = node.base
