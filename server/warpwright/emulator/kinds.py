"""Kinds of value: how the bits of a register or of memory are read, and how many bytes they are.

A letter and the bytes: `u4` and `s4` are whole numbers of 32 bits, `f4` is float, `f2` is f16; `b1` is a predicate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

DTYPES: Mapping[str, Any] = {
    "b1": np.bool_, "u1": np.uint8, "s1": np.int8, "u2": np.uint16, "s2": np.int16, "f2": np.float16,
    "u4": np.uint32, "s4": np.int32, "f4": np.float32, "u8": np.uint64, "s8": np.int64, "f8": np.float64,
}  # fmt: skip
