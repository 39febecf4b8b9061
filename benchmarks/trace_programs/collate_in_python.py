"""collate_fn pads in Python, in the training process."""

# device: cpu
# bound: data loading
# proposal: workers

import os

import torch
from _run import run
from torch.utils.data import DataLoader, Dataset

WORKERS = min(8, max(2, (os.cpu_count() or 2) - 1))


class Texts(Dataset):
    def __len__(self):
        return 640

    def __getitem__(self, index):
        return list(range(index % 300 + 200))


def padded(items):
    longest = max(map(len, items))
    return torch.tensor([item + [0] * (longest - len(item)) for item in items])  # here


def epoch(loader, steps):
    total = 0
    for step, batch in enumerate(loader):  # here
        total = total + batch.sum()
        if step + 1 == steps:
            break


one = DataLoader(Texts(), batch_size=16, collate_fn=padded)
many = DataLoader(Texts(), batch_size=16, collate_fn=padded, num_workers=WORKERS, persistent_workers=True)


def slow(steps):
    epoch(one, steps)


def cured(steps):
    epoch(many, steps)


run(slow, cured, steps=40)
