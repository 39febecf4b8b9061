"""A boolean mask has to know how many there are: its wait is short beside a step's 17 launches."""

# device: cuda
# bound: launches
# proposal: synchronisation

import torch
from _run import run

x = torch.randn(1 << 20, device="cuda")


def slow(steps):
    for _ in range(steps):
        y = x[x > 0].sum()  # here
        for _ in range(10):
            y = y * 0.5


def cured(steps):
    for _ in range(steps):
        y = torch.where(x > 0, x, 0).sum()
        for _ in range(10):
            y = y * 0.5


run(slow, cured, steps=100)
