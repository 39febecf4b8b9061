"""A loop over rows calls torch.softmax for each of them."""

# device: cuda
# bound: launches
# proposal: batching

import torch
from _run import run

x = torch.randn(256, 512, device="cuda")
y = torch.empty_like(x)
large = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) / 64


def slow(steps):
    for _ in range(steps):
        large @ large
        for row in range(256):
            y[row] = torch.softmax(x[row], 0)  # here


def cured(steps):
    for _ in range(steps):
        large @ large
        y.copy_(torch.softmax(x, 1))


run(slow, cured, steps=20)
