"""Thread block clusters (PTX ISA, "barrier.cluster"): their barrier, and addresses of other blocks' shared memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from warpwright.emulator.flow import Goto
from warpwright.emulator.machine.faults import FoundFault, KernelFaultError
from warpwright.emulator.machine.group import Array, Group
from warpwright.emulator.machine.memory import BLOCK_WINDOW, WINDOW_BYTES
from warpwright.facts.profile import FaultKind

if TYPE_CHECKING:
    from warpwright.emulator.machine.batch import Batch


@dataclass(frozen=True, slots=True)
class Standing:
    """Lanes that wait at the barrier of their cluster."""

    step: int
    group: Group
    then: Goto


class Clusters:
    """The clusters of a batch: `blocks` blocks each, side by side. `phase` counts how often a cluster's barrier opened,
    `arrived` the threads that have arrived at it since, of which `gone` have ended, and `of_lane` has the phase of each
    lane's last arrival. `alive` counts those that have ended after they arrived until the barrier opens."""

    def __init__(self, batch: Batch, blocks: int) -> None:
        layout = batch.layout
        self.batch = batch
        self.blocks = blocks
        self.cluster_of: Array = layout.block_of // blocks
        count = -(-layout.blocks // blocks)
        self.alive: Array = np.bincount(self.cluster_of, minlength=count)
        self.whole: Array = self.alive.copy()
        self.arrived: Array = np.zeros(count, dtype=np.int64)
        self.gone: Array = np.zeros(count, dtype=np.int64)
        self.phase: Array = np.zeros(count, dtype=np.int64)
        self.of_lane: Array = np.full(layout.lanes, -1, dtype=np.int64)
        self.waiting: list[Standing] = []
        self.changes = 0

    def arrive(self, group: Group, mask: Array | None) -> None:
        """`barrier.cluster.arrive`."""
        if mask is not None:
            group = group.where(np.broadcast_to(mask, group.size))[0]
        if not group.size:
            return
        cluster = group.pick(self.cluster_of)
        self.of_lane[group.lanes] = self.phase[cluster]
        self.arrived += np.bincount(cluster, minlength=len(self.arrived))
        self.changes += 1
        self._open()

    def wait(self, step: int, group: Group, then: Goto) -> None:
        """`barrier.cluster.wait`."""
        if group.size:
            self.waiting.append(Standing(step, group, then))
            self._release()

    def exit(self, group: Group) -> None:
        """Lanes end. Nobody waits for them any more; what has arrived stays so."""
        cluster = group.pick(self.cluster_of)
        has_arrived = group.pick(self.of_lane) == self.phase[cluster]
        self.gone += np.bincount(cluster[has_arrived], minlength=len(self.gone))
        self.alive -= np.bincount(cluster[~has_arrived], minlength=len(self.alive))
        self._open()

    def finish(self) -> None:
        """At the end of the batch. Raises KernelFaultError where lanes still wait."""
        for entry in self.waiting:
            cluster = int(entry.group.pick(self.cluster_of)[0])
            text = f"{int(self.arrived[cluster]):,} of {int(self.alive[cluster]):,} threads have arrived at the "
            text += "barrier of the cluster, and the others never arrive"
            thread, count = self.batch.thread(entry.group, 0), entry.group.size
            raise KernelFaultError(FoundFault(FaultKind.DEADLOCK, entry.step, text, thread, count=count))

    def step_of(self, lane: int) -> int | None:
        """The instruction at which a lane waits."""
        return next((entry.step for entry in self.waiting if lane in entry.group.lanes), None)

    def address(self, group: Group, address: Array, rank: Array) -> Array:
        """`mapa`: where the same place of another block's shared memory lies."""
        low = np.uint64(BLOCK_WINDOW)
        own = np.broadcast_to(address, group.size).astype(np.uint64)
        start = own & ~np.uint64(WINDOW_BYTES - 1)
        return (start + own % low + (rank.astype(np.uint64) + np.uint64(1)) * low).astype(address.dtype)

    def rank(self, group: Group, address: Array) -> Array:
        """`getctarank`: the block of its cluster whose shared memory an address lies in."""
        named = (np.broadcast_to(address, group.size).astype(np.uint64) % WINDOW_BYTES // BLOCK_WINDOW).astype(np.int64)
        return np.where(named > 0, named - 1, group.block % self.blocks).astype(np.uint32)

    def block_of(self, group: Group, place: Array) -> Array:
        """The block of the batch whose shared memory each lane's address in the shared window lies in."""
        named = np.broadcast_to(place, group.size) // BLOCK_WINDOW
        return np.where(named > 0, group.block // self.blocks * self.blocks + named - 1, group.block)

    def _open(self) -> None:
        done = (self.arrived > 0) & (self.arrived >= self.alive)
        if not done.any():
            return
        self._judge(done & (self.alive < self.whole))
        self.alive[done] -= self.gone[done]
        self.arrived[done] = self.gone[done] = 0
        self.phase[done] += 1
        self._release()

    def _judge(self, lacking: Array) -> None:
        """Note clusters whose barrier opens although threads of theirs have ended."""
        for entry in self.waiting:
            there = lacking[entry.group.pick(self.cluster_of)]
            if there.any():
                place = int(np.argmax(there))
                cluster = int(entry.group.pick(self.cluster_of)[place])
                gone = int(self.whole[cluster] - self.alive[cluster])
                text = f"{gone:,} of the cluster's {int(self.whole[cluster]):,} threads ended before this barrier"
                thread = self.batch.thread(entry.group, place)
                self.batch.prepared.note(FoundFault(FaultKind.BARRIER_NOT_REACHED, entry.step, text, thread))

    def _release(self) -> None:
        standing, self.waiting = self.waiting, []
        for entry in standing:
            free = self.phase[entry.group.pick(self.cluster_of)] > entry.group.pick(self.of_lane)
            if not free.all():
                self.waiting.append(Standing(entry.step, entry.group.where(~free)[0], entry.then))
            if free.any():
                going = entry.group.where(free)[0]
                self.batch.races.order.meet_in_clusters(going)
                self.batch.send(entry.then, going)
