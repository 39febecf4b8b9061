"""The host computes in Python while the GPU has nothing to do."""

# device: cuda
# bound: Python
# proposal: Python

import torch
from _run import run

names = [f"{index * 7919 % 10007}" for index in range(10000)]
x = torch.randn(1024, 1024, device="cuda")
large = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) / 64


def slow(steps):
    y = x
    for _ in range(steps):
        large @ large
        order = sorted(names)  # here
        y = y * 0.5 + len(order)


def cured(steps):
    y = x
    order = sorted(names)
    for _ in range(steps):
        large @ large
        y = y * 0.5 + len(order)


run(slow, cured, steps=100)
