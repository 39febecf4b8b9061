"""What a run of such a launch says of a race that the text shows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.findings import program
from warpwright.facts.model import AccessKind, Basis, Kernel, KernelRun, Space
from warpwright.facts.profile import FaultKind
from warpwright.rules.base import Finding, Severity
from warpwright.rules.registry import run_rules

RACE = """\
__global__ void mirror(float *out) {
  __shared__ float tile[64];
  tile[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = tile[63 - threadIdx.x];
}
void run(float *out) { mirror<<<1, 64>>>(out); }
"""
READ = program(RACE)
PATH = READ.source.path
STORE, LOAD = (
    (PATH, 3, Space.SHARED, AccessKind.STORE, "tile"),
    (PATH, 4, Space.SHARED, AccessKind.LOAD, "tile"),
)
RUN = KernelRun(Basis.EMULATED, (1, 1, 1), (64, 1, 1), (), frozenset({STORE, LOAD}), frozenset(), frozenset())


def _found(run: KernelRun) -> Finding:
    kernels: tuple[Kernel, ...] = tuple(replace(kernel, runs=(run,)) for kernel in READ.kernels)
    (found,) = run_rules(replace(READ, kernels=kernels), select=("shared-memory-race",))
    return found


def test_what_a_run_of_both_places_does_not_show_is_information() -> None:
    found = _found(RUN)
    assert (found.severity, found.evidence["run"], found.fixes) == (Severity.INFORMATION, "withdrawn", ())
    assert found.message.endswith("A run came to both places in such a launch and did not show it; emulated, block 64.")


def test_a_place_that_a_run_has_not_leaves_it_open() -> None:
    found = _found(replace(RUN, accessed=frozenset({STORE})))
    assert (found.severity, found.evidence["run"]) == (Severity.ERROR, "open")
    assert "or the compiler removed one" in found.message


@pytest.mark.parametrize(
    "run",
    [
        replace(RUN, block=(32, 1, 1)),
        replace(RUN, faults=frozenset({FaultKind.DEADLOCK})),
        replace(RUN, faulty_lines=frozenset({(PATH, 4)})),
    ],
)
def test_another_launch_or_a_run_that_went_wrong_says_nothing(run: KernelRun) -> None:
    assert "run" not in _found(run).evidence
