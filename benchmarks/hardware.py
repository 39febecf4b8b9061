"""What a benchmark ran on."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any


def processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]}, {os.cpu_count()} threads" if names else platform.processor()


def gpu_run() -> dict[str, Any]:
    """What a benchmark on a GPU was: its command, the GPU and its driver, torch, nvcc."""
    import torch

    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    driver = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    said = subprocess.run(["nvcc", "--version"], capture_output=True, text=True, check=False).stdout
    release = re.search(r"V(\d+\.\d+\.\d+)", said)
    return {
        "command": " ".join(["python", *sys.argv]),
        "version": _version(),
        "device": torch.cuda.get_device_name(),
        "driver": driver,
        "torch": torch.__version__,
        "nvcc": release[1] if release else "",
    }


def _version() -> str:
    """The commit that is measured, "" where the tree is no clone."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
