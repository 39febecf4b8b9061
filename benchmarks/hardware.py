"""What a benchmark ran on."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any


def processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]}, {os.cpu_count()} threads" if names else platform.processor()


def tree_seconds(process: int) -> float:
    """Processor seconds of a process and of all that descends from it, with those that have ended and were waited for;
    of Linux."""
    parents: dict[int, list[int]] = {}
    seconds: dict[int, float] = {}
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                said = (each / "stat").read_text().rpartition(")")[2].split()
                parents.setdefault(int(said[1]), []).append(int(each.name))
                seconds[int(each.name)] = sum(map(int, said[11:15])) / os.sysconf("SC_CLK_TCK")
    tree = [process]
    for each in tree:
        tree += parents.get(each, [])
    return sum(seconds.get(each, 0.0) for each in tree)


def cpu_run(load: float) -> dict[str, Any]:
    """What a benchmark on a CPU was: the load of the machine before (`load`) and now, processor and versions."""
    return {
        "load_average_before_and_after": [round(each, 1) for each in (load, os.getloadavg()[0])],
        "hardware": processor(),
        "versions": {"python": platform.python_version(), "warpwright": version("warpwright")},
    }


def reported(result: Mapping[str, Any], path: Path | None) -> None:
    """Print a result as JSON, and write it where it is to be kept."""
    text = json.dumps(result, indent=2)
    print(text)
    if path is not None:
        path.write_text(f"{text}\n", encoding="utf-8")


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
