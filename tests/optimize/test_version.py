"""Versions of a kernel: rewrites one after the other, in the user's kernel and in one beside it."""

from __future__ import annotations

import pytest
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Program
from warpwright.optimize.version import Version
from warpwright.rewrites.base import Rewrite
from warpwright.rewrites.registry import propose
from warpwright.syntax.source import Source
from warpwright.verify.beside import beside
from warpwright.verify.host_code import host_differences

SHADED = """__global__ void shaded(float *out, const float *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = pow(in[i], 2) + 1.5 * in[i];
}
"""
HOST = """void run(float *out, const float *in, int n) {
  shaded<<<(n + 127) / 128, 128>>>(out, in, n);
}
"""


def step_of(version: Version, name: str) -> Rewrite:
    made = propose(name, version.kernel, None)
    assert isinstance(made, Rewrite), made
    return made


@pytest.mark.parametrize("second", ["vectorize-elementwise", "coarsen-threads"])
def test_a_kernel_beside_has_what_was_done_in_place(second: str) -> None:
    own = Source("shaded.cu", (SHADED + HOST).encode())
    root = Version.of(analyze(own), analyze(own).defined_kernels[0])
    step = step_of(root, "expand-power")
    assert not step.beside
    version = root.after(step, root.edited(step, own), None, ())
    step = step_of(version, second)
    assert step.beside == "shaded_tuned"
    text = version.edited(step, own)
    assert SHADED in text.text(), "others launch it as it is"
    assert "pow(" not in text.text().partition("shaded_tuned(")[2]
    candidate: Program = analyze(text)
    found = beside(analyze(own), candidate, analyze)
    assert found is not None
    assert (found.old, found.name) == ("shaded", "shaded_tuned")
    assert not host_differences(analyze(own), found.program)
