"""Libraries of host code that launches kernels, which take the CUDA runtime that torch has loaded."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import torch


class Library:
    """A shared library. What it calls and never gets to may be missing."""

    def __init__(self, path: str) -> None:
        """Raises RuntimeError where it cannot be loaded."""
        torch.zeros(1, device="cuda")
        maps = Path("/proc/self/maps").read_text()
        runtime = next((line.split()[-1] for line in maps.splitlines() if "/libcudart" in line), "libcudart.so")
        ctypes.CDLL(runtime, mode=ctypes.RTLD_GLOBAL)
        self._loader = ctypes.CDLL(None)
        self._loader.dlopen.restype = self._loader.dlsym.restype = ctypes.c_void_p
        self._loader.dlerror.restype = ctypes.c_char_p
        self._handle = self._loader.dlopen(path.encode(), os.RTLD_LAZY | os.RTLD_LOCAL)
        if not self._handle:
            reason = (self._loader.dlerror() or b"").decode(errors="replace")
            raise RuntimeError(f"the host code cannot be loaded: {reason}")

    def address(self, name: str) -> int:
        """Of a function. Raises RuntimeError where the library has none of that name."""
        found = self._loader.dlsym(ctypes.c_void_p(self._handle), name.encode())
        if not found:
            raise RuntimeError(f"the host code has no function {name}")
        return int(found)
