"""Objects of `cuda::barrier`: threads arrive at them, and wait until as many have arrived as the object was set up for
(libcu++, "cuda::barrier")."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from warpwright.facts import ir
from warpwright.facts.meetings import Step
from warpwright.facts.model import Space
from warpwright.facts.places import Location, MemoryPlace
from warpwright.facts.types import BARRIER
from warpwright.facts.values import EXACT, AnyValue, Value, exact_number

if TYPE_CHECKING:
    from warpwright.facts.evaluate import Evaluator

_METHODS = {"arrive": (True, False), "wait": (False, True), "arrive_and_wait": (True, True)}
"""Whether a thread arrives, and whether it waits."""


def _object(pointer: Value) -> Hashable | None:
    """Which object of shared memory a pointer means; None where that is not known."""
    region, at = pointer.region, pointer.data
    known = region is not None and region.space is Space.SHARED and pointer.basis == EXACT and isinstance(at, int)
    return (id(region), at) if known and not pointer.soft else None


def set_up(run: Evaluator, arguments: list[AnyValue]) -> bool:
    """Whether a call was `init(&barrier, threads)`, which is kept."""
    pointer, threads = (*arguments, None, None)[:2]
    if not isinstance(pointer, Value) or pointer.type.to is None or pointer.type.to.kind != BARRIER.kind:
        return False
    name = _object(pointer)
    needed = exact_number(threads)
    if name is not None and needed is not None:
        run.recorder.phases[name] = needed
    return True


def barrier_method(run: Evaluator, node: ir.Call, place: Location, mask: int) -> bool:
    """Whether a call on an object is one of a barrier that is followed: what it does is recorded."""
    if not isinstance(place, MemoryPlace) or place.type.kind != BARRIER.kind or node.name not in _METHODS:
        return False
    name = _object(place.pointer)
    threads = run.recorder.phases.get(name) if name is not None else None
    counted = node.name != "arrive" or not node.arguments
    if threads is None or not counted:
        return False
    comes, waits = _METHODS[node.name]
    step = Step(node.span, name, mask.bit_count() if comes else 0, waits, threads)
    run.recorder.comes(step, mask, run.warp.mask & ~run.kernel_frame.returned, run.warp.position)
    return True
