"""Is the candidate faster? Clocks, rounds, their statistics, and what the machine could do at most."""
