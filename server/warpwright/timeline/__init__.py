"""What a run of a PyTorch or CUDA program did when: traces read, wall time shared out, cures with their gain.

Not to be confused with `facts/trace`, which follows the warps of one kernel through its text. No torch here: a script
is run by `warpwright_harness.traced_script` in a process of its own.
"""
