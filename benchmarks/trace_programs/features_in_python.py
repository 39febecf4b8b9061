"""Features are computed element by element in Python, for each step the same."""

# device: cpu
# bound: Python
# proposal: Python

import torch
from _run import run

words = [f"word{index}" for index in range(5000)]


def slow(steps):
    x = torch.eye(250)
    for _ in range(steps):
        known = {word: len(word) for word in words}  # here
        x = x @ x + known["word7"] * 1e-6


def cured(steps):
    x = torch.eye(250)
    known = {word: len(word) for word in words}
    for _ in range(steps):
        x = x @ x + known["word7"] * 1e-6


run(slow, cured, steps=200)
