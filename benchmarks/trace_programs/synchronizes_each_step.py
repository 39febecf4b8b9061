"""torch.cuda.synchronize() in each step, as is left over from timing."""

# device: cuda
# bound: synchronisation
# proposal: synchronisation

import torch
from _run import run

x = torch.randn(1 << 22, device="cuda")


def slow(steps):
    for _ in range(steps):
        x.mul_(0.999)
        torch.cuda.synchronize()  # here


def cured(steps):
    for _ in range(steps):
        x.mul_(0.999)


run(slow, cured, steps=500)
