"""A configuration is parsed from its file in each step."""

# device: cpu
# bound: data loading
# proposal: read once

import json
import tempfile
from pathlib import Path

import torch
from _run import run

path = Path(tempfile.mkdtemp()) / "scales.json"
path.write_text(json.dumps({str(index): index / 1000 for index in range(5000)}))


def slow(steps):
    x = torch.eye(250)
    for _ in range(steps):
        scales = json.loads(path.read_text())  # here
        x = x @ x * scales["7"]


def cured(steps):
    x = torch.eye(250)
    scales = json.loads(path.read_text())
    for _ in range(steps):
        x = x @ x * scales["7"]


run(slow, cured, steps=100)
