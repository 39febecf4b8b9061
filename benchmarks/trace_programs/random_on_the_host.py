"""Noise is drawn on the CPU and copied."""

# device: cuda
# bound: CPU operators
# proposal: to the GPU

import torch
from _run import run

x = torch.randn(512, 512, device="cuda")
large = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) / 64


def slow(steps):
    for _ in range(steps):
        large @ large
        noise = torch.randn(512, 512)  # here
        x + noise.to("cuda")


def cured(steps):
    for _ in range(steps):
        large @ large
        noise = torch.randn(512, 512, device="cuda")
        x + noise


run(slow, cured, steps=100)
