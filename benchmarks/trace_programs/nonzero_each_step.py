"""nonzero() waits for its count: its wait is short beside a step's 15 launches."""

# device: cuda
# bound: launches
# proposal: synchronisation

import torch
from _run import run

x = torch.randn(1 << 18, device="cuda")


def slow(steps):
    for _ in range(steps):
        places = torch.nonzero(x > 1)  # here
        for _ in range(10):
            places = places + 1


def cured(steps):
    for _ in range(steps):
        places = (x > 1).cumsum(0)
        for _ in range(10):
            places = places + 1


run(slow, cured, steps=100)
