"""A sum is printed in each step."""

# device: cuda
# bound: synchronisation
# proposal: synchronisation

import sys

import torch
from _run import run

x = torch.randn(1 << 22, device="cuda")


def slow(steps):
    for _ in range(steps):
        print(f"{x.sum():.3f}", file=sys.stderr)  # here


def cured(steps):
    sums = []
    for _ in range(steps):
        sums.append(x.sum())
    print(*(f"{each:.3f}" for each in torch.stack(sums).tolist()), file=sys.stderr)


run(slow, cured, steps=400)
