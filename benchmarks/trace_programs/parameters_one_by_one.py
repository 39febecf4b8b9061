"""An optimiser written as a loop over parameters; torch._foreach_add_ takes them at once."""

# device: cuda
# bound: launches
# proposal: batching

import torch
from _run import run

parameters = [torch.randn(1024, device="cuda") for _ in range(200)]
gradients = [torch.randn(1024, device="cuda") for _ in range(200)]


def slow(steps):
    for _ in range(steps):
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.add_(gradient, alpha=-1e-3)  # here


def cured(steps):
    for _ in range(steps):
        torch._foreach_add_(parameters, gradients, alpha=-1e-3)


run(slow, cured, steps=40)
