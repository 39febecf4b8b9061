"""Noise is drawn on the CPU and copied."""

# device: cuda
# bound: CPU operators
# proposal: to the GPU

import torch
from _run import run

x = torch.randn(2048, 2048, device="cuda")


def slow(steps):
    for _ in range(steps):
        noise = torch.randn(2048, 2048)  # here
        x + noise.to("cuda")


def cured(steps):
    for _ in range(steps):
        noise = torch.randn(2048, 2048, device="cuda")
        x + noise


run(slow, cured, steps=30)
