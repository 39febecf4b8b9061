"""A batch of small products, one after the other; torch.bmm takes them at once."""

# device: cuda
# bound: launches
# proposal: batching

import torch
from _run import run

a = torch.randn(128, 64, 64, device="cuda")
b = torch.randn(128, 64, 64, device="cuda")
large = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) / 64


def slow(steps):
    for _ in range(steps):
        large @ large
        products = []
        for index in range(128):
            products.append(a[index] @ b[index])  # here


def cured(steps):
    for _ in range(steps):
        large @ large
        torch.bmm(a, b)


run(slow, cured, steps=50)
