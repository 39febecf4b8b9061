"""Names are sorted and joined again and again."""

# device: cpu
# bound: Python
# proposal: Python

import torch
from _run import run

names = [f"{index * 7919 % 10007}" for index in range(10000)]


def slow(steps):
    x = torch.eye(250)
    for _ in range(steps):
        order = sorted(names)  # here
        x = x @ x + len(order) * 1e-6


def cured(steps):
    x = torch.eye(250)
    order = sorted(names)
    for _ in range(steps):
        x = x @ x + len(order) * 1e-6


run(slow, cured, steps=60)
