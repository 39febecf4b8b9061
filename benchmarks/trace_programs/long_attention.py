"""Attention over long sequences, which the GPU is busy with all the time."""

# device: cuda
# bound: GPU
# proposal: none

import torch
from _run import run

q, k, v = (torch.randn(4, 16, 8192, 128, device="cuda", dtype=torch.bfloat16) for _ in range(3))


def slow(steps):
    for _ in range(steps):
        torch.nn.functional.scaled_dot_product_attention(q, k, v)


run(slow, None, steps=20)
