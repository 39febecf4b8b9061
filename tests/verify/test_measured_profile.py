"""On a GPU with Nsight Compute, a kernel's profile is what its text says that it must be: benchmarks/gpu_profile.py."""

from __future__ import annotations

import pytest
from gpu_profile import failures
from warpwright.facts.profile import Backend, Profile
from warpwright.missing import Missing
from warpwright.toolchain.ncu import find_ncu

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.nvcc,
    pytest.mark.skipif(isinstance(find_ncu(), Missing), reason=f"no Nsight Compute: {find_ncu()}"),
]


def test_every_count_is_right() -> None:
    profiles: list[Profile] = []
    assert failures(profiles) == []
    assert {profile.backend for profile in profiles} == {Backend.NCU}
    assert all(profile.texts for profile in profiles)
