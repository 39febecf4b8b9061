"""What a request moves: of arrays of lanes here, of a pattern of one warp in `facts.memory`; both must count alike."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from warpwright.emulator.machine.group import Group, layout_of
from warpwright.emulator.machine.traffic import sectors, wavefronts
from warpwright.facts import memory

WARPS = 3
SIZES = st.sampled_from([1, 2, 4, 8, 16])


@st.composite
def requests(draw: st.DrawFn) -> tuple[int, list[list[int | None]]]:
    """An access's bytes, and for each warp each lane's address; None where a lane is off."""
    size = draw(SIZES)
    step = draw(st.sampled_from([0, 1, 2, 3, 16, 17, 32]))
    divisor = draw(st.sampled_from([1, 2, 4]))
    moved = draw(st.lists(st.integers(0, 40), max_size=4))
    warps: list[list[int | None]] = []
    for _ in range(WARPS):
        mask = draw(st.sampled_from([(1 << 32) - 1, 0xFFFF, 0x55555555, 1, 0x00100008]) | st.integers(1, (1 << 32) - 1))
        places = [lane // divisor * step for lane in range(32)]
        places[: len(moved)] = moved
        warps.append([size * place if mask >> lane & 1 else None for lane, place in enumerate(places)])
    return size, warps


@given(requests())
def test_counts_are_those_of_one_warp_at_a_time(case: tuple[int, list[list[int | None]]]) -> None:
    size, warps = case
    flat = [address for warp in warps for address in warp]
    on = [n for n, address in enumerate(flat) if address is not None]
    group = Group(layout_of(1, 32 * WARPS), np.array(on))
    addresses = np.array([flat[n] for n in on], dtype=np.int64)
    assert wavefronts(group, addresses, size)[0].tolist() == [memory.wavefronts(warp, size) for warp in warps]
    assert sectors(group, addresses, size)[0].tolist() == [memory.sectors(warp, size) for warp in warps]


@given(st.sampled_from([4, 8, 16]), st.integers(1, (1 << 32) - 1))
def test_one_address_for_all_lanes(size: int, mask: int) -> None:
    on = [lane for lane in range(32) if mask >> lane & 1]
    group = Group(layout_of(1, 32), np.array(on))
    warp = [64 if mask >> lane & 1 else None for lane in range(32)]
    assert wavefronts(group, np.int64(64), size)[0].tolist() == [memory.wavefronts(warp, size)]
