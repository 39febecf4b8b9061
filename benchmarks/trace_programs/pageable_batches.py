"""Batches are copied from pageable memory, and the host waits for each."""

# device: cuda
# bound: copies
# proposal: pinned memory

import torch
from _run import run

batches = [torch.randn(4096, 4096) for _ in range(4)]
pinned = [batch.pin_memory() for batch in batches]
weight = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)


def slow(steps):
    for step in range(steps):
        batch = batches[step % 4].to("cuda")  # here
        batch.bfloat16() @ weight


def cured(steps):
    for step in range(steps):
        batch = pinned[step % 4].to("cuda", non_blocking=True)
        batch.bfloat16() @ weight


run(slow, cured, steps=40)
