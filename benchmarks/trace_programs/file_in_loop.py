"""A table is read anew in each step."""

# device: cpu
# bound: data loading
# proposal: read once

import tempfile
from pathlib import Path

import torch
from _run import run

path = Path(tempfile.mkdtemp()) / "table.pt"
torch.save(torch.ones(2000, 2000), path)


def slow(steps):
    x = torch.ones(2000)
    for _ in range(steps):
        table = torch.load(path)  # here
        x = table @ x / 2000


def cured(steps):
    x = torch.ones(2000)
    table = torch.load(path)
    for _ in range(steps):
        x = table @ x / 2000


run(slow, cured, steps=40)
