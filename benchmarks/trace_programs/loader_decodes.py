"""A DataLoader decodes in Python; workers decode side by side."""

# device: cpu
# bound: data loading
# proposal: workers

import os

import torch
from _run import run
from torch.utils.data import DataLoader, Dataset

WORKERS = min(8, max(2, (os.cpu_count() or 2) - 1))


class Encoded(Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, index):
        return torch.tensor([sum(map(ord, f"{index} {place}")) for place in range(1000)])  # here


def epoch(loader, steps):
    total = torch.zeros(1000)
    for step, batch in enumerate(loader):  # here
        total += batch.sum(0)
        if step + 1 == steps:
            break


one = DataLoader(Encoded(), batch_size=8)
many = DataLoader(Encoded(), batch_size=8, num_workers=WORKERS, persistent_workers=True)


def slow(steps):
    epoch(one, steps)


def cured(steps):
    epoch(many, steps)


run(slow, cured, steps=50)
