"""The lengths are taken to the host as a list in each step, to choose a size that does not change."""

# device: cuda
# bound: synchronisation
# proposal: synchronisation

import torch
from _run import run

x = torch.randn(64, 512, 512, device="cuda") / 32
lengths = torch.full((64,), 512, device="cuda")


def layers(y):
    for _ in range(4):
        y = torch.tanh(y @ x)
    return y


def after(y):
    for _ in range(12):
        y = y[:, :8] * 0.5
    return y


def slow(steps):
    for _ in range(steps):
        y = layers(x)
        longest = max((lengths + (y[:, 0, 0] * 0).long()).tolist())  # here
        after(y[:, :longest])


def cured(steps):
    for _ in range(steps):
        y = layers(x)
        after(y[:, :512])


run(slow, cured, steps=60)
