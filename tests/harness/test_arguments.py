"""How arguments lie in memory as a kernel takes them."""

from __future__ import annotations

import ctypes
import struct

from warpwright_harness.device import pointer_argument, scalar_argument, struct_argument


def test_a_struct_has_its_members_at_their_offsets_and_zeros_between() -> None:
    members = [
        (0, scalar_argument("int8", -1)),
        (8, pointer_argument(0x1234)),
        (16, scalar_argument("float64", 2.5)),
        (24, scalar_argument("uint16", 7)),
    ]
    packed = struct_argument(32, members)
    assert ctypes.sizeof(packed) == 32
    assert bytes(packed) == struct.pack("<b7xQdH6x", -1, 0x1234, 2.5, 7)
