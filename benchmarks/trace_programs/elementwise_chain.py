"""Element-wise operations that each read and write all of a large tensor."""

# device: cuda
# bound: GPU
# proposal: fusion

import torch
from _run import run

x = torch.randn(1 << 26, device="cuda")


def chain(y):
    return ((y * 2 + 1).sigmoid() * y - 0.5).abs()


fused = torch.compile(chain)


def slow(steps):
    for _ in range(steps):
        chain(x)


def cured(steps):
    for _ in range(steps):
        fused(x)


run(slow, cured, steps=30)
