"""Half of the computation is done by NumPy on the host."""

# device: cuda
# bound: copies
# proposal: stay on the GPU

import torch
from _run import run

x = torch.randn(1024, 1024, device="cuda")
large = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) / 64


def slow(steps):
    for _ in range(steps):
        large @ large
        y = x * 0.5
        z = y.cpu()  # here
        z.to("cuda")


def cured(steps):
    for _ in range(steps):
        large @ large
        y = x * 0.5
        y.clone()


run(slow, cured, steps=60)
