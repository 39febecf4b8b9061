"""Calls an operator of PyTorch in every way in which a program may, and says in which of them its kernel ran."""
