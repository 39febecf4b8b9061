"""torch.cuda.synchronize() in each step, as is left over from timing."""

# device: cuda
# bound: synchronisation
# proposal: synchronisation

import torch
from _run import run

x = torch.randn(1024, 1024, device="cuda") / 32


def layers(y):
    for _ in range(8):
        y = torch.relu(y @ x)
    return y


def slow(steps):
    for _ in range(steps):
        y = layers(x)
        torch.cuda.synchronize()  # here
        for _ in range(10):
            y = y * 0.5


def cured(steps):
    for _ in range(steps):
        y = layers(x)
        for _ in range(10):
            y = y * 0.5


run(slow, cured, steps=100)
