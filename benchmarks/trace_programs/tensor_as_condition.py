"""A tensor on the GPU decides a Python `if`."""

# device: cuda
# bound: synchronisation
# proposal: synchronisation

import torch
from _run import run

x = torch.randn(1 << 22, device="cuda")


def slow(steps):
    for _ in range(steps):
        if x.max() > 1e6:  # here
            x.zero_()


def cured(steps):
    too_large = []
    for _ in range(steps):
        too_large.append(x.max() > 1e6)
    if torch.stack(too_large).any():
        x.zero_()


run(slow, cured, steps=400)
