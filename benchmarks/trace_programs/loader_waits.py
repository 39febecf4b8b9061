"""Each item of a DataLoader waits, as for a disk or a network; workers wait side by side."""

# device: cpu
# bound: data loading
# proposal: workers

import os
import time

import torch
from _run import run
from torch.utils.data import DataLoader, Dataset

WORKERS = min(8, max(2, (os.cpu_count() or 2) - 1))


class Remote(Dataset):
    def __len__(self):
        return 600

    def __getitem__(self, index):
        time.sleep(0.002)  # here
        return torch.full((256,), float(index))


def epoch(loader, steps):
    weights = torch.ones(256)
    for step, batch in enumerate(loader):  # here
        weights = weights + batch.mean(0)
        if step + 1 == steps:
            break


one = DataLoader(Remote(), batch_size=8)
many = DataLoader(Remote(), batch_size=8, num_workers=WORKERS, persistent_workers=True)


def slow(steps):
    epoch(one, steps)


def cured(steps):
    epoch(many, steps)


run(slow, cured, steps=60)
