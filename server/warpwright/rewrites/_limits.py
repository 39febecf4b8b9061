"""What GPUs hold, where a rewrite takes one number for all of them."""

from __future__ import annotations

SHARED_BYTES = 48 * 1024
"""Shared memory that every block may have without asking for more (CUDA C++ Programming Guide, "Shared Memory")."""

THREADS = 128 * 2048
"""Threads that 128 multiprocessors hold at once, about as many as the largest GPUs have: more would wait for these."""
