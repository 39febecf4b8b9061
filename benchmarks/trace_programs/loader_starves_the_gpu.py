"""A DataLoader without workers before a GPU."""

# device: cuda
# bound: data loading
# proposal: workers

import os
import time

import torch
from _run import run
from torch.utils.data import DataLoader, Dataset

WORKERS = min(8, max(2, (os.cpu_count() or 2) - 1))


class Images(Dataset):
    def __len__(self):
        return 800

    def __getitem__(self, index):
        time.sleep(0.001)  # here
        return torch.full((3, 64, 64), float(index))


model = torch.nn.Conv2d(3, 64, 3, device="cuda")


@torch.no_grad()
def epoch(loader, steps):
    for step, batch in enumerate(loader):  # here
        model(batch.to("cuda"))
        if step + 1 == steps:
            break


one = DataLoader(Images(), batch_size=16)
many = DataLoader(Images(), batch_size=16, num_workers=WORKERS, persistent_workers=True)


def slow(steps):
    epoch(one, steps)


def cured(steps):
    epoch(many, steps)


run(slow, cured, steps=40)
