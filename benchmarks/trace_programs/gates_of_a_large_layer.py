"""The gates of a recurrent layer, each operator a kernel over a large tensor."""

# device: cuda
# bound: GPU
# proposal: fusion

import torch
from _run import run

i, f, o, g, c = (torch.randn(1 << 25, device="cuda") for _ in range(5))


def cell(i, f, o, g, c):
    new = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * new.tanh()


fused = torch.compile(cell)


def slow(steps):
    for _ in range(steps):
        cell(i, f, o, g, c)


def cured(steps):
    for _ in range(steps):
        fused(i, f, o, g, c)


run(slow, cured, steps=30)
