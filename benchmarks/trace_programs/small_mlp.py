"""Inference with one row: 24 layers, each too small for a GPU."""

# device: cuda
# bound: launches
# proposal: CUDA graph

import torch
from _run import run

model = torch.nn.Sequential(
    *(torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU()) for _ in range(24))
).cuda()
x = torch.randn(1, 256, device="cuda")
graph = torch.cuda.CUDAGraph()


@torch.no_grad()
def answer():
    return model(x)  # here


for _ in range(3):
    answer()
torch.cuda.synchronize()
with torch.cuda.graph(graph):
    answer()


def slow(steps):
    for _ in range(steps):
        answer()


def cured(steps):
    for _ in range(steps):
        graph.replay()


run(slow, cured, steps=200)
