"""CUDA C++ from a formula and a schedule: kernels, and a function that launches them."""
