"""The state is copied deeply in each step."""

# device: cpu
# bound: Python
# proposal: Python

import copy

import torch
from _run import run

state = {f"name{index}": [index] * 20 for index in range(300)}


def slow(steps):
    x = torch.eye(250)
    for _ in range(steps):
        kept = copy.deepcopy(state)  # here
        x = x @ x + len(kept) * 1e-6


def cured(steps):
    x = torch.eye(250)
    kept = copy.deepcopy(state)
    for _ in range(steps):
        x = x @ x + len(kept) * 1e-6


run(slow, cured, steps=60)
