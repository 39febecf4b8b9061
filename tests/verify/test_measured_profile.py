"""On a GPU with Nsight Compute, a kernel's profile is what its text says that it must be: benchmarks/gpu_profile.py."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from warpwright.facts.profile import Backend, Profile
from warpwright.missing import Missing
from warpwright.toolchain.ncu import find_ncu

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.nvcc,
    pytest.mark.skipif(isinstance(find_ncu(), Missing), reason=f"no Nsight Compute: {find_ncu()}"),
]


def benchmark() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "gpu_profile.py"
    spec = importlib.util.spec_from_file_location("gpu_profile", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["gpu_profile"] = module
    spec.loader.exec_module(module)
    return module


def test_every_count_is_right() -> None:
    profiles: list[Profile] = []
    assert benchmark().failures(profiles) == []
    assert {profile.backend for profile in profiles} == {Backend.NCU}
    assert all(profile.texts for profile in profiles)
