"""Each step is timed by events, and waited for before the next."""

# device: cuda
# bound: synchronisation
# proposal: synchronisation

import torch
from _run import run

x = torch.randn(1 << 22, device="cuda")
events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(400)]


def slow(steps):
    times = []
    for start, end in events[:steps]:
        start.record()
        x.mul_(0.999)
        end.record()
        end.synchronize()  # here
        times.append(start.elapsed_time(end))


def cured(steps):
    for start, end in events[:steps]:
        start.record()
        x.mul_(0.999)
        end.record()
    torch.cuda.synchronize()
    [start.elapsed_time(end) for start, end in events[:steps]]


run(slow, cured, steps=400)
