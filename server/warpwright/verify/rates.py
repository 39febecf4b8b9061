"""What each GPU was measured to be able to do at most, kept per GPU and driver: measured once on a machine.

The harness measures where it is given nothing, because only it runs kernels; only the parent writes to the cache.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from warpwright.directories import cache_dir
from warpwright.verify.harness import Gpu

VERSION = 1
"""Of how rates are measured; others are measured again."""


def known_rates(gpu: Gpu) -> Mapping[str, float]:
    """Per second, as the harness gave them (`warpwright_harness/timing/rates`); empty where they are to be measured."""
    try:
        kept = json.loads(_file(gpu).read_text(encoding="utf-8"))
        return {str(name): float(value) for name, value in kept["per_second"].items()}
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return {}


def keep_rates(gpu: Gpu, rates: Mapping[str, float]) -> None:
    """Write them for the next verification; where the cache cannot be written they are measured again."""
    kept = {"gpu": gpu.name, "uuid": gpu.details.get("uuid"), "driver": gpu.details.get("driver"), "per_second": rates}
    target = _file(gpu)
    with suppress(OSError):
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, suffix=".part")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(json.dumps(kept, indent=1) + "\n")
        Path(name).replace(target)


def _file(gpu: Gpu) -> Path:
    which = f"{gpu.details.get('uuid') or gpu.name}-{gpu.details.get('driver', '')}-v{VERSION}"
    name = "".join(c if c.isalnum() or c == "-" else "_" for c in which)
    return cache_dir() / "rates" / f"{name}.json"
