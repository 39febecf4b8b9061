"""Many kernels of a few microseconds; a CUDA graph replays them."""

# device: cuda
# bound: launches
# proposal: CUDA graph

import torch
from _run import run

weights = [torch.randn(4096, device="cuda") for _ in range(50)]
x = torch.zeros(4096, device="cuda")
graph = torch.cuda.CUDAGraph()


def layers(y):
    for weight in weights:
        y = y + weight  # here
    return y


layers(x)
with torch.cuda.graph(graph):
    layers(x)


def slow(steps):
    for _ in range(steps):
        layers(x)


def cured(steps):
    for _ in range(steps):
        graph.replay()


run(slow, cured, steps=100)
