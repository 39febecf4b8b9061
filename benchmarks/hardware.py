"""What a benchmark ran on."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]}, {os.cpu_count()} threads" if names else platform.processor()
