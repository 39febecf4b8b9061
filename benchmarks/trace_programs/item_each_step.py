"""The largest element is read in each step."""

# device: cuda
# bound: synchronisation
# proposal: synchronisation

import torch
from _run import run

x = torch.randn(1 << 22, device="cuda")


def slow(steps):
    peaks = []
    for _ in range(steps):
        peaks.append(x.max().item())  # here


def cured(steps):
    peaks = []
    for _ in range(steps):
        peaks.append(x.max())
    torch.stack(peaks).tolist()


run(slow, cured, steps=400)
