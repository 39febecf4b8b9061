"""The loop sleeps between steps, as a queue that is polled."""

# device: cpu
# bound: Python
# proposal: Python

import time

import torch
from _run import run


def slow(steps):
    x = torch.eye(300)
    for _ in range(steps):
        time.sleep(0.002)  # here
        x = x @ x


def cured(steps):
    x = torch.eye(300)
    for _ in range(steps):
        x = x @ x


run(slow, cured, steps=150)
