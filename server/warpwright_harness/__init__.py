"""Runs kernels on a GPU, compares and times them, in a process of its own: torch and the CUDA driver live here alone.

`python -m warpwright_harness --results FD` reads requests (JSON lines) on stdin and writes events (JSON lines) to the
file descriptor FD, a pipe that only its parent holds; stdout and stderr are whatever kernels and libraries print. The
parent decides: it picks the seeds, keeps the clock and kills this process at a deadline. A CUDA error ends the process
after one last event, because the context is lost with it.

`checks` asks whether a kernel is right, `timing` whether it is faster, and `extension` both of functions that Python
calls; the modules beside these folders load kernels, hold their arrays and launch them.

Nothing of warpwright is imported here, and nothing that a kernel can reach decides about it: only compiled device code
is launched, never host code.
"""
