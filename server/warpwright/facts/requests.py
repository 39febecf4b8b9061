"""Requests that wait for their neighbours: when straight code ends, they are counted as the compiler merges them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from warpwright.facts.merging import PENDING, chains
from warpwright.facts.model import WIDEST, AccessKind, Space
from warpwright.facts.tallies import Request


@dataclass(slots=True)
class Requests:
    """The requests since straight code began, by space, and what the warps before this one taught of their starts."""

    waiting: dict[Space, list[Request]] = field(default_factory=lambda: {Space.GLOBAL: [], Space.SHARED: []})
    looks: dict[int, int] = field(default_factory=lambda: {})  # of this warp: tally -> pieces of straight code seen
    starts: dict[tuple[int, int], int] = field(default_factory=lambda: {})  # tally, piece -> bytes past 16 k

    def add(self, request: Request) -> None:
        """Let a request wait with others of its space and kind; what it finds in a register it does not need."""
        tally = request.tally
        waiting = self.waiting[tally.space]
        if tally.kind is AccessKind.LOAD and not request.pointer.soft:
            kept = next((w for w in reversed(waiting) if w.region is request.region and request.is_at(w, 0)), None)
            if kept is not None and kept.size == request.size:
                if kept.tally is not tally:
                    tally.led.add(kept, kept.size)
                    if kept.tally not in tally.leads:
                        tally.leads.append(kept.tally)
                return
        if waiting and (waiting[-1].tally.kind is not tally.kind or len(waiting) >= PENDING):
            self._flush(tally.space)
        self.waiting[tally.space].append(request)

    def begin_warp(self) -> None:
        self.looks.clear()

    def flush(self) -> bool:
        """Count what waits: the code is straight only up to here.

        True where requests of one access became one, as those of successive iterations do.
        """
        unrolled = False
        for space, waiting in self.waiting.items():
            if waiting:
                unrolled |= self._flush(space)
        return unrolled

    def _flush(self, space: Space) -> bool:
        waiting, self.waiting[space] = self.waiting[space], []
        firsts: dict[int, Request] = {}
        for request in waiting:
            request.tally.alone.add(request, request.size)
            firsts.setdefault(id(request.tally), request)
        for request in firsts.values():
            self._compare_start(request)
            for partner, distance in request.tally.partners.items():
                if partner in firsts and request.first - firsts[partner].first != distance:
                    request.tally.steady = 0  # they were neighbours by chance
        unrolled = False
        loads = waiting[0].tally.kind is AccessKind.LOAD
        for width, requests in chains(waiting, fill=loads):
            pick = min if loads else max  # a load is done where the first stood, a store where the last did
            lead = pick(requests, key=lambda request: request.order)
            start = requests[0]
            if len(requests) == 1:
                lead.tally.together.add(lead, width)
                continue
            merged = replace(lead, first=start.first, pattern=start.pattern, pointer=start.pointer)
            lead.tally.together.add(merged, width)
            _note_merged(merged, width, requests, firsts)
            unrolled |= sum(request.tally is lead.tally for request in requests) > 1
        return unrolled

    def _compare_start(self, request: Request) -> None:
        """Learn from the warps how the first of an access's requests is aligned wherever it runs."""
        tally = request.tally
        number = self.looks[id(tally)] = self.looks.get(id(tally), 0) + 1
        start = request.first % WIDEST
        apart = abs(self.starts.setdefault((id(tally), number), start) - start)
        if apart:
            tally.steady = min(tally.steady, apart & -apart)


def _note_merged(merged: Request, width: int, requests: list[Request], firsts: Mapping[int, Request]) -> None:
    """Note who does whose work; `firsts` are the first requests of each tally of this piece of code."""
    lead = merged.tally
    for tally in {id(request.tally): request.tally for request in requests}.values():
        if tally is not lead:
            tally.led.add(merged, width)
            if lead not in tally.leads:
                tally.leads.append(lead)
            lead.partners.setdefault(id(tally), firsts[id(lead)].first - firsts[id(tally)].first)
