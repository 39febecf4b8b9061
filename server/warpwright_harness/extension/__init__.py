"""Torch extensions, called from Python: host code that nobody vouches for, so each runs in a process of its own.

The judge is a harness process (`judge`). It makes the inputs, keeps the clock and compares; each side's process
(`worker`, started by `side`) loads one extension and calls it. What a side says is taken as a claim: its results count
as they lie in memory that the judge owns (`arena`) at the moment when the side says that it is done.
"""
