"""warpwright: what a profiler would say about a CUDA kernel, as you type."""

__version__ = "0.1.0"
