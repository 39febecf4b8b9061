"""PTX to Python: each basic block becomes one function over arrays of lanes.

One file for each family of instructions; each registers what it knows with `registry.translates`, so that the list of
what runs is the code that runs it.
"""
