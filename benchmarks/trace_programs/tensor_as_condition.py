"""A tensor on the GPU decides a Python `if`."""

# device: cuda
# bound: synchronisation
# proposal: synchronisation

import torch
from _run import run

x = torch.randn(1024, 1024, device="cuda") / 32


def layers(y):
    for _ in range(10):
        y = torch.relu(y @ x)
    return y


def slow(steps):
    y = x
    for _ in range(steps):
        y = layers(y)
        if y.abs().max() > 1e6:  # here
            y = y * 1e-6
        for _ in range(10):
            y = y + 1


def cured(steps):
    y = x
    for _ in range(steps):
        y = layers(y)
        y = torch.where(y.abs().max() > 1e6, y * 1e-6, y)
        for _ in range(10):
            y = y + 1


run(slow, cured, steps=100)
