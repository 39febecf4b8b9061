"""The model of a launch's time: what it is made of, and what must never make a launch faster."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warpwright.facts.machines import MACHINES, machine_of
from warpwright.facts.work import Work
from warpwright.verify.cost import Launched, microseconds, parts

COPY = Work(
    blocks=64,
    threads=256,
    issued=64 * 8 * 10,
    requests=1024,
    loaded_sectors=2048,
    stored_sectors=2048,
    block_sectors=2048,
    load_requests=512,
    fresh_requests=512,
    touched_sectors=4096,
    waits=512,
)
"""64 blocks of 256 threads that copy a float each."""

H200 = machine_of("sm_90")


def launched(work: Work, *, blocks: int = 1 << 18, megabytes: int = 512) -> Launched:
    return Launched(work, blocks, resident_blocks=8, shared_bytes=4096, array_bytes=megabytes << 20)


def test_a_large_copy_takes_what_its_bytes_take() -> None:
    """512 MB at nine tenths of 4,800 GB/s: 124 us."""
    whole = launched(COPY)
    assert max(parts(whole, H200), key=lambda name: parts(whole, H200)[name]) == "DRAM"
    assert microseconds(whole, H200) == pytest.approx((512 << 20) / (0.9 * 4800e3), rel=0.4)


def test_few_blocks_take_as_long_as_they_wait() -> None:
    one = launched(COPY, blocks=1, megabytes=1)
    assert max(parts(one, H200), key=lambda name: parts(one, H200)[name]) == "waiting"


GROWING = (
    "issued",
    "double",
    "special",
    "shared_wavefronts",
    "loaded_sectors",
    "stored_sectors",
    "hottest",
    "barriers",
)


@given(st.sampled_from(GROWING), st.integers(1, 1 << 24), st.integers(1, 1 << 20), st.sampled_from(sorted(MACHINES)))
def test_more_work_is_never_faster(field: str, more: int, blocks: int, number: int) -> None:
    machine = MACHINES[number]
    harder = replace(COPY, **{field: getattr(COPY, field) + more})
    assert microseconds(launched(harder, blocks=blocks), machine) >= microseconds(
        launched(COPY, blocks=blocks), machine
    )
