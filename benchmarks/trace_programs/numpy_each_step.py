"""The sum of each part goes to NumPy in each step."""

# device: cuda
# bound: synchronisation
# proposal: synchronisation

import torch
from _run import run

x = torch.randn(64, 1 << 16, device="cuda")


def slow(steps):
    total = 0.0
    for _ in range(steps):
        total += x.sum(1).cpu().numpy()  # here


def cured(steps):
    total = torch.zeros(64, device="cuda")
    for _ in range(steps):
        total += x.sum(1)
    total.cpu().numpy()


run(slow, cured, steps=400)
