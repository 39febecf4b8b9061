"""Graphs of ATen's operators as formulas: what a function of PyTorch computes, in as few formulas as pays."""
