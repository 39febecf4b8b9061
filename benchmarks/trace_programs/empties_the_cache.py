"""torch.cuda.empty_cache() in each step: memory is given back and allocated anew."""

# device: cuda
# bound: set-up
# proposal: keep memory

import torch
from _run import run

x = torch.randn(1 << 24, device="cuda")


def slow(steps):
    for _ in range(steps):
        parts = [x + index for index in range(4)]
        del parts
        torch.cuda.empty_cache()  # here


def cured(steps):
    for _ in range(steps):
        parts = [x + index for index in range(4)]
        del parts


run(slow, cured, steps=50)
