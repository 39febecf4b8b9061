"""Launch one kernel once, for a profiler that watches: `python -m warpwright_harness --once REQUEST`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from warpwright_harness.checks.correctness import input_values
from warpwright_harness.device import CudaFaultError, LaunchRefusedError, probe
from warpwright_harness.gpu_lock import gpu_shared
from warpwright_harness.session import MisbehaviourError, Session


def run_once(request: Mapping[str, Any]) -> str:
    """Run the request's only case on ordinary values; what went wrong, in a sentence, or "".

    The request is a verification's with one case, whose two sides are the same kernel.
    """
    device = probe()
    if "missing" in device:
        return str(device["missing"])
    try:
        with gpu_shared(request["lock"], lambda: None), Session(request, lambda event: None) as session:
            (case,) = session.cases()
            values = input_values(session, case, "normal", 0)
            session.run("baseline", case, session.buffers(case), values, session.poisons[0])
    except (LaunchRefusedError, CudaFaultError, MisbehaviourError) as error:
        return f"the kernel failed: {error}"
    return ""
