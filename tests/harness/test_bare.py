"""What a launch without torch puts into its arrays, and where its findings are read."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest
from warpwright_harness.bare import values_of


def made(scalar: str, count: int = 400, limit: int | None = None, components: int = 1) -> bytes:
    array: dict[str, Any] = {"name": "a", "scalar": scalar, "components": components}
    limits = {} if limit is None else {"a": limit}
    return values_of(array, {"counts": {"a": count}, "limits": limits}, random.Random(1))


@pytest.mark.parametrize(
    ("scalar", "size"),
    [("float32", 4), ("float64", 8), ("float16", 2), ("bfloat16", 2), ("bool", 1), ("int8", 1), ("uint64", 8)],
)
def test_arrays_have_exactly_their_size(scalar: str, size: int) -> None:
    assert len(made(scalar)) == 400 * size
    assert len(made(scalar, components=3)) == 1200 * size
    assert made(scalar, 0) == b""
    assert len(set(made(scalar))) > 1


def test_values_are_ordinary_numbers_and_indices_stay_below_their_limit() -> None:
    floats = struct.unpack("<400f", made("float32"))
    assert max(map(abs, floats)) < 6 and min(floats) < 0 < max(floats)
    halves = struct.unpack("<400H", made("bfloat16"))
    wide = struct.unpack("<400f", b"".join(struct.pack("<I", half << 16) for half in halves))
    assert max(map(abs, wide)) < 6
    assert set(struct.unpack("<400i", made("int32", limit=3))) == {0, 1, 2}
