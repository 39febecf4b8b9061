"""warpwright: static performance analysis and verified fixes for CUDA kernels."""

__version__ = "0.1.0"
