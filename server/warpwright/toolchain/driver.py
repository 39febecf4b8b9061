"""Whether this machine has NVIDIA's driver."""

from __future__ import annotations

import ctypes
from functools import cache


@cache
def has_driver() -> bool:
    """Whether this machine has NVIDIA's driver, which may find no GPU."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True
