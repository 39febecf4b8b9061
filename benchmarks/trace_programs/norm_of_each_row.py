"""Each row is normalised by launches of its own."""

# device: cuda
# bound: launches
# proposal: batching

import torch
from _run import run

x = torch.randn(200, 512, device="cuda")
large = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) / 64


def slow(steps):
    for _ in range(steps):
        large @ large
        for row in x:
            row.softmax(0)  # here


def cured(steps):
    for _ in range(steps):
        large @ large
        x.softmax(1)


run(slow, cured, steps=40)
