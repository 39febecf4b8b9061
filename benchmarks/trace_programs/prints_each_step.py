"""The loss is printed in each step."""

# device: cuda
# bound: synchronisation
# proposal: synchronisation

import sys

import torch
from _run import run

x = torch.randn(1024, 1024, device="cuda") / 32


def layers(y):
    for _ in range(10):
        y = torch.relu(y @ x)
    return y


def slow(steps):
    for _ in range(steps):
        loss = layers(x).sum()
        print(loss, file=sys.stderr)  # here


def cured(steps):
    for _ in range(steps):
        loss = layers(x).sum()
    print(loss, file=sys.stderr)


run(slow, cured, steps=100)
