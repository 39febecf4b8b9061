"""Large products: nothing to gain but a smaller type."""

# device: cuda
# bound: GPU
# proposal: none

import torch
from _run import run

x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) / 90


def slow(steps):
    y = x
    for _ in range(steps):
        y = y @ x


run(slow, None, steps=50)
