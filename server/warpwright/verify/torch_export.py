"""A function or a module of PyTorch as a plan of formulas: exported in a process of its own, which runs the file."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from warpwright.formulas.aten.graph import graph_of
from warpwright.formulas.aten.plan import Plan, plan
from warpwright.syntax.encoding import decoded, shown
from warpwright.verify.harness import harness_environment, harness_python

MOST_SECONDS = 300.0


class NotExportedError(Exception):
    """Why there is no plan: one sentence."""


def plan_of(
    file: Path,
    name: str,
    *,
    inputs: Sequence[str] = (),
    run_time_sizes: bool = False,
    keeps_convolutions: bool = True,
    keeps_products: bool = False,
    timeout: float = MOST_SECONDS,
) -> Plan:
    """The plan of `name` in `file`, which is run: only where a user asks for it. `inputs` are examples, as
    "f32[64, 128]", where the file has no `get_inputs`. Sizes are those of the examples, or known at run time. Blocks
    for some seconds. Raises NotExportedError."""
    command = [harness_python(), "-m", "warpwright_harness.exported", str(file), name]
    command += [each for one in inputs for each in ("--input", one)]
    command += ["--sizes", "run-time" if run_time_sizes else "fixed"]
    try:
        ended = subprocess.run(
            command,
            check=False,
            capture_output=True,
            timeout=timeout,
            env=harness_environment(),
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise NotExportedError(f"{file.name}::{name} was not exported in {timeout:.0f} seconds.") from None
    except OSError as error:
        raise NotExportedError(f"{command[0]} cannot be started: {error.strerror}.") from None
    try:
        document = json.loads(ended.stdout)
    except ValueError:
        raise NotExportedError(_unanswered(command[0], shown(decoded(ended.stderr)))) from None
    if "error" in document:
        raise NotExportedError(document["error"])
    return plan(graph_of(document), keeps_convolutions=keeps_convolutions, keeps_products=keeps_products)


def _unanswered(python: str, said: str) -> str:
    if "No module named 'torch'" in said:
        return f"{python} has no torch: install it there, or name another Python in WARPWRIGHT_GPU_PYTHON."
    lines = said.strip().splitlines()
    return f"The process that exports ended{f': {lines[-1]}' if lines else '.'}"
