"""The loss is read in each step."""

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
    losses = []
    for _ in range(steps):
        loss = layers(x).sum()
        losses.append(loss.item())  # here
        for _ in range(10):
            loss = loss * 0.5


def cured(steps):
    losses = []
    for _ in range(steps):
        loss = layers(x).sum()
        losses.append(loss)
        for _ in range(10):
            loss = loss * 0.5


run(slow, cured, steps=100)
