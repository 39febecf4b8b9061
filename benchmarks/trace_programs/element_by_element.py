"""A tensor is summed element by element."""

# device: cpu
# bound: CPU operators
# proposal: vectorise

import torch
from _run import run

values = torch.arange(400.0)
matrix = torch.eye(300)


def slow(steps):
    for _ in range(steps):
        total = torch.zeros(())
        for index in range(400):
            total = total + values[index]  # here
        matrix @ matrix


def cured(steps):
    for _ in range(steps):
        values.sum()
        matrix @ matrix


run(slow, cured, steps=20)
