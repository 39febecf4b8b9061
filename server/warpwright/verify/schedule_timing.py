"""Written formulas timed on the GPU: one library of all candidates, one request to the harness."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from warpwright.formulas.types import TYPES, computed
from warpwright.missing import Missing
from warpwright.progress import IsCancelled
from warpwright.syntax.encoding import encoded
from warpwright.syntax.source import Source
from warpwright.toolchain.compile import compile_host
from warpwright.verify.child import ChildEndedError
from warpwright.verify.harness import Gpu, run_request
from warpwright.verify.plan import gpu_lock
from warpwright.writer.code import Code
from warpwright.writer.launch import arrays
from warpwright.writer.write import file_text


def timed_on(
    gpu: Gpu,
    codes: Sequence[Code],
    inputs: tuple[Mapping[str, Any], Mapping[str, float], Mapping[str, int]],
    seconds: float,
    is_cancelled: IsCancelled,
) -> dict[str, float] | Missing:
    """The median of each code of one formula in microseconds, by its name, with a cold cache. `inputs` are arrays as
    they lie in memory, numbers and sizes, by the codes' own names. Raises CancelledError."""
    library = compile_host(Source("formula.cu", encoded(file_text(*codes))), arch=gpu.arch, is_cancelled=is_cancelled)
    if library.library is None:
        return Missing("library", f"The kernels do not compile: {library.reason}", "")
    held, scalars, sizes = inputs
    formula = codes[0].formula
    names = [name for name, _, _ in arrays(formula)]
    handle, path = tempfile.mkstemp(prefix="warpwright-arrays-")
    try:
        with os.fdopen(handle, "wb") as file:
            for name in names:
                held[name].tofile(file)
            file.write(b"\0")
        request = {
            "measure": "formulas",
            "reference": None,
            "lock": gpu_lock(),
            "library": str(library.library),
            "data": path,
            "arrays": [held[name].nbytes for name in names],
            "sizes": [sizes[name] for name in formula.sizes],
            "scalars": [(computed(TYPES[kind]).name, scalars[name]) for name, kind in formula.scalars.items()],
            "functions": [{"name": each.name, "has_workspace": bool(each.temporaries)} for each in codes],
            "seconds": seconds,
        }
        return _asked(request, is_cancelled)
    finally:
        Path(path).unlink(missing_ok=True)


def _asked(request: Mapping[str, Any], is_cancelled: IsCancelled) -> dict[str, float] | Missing:
    found: dict[str, float] | None = None
    reason = "the harness gave no times"
    try:
        for event in run_request(request, is_cancelled):
            if event["event"] == "formula-times":
                found = {str(name): float(us) for name, us in event["us"].items()}
            elif event["event"] in ("error", "fault"):
                reason = str(event.get("text", reason))
    except (ChildEndedError, OSError) as error:
        reason = str(error)
    return Missing("times", f"The schedules could not be timed: {reason}.", "") if found is None else found
