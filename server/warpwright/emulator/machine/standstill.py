"""When nothing can go on any more: every lane that is left waits, and none of them changes anything.

Lanes that go round a loop in vain (`held`) get a turn of it whenever nothing else can run. Where a turn of all of them,
in all blocks that have started, changes no memory and leaves their registers as they were, the next turn does the same,
in whatever order they run: they wait for ever. Whoever changes something in each turn, such as a counter of tries, or
reads a clock is not judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from warpwright.emulator.machine.faults import FoundFault, KernelFaultError
from warpwright.emulator.machine.memory import GLOBAL_WINDOW
from warpwright.facts.profile import FaultKind

if TYPE_CHECKING:
    from warpwright.emulator.launch import Prepared
    from warpwright.emulator.machine.batch import Batch


def gone_on(prepared: Prepared, batches: Sequence[Batch], not_started: int) -> list[Batch]:
    """Let batches run of which all lanes waited; those that still do. `not_started` blocks start when others end.

    Raises KernelFaultError where they wait for ever, and what `Batch.run` raises.
    """
    for batch in batches:
        batch.watch()
    before = [batch.changes() for batch in batches]
    left = [batch for batch in batches if not batch.run()]
    if len(left) < len(batches) or [batch.changes() for batch in batches] != before:
        return left
    held = [batch.held.state() for batch in batches]
    prepared.awaited = {}
    left = [batch for batch in batches if not batch.run()]
    is_still = len(left) == len(batches) and [batch.changes() for batch in batches] == before
    if is_still and all(batch.held.is_in(state) for batch, state in zip(batches, held, strict=True)):
        raise KernelFaultError(_deadlock(prepared, batches, not_started))
    prepared.awaited = None
    return left


def _deadlock(prepared: Prepared, batches: Sequence[Batch], not_started: int) -> FoundFault:
    """Who waits for what, of one of those that wait."""
    circling = sum(group.size for batch in batches for group in batch.held.spinning.values())
    meeting = [(step, batch, group) for batch in batches for step, group in batch.held.meetings()]
    for batch in batches:
        meeting += [(entry.step, batch, entry.group) for entry in batch.barriers.entries()]
        meeting += [(entry.step, batch, entry.group) for entry in batch.mbarriers.waiting]
        if batch.clusters is not None:
            meeting += [(entry.step, batch, entry.group) for entry in batch.clusters.waiting]
    at_barriers = sum(group.size for _, _, group in meeting)
    text = f"{circling:,} thread{'s go' if circling != 1 else ' goes'} round such a loop"
    text += f", {at_barriers:,} wait{'s' if at_barriers == 1 else ''} at a barrier" if at_barriers else ""
    text += f", {not_started:,} blocks start only when others have ended" if not_started else ""
    other = meeting[0] if meeting else None
    batch = next(batch for batch in batches if batch.held.spinning)
    number, group = min(batch.held.spinning.items())
    step, thread, space, address = prepared.program.block_steps[number][0], batch.thread(group, 0), "", None
    if prepared.awaited:
        step, (thread, space, address) = min(prepared.awaited.items())
    array, offset = None, None
    if address is not None and space == "shared":
        array, offset = prepared.shared_place(address)
    elif address is not None and space != "local":
        array, offset = prepared.memory.place(address - GLOBAL_WINDOW)
    return FoundFault(
        FaultKind.DEADLOCK if prepared.is_whole else FaultKind.STEP_LIMIT,
        step,
        text if prepared.is_whole else "the blocks that are run wait for others, which are not",
        thread,
        address,
        circling,
        other_step=other[0] if other else None,
        other_thread=other[1].thread(other[2], 0) if other else None,
        space=space,
        array=array,
        offset=offset,
        keeps_lock=not meeting and space == "global" and _is_changed(prepared, batches, address),
    )


def _is_changed(prepared: Prepared, batches: Sequence[Batch], address: int | None) -> bool:
    """Whether all wait in one loop for a word that does not hold what it did when the kernel began."""
    loops = {number for batch in batches for number in batch.held.spinning}
    if prepared.began is None or address is None or len(loops) != 1:
        return False
    place = address - GLOBAL_WINDOW
    return bool((prepared.began[place : place + 4] != prepared.memory.data[place : place + 4]).any())
