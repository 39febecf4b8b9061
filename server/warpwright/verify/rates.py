"""What each GPU was measured to be able to do at most, kept per GPU and driver: measured once on a machine.

The harness measures, because only it runs kernels; only the parent writes to the cache. It does so by a request of its
own, while the first candidate is compiled.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from warpwright.directories import cache_dir, read_kept, write_kept
from warpwright.progress import CancelledError, IsCancelled
from warpwright.verify.child import ChildEndedError
from warpwright.verify.harness import Gpu, run_request
from warpwright.verify.plan import gpu_lock

_POLL_SECONDS = 0.1
VERSION = 1
"""Of how rates are measured; others are measured again."""


def known_rates(gpu: Gpu) -> Mapping[str, float]:
    """Per second, as the harness gave them (`warpwright_harness/timing/rates`); empty where they are to be measured."""
    try:
        kept = read_kept(_file(gpu))
        return {str(name): float(value) for name, value in kept["per_second"].items()}
    except (ValueError, KeyError, AttributeError, TypeError):
        return {}


_measuring = threading.Lock()


def rates_of(gpu: Gpu, is_cancelled: IsCancelled) -> Mapping[str, float]:
    """The known rates, or those of memory, which a harness measures now, once for all who ask meanwhile; empty where it
    cannot. Those of arithmetic are measured with the first kernel whose operations are counted.

    Raises CancelledError.
    """
    while not _measuring.acquire(timeout=_POLL_SECONDS):
        if is_cancelled():
            raise CancelledError
    try:
        if known := known_rates(gpu):
            return known
        for event in run_request({"measure": "rates", "reference": None, "lock": gpu_lock()}, is_cancelled):
            if event["event"] == "rates":
                keep_rates(gpu, event["rates"])
    except (ChildEndedError, OSError):
        return {}
    finally:
        _measuring.release()
    return known_rates(gpu)


def keep_rates(gpu: Gpu, rates: Mapping[str, float]) -> None:
    """Write them for the next verification, beside those that are known; where the cache cannot be written they are
    measured again."""
    known = {**known_rates(gpu), **rates}
    kept = {"gpu": gpu.name, "uuid": gpu.details.get("uuid"), "driver": gpu.details.get("driver"), "per_second": known}
    write_kept(_file(gpu), kept)


def _file(gpu: Gpu) -> Path:
    which = f"{gpu.details.get('uuid') or gpu.name}-{gpu.details.get('driver', '')}-v{VERSION}"
    name = "".join(c if c.isalnum() or c == "-" else "_" for c in which)
    return cache_dir() / "rates" / f"{name}.json"
