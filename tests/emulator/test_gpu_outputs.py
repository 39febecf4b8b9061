"""What the kernels here leave in the emulator is what they left on a GPU, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from emulator_jobs import ROOT, Job, digest, launched
from warpwright.facts.analyze import analyze
from warpwright.syntax.source import read_include, read_source

pytestmark = pytest.mark.nvcc

KERNELS = sorted((ROOT / "tests" / "emulator" / "kernels").glob("*.cu"))
MEASURED: dict[str, dict[str, Any]] = {
    row["kernel"]: row
    for row in json.loads((ROOT / "benchmarks" / "results" / "emulator_gpu.json").read_text())["results"]
}


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_outputs_are_those_of_a_gpu(path: Path) -> None:
    """Kernels that were equal there: the others use approximations, or sums in an order of the machine's own."""
    unit = analyze(read_source(path), read_include)
    left: dict[str, tuple[bool, str]] = {}
    wanted: dict[str, tuple[bool, str]] = {}
    for kernel in unit.defined_kernels:
        job = launched(unit, kernel, {})
        assert isinstance(job, Job), job
        assert job.result.faults == (), job.name
        measured = MEASURED[job.name]
        assert dict(job.case.shape) == measured["shape"], job.name
        if not measured["different"]:
            left[job.name] = job.result.is_complete, digest({n: a.tobytes() for n, a in job.result.outputs.items()})
            wanted[job.name] = True, measured["outputs"]
    assert left == wanted
    assert wanted


def test_most_kernels_were_equal_on_the_gpu() -> None:
    """What the test above leaves out must stay few."""
    assert sum(not row["different"] for row in MEASURED.values()) >= 60
