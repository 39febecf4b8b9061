"""Asynchronous copies from global to shared memory (PTX ISA, "cp.async").

A copy is made when its thread waits for it: a program that reads before finds what was there before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from warpwright.emulator.machine.group import Array, Group

if TYPE_CHECKING:
    from warpwright.emulator.machine.batch import Batch


@dataclass(slots=True)
class _Copy:
    """One instruction's copies: for each lane of `group` where to, what, and the number of its commit group."""

    step: int
    group: Group
    target: Array
    values: tuple[Array, ...]
    size: int
    number: Array


class Copies:
    """The copies of a batch that are on their way."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.committed: Array = np.zeros(batch.layout.lanes, dtype=np.int64)
        self.under_way: list[_Copy] = []
        self.started = 0

    def start(
        self, step: int, group: Group, target: Array, source: Array, size: int, read: Array, mask: Array | None
    ) -> None:
        """`cp.async`: `size` bytes for each lane, of which `read` come from memory and the rest are zero."""
        if mask is not None:
            group, places = group.where(np.broadcast_to(mask, group.size))
            target, source, read = (v if v.ndim == 0 else v[places] for v in (target, source, read))
        if not group.size:
            return
        target, source, read = (np.broadcast_to(v, group.size) for v in (target, source, read))
        batch = self.batch
        word = 4 if size % 8 else 8
        count = size // word
        dtype = np.uint32 if word == 4 else np.uint64
        values = []
        for k in range(count):
            full = read >= (k + 1) * word
            part: Array = np.zeros(group.size, dtype=dtype)
            if full.all():
                part = batch.fetch(step, group, "global", source + source.dtype.type(k * word), word)[0]
            elif full.any():
                inner, places = group.where(full)
                there = source[places] + source.dtype.type(k * word)
                part[places] = batch.fetch(step, inner, "global", there, word)[0]
            values.append(part)
        reading = read > 0
        if reading.any():
            inner, places = group.where(reading)
            batch.count(step, inner, "global", source[places], size)
        batch.count(step, group, "shared", target, size)
        if batch.warpgroups is not None:
            index = target.astype(np.int64) + group.block * batch.shared_stride
            batch.warpgroups.note_store(step, group, index, size, is_done=False)
        self.started += 1
        number = self.committed[group.lanes].copy()
        self.under_way.append(_Copy(step, group, target.copy(), tuple(values), word, number))

    def commit(self, group: Group, mask: Array | None) -> None:
        """`cp.async.commit_group`."""
        self.committed[self._lanes(group, mask)] += 1

    def wait(self, group: Group, latest: int | None, mask: Array | None) -> None:
        """`cp.async.wait_group`: make the lanes' copies, but those of their `latest` commit groups; None for all."""
        waiting: Array = np.zeros(self.batch.layout.lanes, dtype=bool)
        waiting[self._lanes(group, mask)] = True
        remaining = []
        for copy in self.under_way:
            due = waiting[copy.group.lanes]
            if latest is not None:
                due = due & (copy.number < self.committed[copy.group.lanes] - latest)
            if due.any():
                inner, places = copy.group.where(due)
                values = [value if value.ndim == 0 else value[places] for value in copy.values]
                self.batch.put(copy.step, inner, "shared", copy.target[places], copy.size, values)
            if not due.all():
                inner, places = copy.group.where(~due)
                values = [value if value.ndim == 0 else value[places] for value in copy.values]
                remaining.append(
                    _Copy(copy.step, inner, copy.target[places], tuple(values), copy.size, copy.number[places])
                )
        self.under_way = remaining

    def _lanes(self, group: Group, mask: Array | None) -> Array:
        return group.lanes if mask is None else group.lanes[np.broadcast_to(mask, group.size)]
