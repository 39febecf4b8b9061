"""What pytest leaves alone here."""

collect_ignore = ["torch_fallbacks"]
"""Operators that are built where they are imported."""
