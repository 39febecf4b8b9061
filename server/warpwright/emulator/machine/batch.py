"""Some blocks of a grid, run together: who waits where, what registers and memories hold, what was counted."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

import numpy as np

from warpwright.emulator.flow import Goto
from warpwright.emulator.machine.access import Access
from warpwright.emulator.machine.barriers import Barriers
from warpwright.emulator.machine.clusters import Clusters
from warpwright.emulator.machine.copies import Copies
from warpwright.emulator.machine.faults import FoundFault, KernelFaultError
from warpwright.emulator.machine.group import Array, Group, Layout, layout_of
from warpwright.emulator.machine.held import Held
from warpwright.emulator.machine.mbarriers import Mbarriers
from warpwright.emulator.machine.special import special_register
from warpwright.emulator.machine.warpgroup import Warpgroups
from warpwright.facts.profile import FaultKind
from warpwright.progress import CancelledError

if TYPE_CHECKING:
    from warpwright.emulator.launch import Prepared


ROUNDS_BETWEEN_LOOKS = 256
STEP_LANES = 500
"""Lanes whose instructions take as long as what an instruction takes for however few lanes; they count in the limit."""


class Batch(Access):
    """Run with `run`. Translated blocks call the methods of this class and of `Access`."""

    def __init__(self, prepared: Prepared, first_block: int, blocks: int) -> None:
        super().__init__(prepared, layout_of(blocks, prepared.threads), first_block)
        self.registers: list[Array] = list(prepared.program.registers)
        self.everyone = self.layout.everyone
        self.barriers = Barriers(self)
        self.held = Held(self)
        self._rounds = 0
        self._looks_at_clock = 0
        self._pending: dict[tuple[float, int], list[Group]] = {}
        self._order: list[tuple[float, int]] = []
        self._special: dict[str, Array] = {}
        self.copies = Copies(self)
        self.mbarriers = Mbarriers(self)
        cluster = prepared.program.cluster
        self.clusters = Clusters(self, cluster) if cluster else None
        has_products = any(each.opcode == "wgmma" for each in self.program.steps)
        self.warpgroups = Warpgroups(self) if has_products else None
        self.send(Goto(0, 0.0), self.everyone)

    # What happens to lanes

    def send(self, to: Goto, group: Group) -> None:
        """Let lanes wait for a block."""
        if not group.size:
            return
        key = (to.rank, to.block)
        waiting = self._pending.get(key)
        if waiting is None:
            self._pending[key] = [group]
            heappush(self._order, key)
        else:
            waiting.append(group)

    def run(self) -> bool:
        """Run all lanes to their end; False where all that are left wait for what other blocks may do.

        Raises KernelFaultError and CancelledError.
        """
        while True:
            self._run_pending()
            met = self.held.take_met()
            if met:
                for number, group in met:
                    self._execute(number, group)
                continue
            if self.held.spinning:
                spinning = self.held.take_spinning()
                for number, group in spinning.items():
                    self._execute(number, group)
                self._run_pending()
                if {n: g.size for n, g in self.held.spinning.items()} == {n: g.size for n, g in spinning.items()}:
                    return False
                continue
            if self.held.meeting:
                self._execute(*self.held.take_stranded())
            elif not self.mbarriers.give_up():
                break
        self.barriers.finish()
        self.mbarriers.finish()
        if self.clusters is not None:
            self.clusters.finish()
        return True

    def _run_pending(self) -> None:
        """Run what is not held, the earliest block first."""
        while self._order:
            key = heappop(self._order)
            rank, number = key
            group = self.joined(self._pending.pop(key))
            if self.held.is_spinning(number, rank, group):
                continue
            group = self.held.gather(number, group)
            if group.size:
                self._execute(number, group)

    def watch(self) -> None:
        """Count changes from here on."""
        self.memory.is_watched = self.shared.is_watched = self.local.is_watched = True

    def changes(self, *, with_time: bool = True) -> tuple[int, ...]:
        """Another one wherever something has changed that lanes see of each other, of time or of what they did."""
        counts = self.memory.changes, self.shared.changes, self.local.changes, self.barriers.changes
        looks = self._looks_at_clock if with_time else 0
        met = self.mbarriers.changes + (self.clusters.changes if self.clusters is not None else 0)
        return (*counts, looks, met, self.copies.started, len(self.prepared.printed))

    def _execute(self, number: int, group: Group) -> None:
        prepared = self.prepared
        self.tallies.enter(number, group)
        outcome = self.program.functions[number](self, group, self.registers)
        self._leave(number, group, outcome)
        self._rounds += 1
        if self._rounds % ROUNDS_BETWEEN_LOOKS == 0 and prepared.is_cancelled():
            raise CancelledError
        prepared.spent += (group.size + STEP_LANES) * prepared.costs[number]
        if prepared.spent > prepared.most_lane_steps:
            raise KernelFaultError(self._endless(number, group))

    def joined(self, groups: list[Group]) -> Group:
        """One group of the lanes of several."""
        if len(groups) == 1:
            return groups[0]
        lanes = np.concatenate([group.lanes for group in groups])
        lanes.sort()
        return self.everyone if len(lanes) == self.layout.lanes else Group(self.layout, lanes)

    def _leave(self, number: int, group: Group, outcome: Any) -> None:
        block = self.program.blocks[number]
        last = block.last
        if last is None:
            if block.next is not None:
                self.send(block.next, group)
            else:
                self._exit(group)
            return
        step = self.program.last_steps[number]
        assert step is not None
        match last.opcode:
            case "bra":
                taken, stay = self._split(group, outcome)
                if taken.size and stay.size:
                    self.tallies.diverge(step, taken, stay, group)
                self.send(block.taken[0], taken)
                if block.next is not None:
                    self.send(block.next, stay)
            case "ret" | "exit":
                gone, stay = self._split(group, outcome)
                if gone.size and stay.size:
                    self.tallies.diverge(step, gone, stay, group)
                if gone.size:
                    self._exit(gone)
                if block.next is not None:
                    self.send(block.next, stay)
            case "trap":
                gone, stay = self._split(group, outcome)
                if gone.size:
                    raise KernelFaultError(FoundFault(FaultKind.TRAP, step, "a trap", self.thread(gone, 0)))
                if block.next is not None:
                    self.send(block.next, stay)
            case "mbarrier":
                self._ask(step, group, outcome, block.next)
            case "barrier" if "cluster" in last.modifiers:
                here, past = self._split(group, outcome)
                assert block.next is not None and self.clusters is not None
                self.clusters.wait(step, here, block.next)
                self.send(block.next, past)
            case "brx":
                self._jump(step, group, outcome, block.taken, block.next)
            case _:
                mask, numbers, vote = outcome
                here, past = self._split(group, mask)
                assert block.next is not None
                numbers = tuple(_among(mask, each) for each in numbers)
                self._arrive(step, here, numbers, _among(mask, vote), block.next)
                self.send(block.next, past)

    def _exit(self, group: Group) -> None:
        self.barriers.exit(group)
        if self.clusters is not None:
            self.clusters.exit(group)

    def _ask(self, step: int, group: Group, outcome: Any, then: Goto | None) -> None:
        """Let lanes ask whether a phase of an mbarrier has ended."""
        mask, space, address, phase = outcome
        here, past = self._split(group, mask)
        assert then is not None
        if here.size:
            address, phase = _among(mask, address), _among(mask, phase)
            is_parity = "parity" in self.program.steps[step].modifiers
            self.mbarriers.ask(step, here, space, address, phase, is_parity, then)
        self.send(then, past)

    def _arrive(self, step: int, group: Group, numbers: tuple[Array, ...], vote: Array | None, then: Goto) -> None:
        """Let lanes come to a barrier, each to the one that it names."""
        named = numbers[0] if numbers else None
        if named is None or named.ndim == 0 or not group.size or (named == named[0]).all():
            if group.size:
                self.barriers.arrive(step, group, numbers, vote, then)
            return
        for number in np.unique(named):
            there, places = group.where(named == number)
            own = tuple(each if each.ndim == 0 else each[places] for each in numbers)
            self.barriers.arrive(step, there, own, vote if vote is None or vote.ndim == 0 else vote[places], then)

    def _split(self, group: Group, mask: Array | None) -> tuple[Group, Group]:
        """The lanes for which a mask holds, and the others; None holds for all."""
        if mask is None:
            return group, _nobody(self.layout)
        if mask.ndim == 0:
            return (group, _nobody(self.layout)) if mask else (_nobody(self.layout), group)
        count = np.count_nonzero(mask)
        if count == group.size:
            return group, _nobody(self.layout)
        if not count:
            return _nobody(self.layout), group
        return group.where(mask)[0], group.where(~mask)[0]

    def _jump(self, step: int, group: Group, outcome: Any, targets: tuple[Goto, ...], behind: Goto | None) -> None:
        mask, index = outcome
        here, past = self._split(group, mask)
        if behind is not None:
            self.send(behind, past)
        index = _among(mask, index)
        for i, target in enumerate(targets):
            going, _ = self._split(here, index == np.uint32(i))
            if going.size and going.size < here.size:
                self.tallies.diverge(step, going, here, here)
            self.send(target, going)

    def _endless(self, number: int, group: Group) -> FoundFault:
        text = f"the kernel has not ended after {self.tallies.lane_steps:,} instructions of threads; it was here, "
        text += f"with {group.size:,} thread{'s' if group.size != 1 else ''}"
        steps = self.program.block_steps[number]
        places = {step: self.program.steps[step].place for step in steps}
        known = (step for step, place in places.items() if place is not None and place.line)
        return FoundFault(FaultKind.STEP_LIMIT, next(known, steps[0]), text, self.thread(group, 0))

    # What translated code asks for

    def special(self, name: str, group: Group) -> Array:
        """A special register's value for the lanes of a group, as uint32, or uint64 for the 64-bit ones."""
        if name not in self._special:
            value = special_register(name, self)
            if value is None:
                return self._clock(name)
            self._special[name] = value
        return group.pick(self._special[name])

    def _clock(self, name: str) -> Array:
        self._looks_at_clock += 1
        ticks = self.tallies.lane_steps
        return np.uint64(ticks) if name in {"%clock64", "%globaltimer"} else np.uint32(ticks & 0xFFFFFFFF)

    def symbol(self, name: str, offset: int) -> Array:
        """The address of a variable or function."""
        return np.uint64(self.prepared.symbols[name] + offset)

    def parameter(self, name: str, offset: int, dtype: Any) -> Array:
        """A part of one of the kernel's parameters."""
        start = self.program.parameters[name][0] + offset
        return np.frombuffer(self.prepared.parameters, dtype=dtype, count=1, offset=start)[0]

    def sync_warp(self, group: Group, mask: Array | None) -> None:
        """What came before it in a warp happened before what comes after."""
        here, _ = self._split(group, mask)
        if here.size:
            self.races.order.meet_in_warps(here)

    def need_own_lane(self, step: int, group: Group, members: Array, mask: Array | None) -> None:
        """Note lanes that meet others with a mask that does not name themselves."""
        stray = (np.broadcast_to(members, group.size) >> group.lane.astype(np.uint32)) & np.uint32(1) == 0
        stray = stray if mask is None else stray & mask
        if stray.any():
            at = int(np.argmax(stray))
            thread, count = self.thread(group, at), int(np.count_nonzero(stray))
            text = f"{thread} calls this with a mask that does not name its own lane, {int(group.lane[at])}"
            self.prepared.note(FoundFault(FaultKind.OUTSIDE_MASK, step, text, thread, count=count))

    def need_lanes(self, step: int, group: Group, absent: Array | None, members: Array, mask: Array | None) -> None:
        """Note lanes that read at a shuffle from a lane that its mask names and that has ended; `absent` has the lane
        that is not there, or -1."""
        if absent is None:
            return
        named = (np.broadcast_to(members, group.size) >> np.maximum(absent, 0).astype(np.uint32)) & np.uint32(1)
        lacking = (absent >= 0) & (named != 0)
        lacking = lacking if mask is None else lacking & mask
        kind, known = FaultKind.BARRIER_NOT_REACHED, self.prepared.faults
        if lacking.any() and not any(found.kind is kind and found.step == step for found in known.values()):
            at = int(np.argmax(lacking))
            reader = self.thread(group, at)
            text = f"{reader} reads at a shuffle from lane {int(absent[at])} of its warp, which its mask names and "
            text += "which has ended"
            other = self.thread_at(int(group.lanes[at]) - int(group.lane[at]) + int(absent[at]))
            count = int(np.count_nonzero(lacking))
            self.prepared.note(FoundFault(kind, step, text, reader, count=count, other_thread=other))

    def fence(self, group: Group, mask: Array | None) -> None:
        """What these lanes did before is known to other blocks before what they do next."""
        here, _ = self._split(group, mask)
        if here.size:
            self.races.order.fence(here)

    def fence_proxy(self, group: Group, mask: Array | None) -> None:
        """What was stored before is there for what reads past the generic proxy."""
        if self.warpgroups is not None:
            self.warpgroups.fence_proxy(group, mask)

    def arrive(self, step: int, group: Group, numbers: tuple[Array, ...], mask: Array | None) -> None:
        """`bar.arrive`: count these lanes as come, without letting them wait."""
        here, _ = self._split(group, mask)
        if here.size:
            self.barriers.come(step, here, numbers)

    def count_guarded(self, step: int, mask: Array) -> None:
        on = int(np.count_nonzero(mask)) if mask.ndim else None
        self.tallies.guard(step, on, bool(mask) if on is None else True)


def _nobody(layout: Layout) -> Group:
    return Group(layout, np.empty(0, dtype=np.int64))


def _among(mask: Array | None, values: Array | None) -> Array | None:
    """The values of a group's lanes for which a mask holds; a value that all lanes share stays one."""
    if values is None or values.ndim == 0 or mask is None or mask.ndim == 0:
        return values
    return values[mask]
