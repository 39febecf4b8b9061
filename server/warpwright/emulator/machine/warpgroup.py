"""Matrix products that a warpgroup starts and waits for later (PTX ISA, "wgmma").

Sums are there at once, for a program may not look at them before it waits. Until then the operands in shared memory
are being read: a store to them, or a copy that starts, is a race, and one by a thread that nothing orders before the
wait is one too. What `st`, `cp.async` and the like wrote is seen only behind a `fence.proxy.async`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from warpwright.emulator.machine.faults import FoundFault, KernelFaultError
from warpwright.emulator.machine.group import WARP, Array, Group
from warpwright.emulator.numerics import matrix
from warpwright.emulator.numerics.warpgroup import GROUP, WORD, Layout, depth_of, multiply_add, operand
from warpwright.facts.profile import FaultKind

if TYPE_CHECKING:
    from warpwright.emulator.machine.batch import Batch


@dataclass(frozen=True, slots=True)
class _Read:
    """Words of shared memory that one instruction reads until it is waited for, shared out among its lanes: arrays
    (turns, lanes) of addresses, and the number of each lane's commit group."""

    step: int
    group: Group
    address: Array
    number: Array


class Warpgroups:
    """The products of a batch that are under way."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.committed: Array = np.zeros(batch.layout.lanes, dtype=np.int64)
        self.under_way: list[_Read] = []
        words = batch.shared.size // WORD + 1
        self.reads: Array = np.zeros(words, dtype=np.int32)
        """How many products under way read each word of shared memory."""
        self.unfenced: Array = np.zeros(words, dtype=bool)
        """Words that were stored to since the last proxy fence of their block."""

    def multiply(
        self,
        step: int,
        group: Group,
        shape: tuple[int, int, int],
        types: tuple[str, str],
        left: Array | tuple[Array, ...],
        right: Array,
        sums: tuple[Array, ...],
        is_scaled: Array,
        signs: tuple[int, int],
        turned: tuple[bool, bool],
    ) -> tuple[Array, ...]:
        """`wgmma.mma_async`; `left` is a descriptor, or the registers that hold A."""
        self._need_whole(step, group)
        m, n, _ = shape
        of_d, of_a = types
        groups = group.size // GROUP
        whole = matrix.Shape(m, n, depth_of(of_a))
        if isinstance(left, tuple):
            a = self._from_registers(group, whole, of_a, left)
        else:
            a = operand(self._read(step, group, left, m, turned[0]), of_a, m, turned[0])
        b = operand(self._read(step, group, right, n, turned[1]), of_a, n, turned[1])
        held = np.stack([np.broadcast_to(each, group.size).reshape(groups, GROUP) for each in sums])
        scaled = np.broadcast_to(is_scaled, group.size).reshape(groups, GROUP)
        found = multiply_add(whole, of_d, a * signs[0], b * signs[1], held, scaled)
        return tuple(np.ascontiguousarray(each).ravel() for each in found)

    def commit(self, step: int, group: Group) -> None:
        """`wgmma.commit_group`."""
        self._need_whole(step, group)
        self.committed[group.lanes] += 1

    def wait(self, step: int, group: Group, latest: int) -> None:
        """`wgmma.wait_group`: the products of all but the `latest` commit groups are done with what they read."""
        self._need_whole(step, group)
        waiting: Array = np.zeros(self.batch.layout.lanes, dtype=bool)
        waiting[group.lanes] = True
        remaining: list[_Read] = []
        for read in self.under_way:
            lanes = read.group.lanes
            due = waiting[lanes] & (read.number < self.committed[lanes] - latest)
            for chosen, is_done in ((due, True), (~due, False)):
                if not chosen.any():
                    continue
                inner, places = read.group.where(chosen)
                part = replace(read, group=inner, address=read.address[:, places], number=read.number[places])
                if is_done:
                    self._end(part)
                else:
                    remaining.append(part)
        self.under_way = remaining

    def fence(self, step: int, group: Group) -> None:
        """`wgmma.fence`: registers are in order here."""
        self._need_whole(step, group)

    def fence_proxy(self, group: Group, mask: Array | None) -> None:
        """`fence.proxy.async`: products of these lanes' blocks see what was stored before."""
        here = group if mask is None else group.where(np.broadcast_to(mask, group.size))[0]
        words = self.batch.shared_stride // WORD
        for block in np.unique(here.block):
            self.unfenced[block * words : (block + 1) * words] = False

    def note_store(self, step: int, group: Group, index: Array, size: int, *, is_done: bool = True) -> None:
        """Lanes store to places of shared memory, or (not `is_done`) begin to copy to them."""
        for past in range(0, max(size, 1), WORD):
            words = index + past >> 4
            self._judge(step, group, self.reads[words] > 0, "stores to {place}, which a wgmma may still be reading")
            if is_done:
                self.unfenced[words] = True

    def _end(self, read: _Read) -> None:
        for address in read.address:
            self.batch.fetch(read.step, read.group, "shared", address, 8, 2)
            np.subtract.at(self.reads, self._index(read.group, address) >> 4, 1)

    def _read(self, step: int, group: Group, descriptor: Array, count: int, is_turned: bool) -> Array:
        """The bytes (warpgroups, words, 16) of an operand in shared memory."""
        named = np.broadcast_to(descriptor, group.size).reshape(-1, GROUP)
        if (named != named[:, :1]).any():
            self._fail(step, group, "the threads of a warpgroup name different matrices")
        layouts = [Layout.of(int(each)) for each in named[:, 0]]
        if any(each.base for each in layouts):
            self._fail(step, group, "the base offset of a matrix descriptor is not emulated")
        words = np.stack([each.words(count, is_turned) for each in layouts])
        turns = -(-words.shape[1] // GROUP)
        shared = np.resize(np.arange(words.shape[1]), turns * GROUP)  # lanes too many read a word again
        address = np.swapaxes(words[:, shared].reshape(len(words), turns, GROUP), 0, 1).reshape(turns, -1)
        address = address.astype(np.uint32)
        parts = []
        for own in address:
            index = self._index(group, own)
            text = "reads by wgmma {place}, which was stored to with no fence.proxy.async since"
            self._judge(step, group, self.unfenced[index >> 4], text)
            np.add.at(self.reads, index >> 4, 1)
            both = self.batch.fetch(step, group, "shared", own, 8, 2)
            parts.append(np.stack(both, axis=1).reshape(len(words), GROUP, 2))
        self.under_way.append(_Read(step, group, address, self.committed[group.lanes].copy()))
        return np.ascontiguousarray(np.concatenate(parts, axis=1)[:, : words.shape[1]]).view(np.uint8)

    def _from_registers(self, group: Group, shape: matrix.Shape, type_name: str, held: tuple[Array, ...]) -> Array:
        """A where it is in registers: each warp holds 16 rows as for `mma`."""
        fragment = np.stack([np.broadcast_to(each, group.size).reshape(-1, WARP) for each in held])
        numbers = matrix.elements(fragment, type_name)
        rows, columns = matrix.places("a", matrix.Shape(16, 8, shape.k), matrix.BITS[type_name])
        whole = np.zeros((len(numbers), 16, shape.k), dtype=numbers.dtype)
        whole[:, rows, columns] = numbers
        return whole.reshape(-1, shape.m, shape.k)

    def _index(self, group: Group, address: Array) -> Array:
        """Places in the batch's shared memory; beyond a block's own they are its last word's."""
        within = np.minimum(address.astype(np.int64), self.batch.shared_stride - WORD)
        return within + group.block * self.batch.shared_stride

    def _need_whole(self, step: int, group: Group) -> None:
        thread = group.pick(self.batch.layout.thread_of)
        if group.size % GROUP == 0:
            first, last = thread[::GROUP], thread[GROUP - 1 :: GROUP]
            if not (first % GROUP).any() and (last - first == GROUP - 1).all():
                return
        self._fail(step, group, "a wgmma instruction is reached by a part of a warpgroup")

    def _fail(self, step: int, group: Group, text: str) -> None:
        raise KernelFaultError(FoundFault(FaultKind.MISSING_SYNCWARP, step, text, self.batch.thread(group, 0)))

    def _judge(self, step: int, group: Group, wrong: Array, text: str) -> None:
        """Note lanes whose access of shared memory meets a product that is under way."""
        wrong = np.broadcast_to(wrong, group.size)
        if wrong.any():
            thread = self.batch.thread(group, int(np.argmax(wrong)))
            said = f"{thread} {text.format(place='shared memory')}"
            count = int(np.count_nonzero(wrong))
            self.batch.prepared.note(FoundFault(FaultKind.SHARED_RACE, step, said, thread, count=count, space="shared"))
