"""How a formula is laid on the machine, as data."""
