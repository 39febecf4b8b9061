"""What a search begins before it has a candidate is not waited for once it is over, and a failure of it is none of the
search's."""

from __future__ import annotations

import threading

import pytest
from warpwright.facts.resources import KernelResources
from warpwright.progress import CancelledError, IsCancelled, never_cancelled
from warpwright.syntax.source import Source
from warpwright.toolchain.compile import Compiled, Ending
from warpwright.verify import emulation, ready
from warpwright.verify.ready import getting_ready

SOURCE = Source("k.cu", b"__global__ void k(float *a) {\n  a[0] = 1.0f;\n}\n")
TAKEN = KernelResources("k", "_Z1kPf", 8, 0, 0, 0, 0, 0, 0, "sm_90")


@pytest.fixture(autouse=True)
def prepared(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set once the emulator's process was asked for; there is no GPU."""
    asked = threading.Event()
    monkeypatch.setattr(ready, "has_driver", lambda: False)
    monkeypatch.setattr(emulation, "prepare", asked.set)
    return asked


def test_the_original_is_compiled_for_whom_it_will_run_on(
    monkeypatch: pytest.MonkeyPatch, prepared: threading.Event
) -> None:
    made: list[str] = []

    def compile_cubin(source: Source, *, arch: str, flags: tuple[str, ...], is_cancelled: IsCancelled) -> Compiled:
        assert (source, flags, is_cancelled()) == (SOURCE, ("-O3",), False)
        made.append(arch)
        return Compiled(Ending.COMPILED, kernels={"k": TAKEN})

    monkeypatch.setattr(ready, "compile_cubin", compile_cubin)
    for arch in (None, "sm_80"):
        with getting_ready(SOURCE, arch, ("-O3",), never_cancelled) as resources:
            assert resources() == (TAKEN,)
    assert made == ["sm_90", "sm_80"]
    assert prepared.is_set()


def test_what_nobody_waits_for_any_more_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, given_up = threading.Event(), threading.Event()

    def compile_cubin(source: Source, *, arch: str, flags: tuple[str, ...], is_cancelled: IsCancelled) -> Compiled:
        begun.set()
        while not is_cancelled():
            threading.Event().wait(0.001)
        given_up.set()
        raise CancelledError

    monkeypatch.setattr(ready, "compile_cubin", compile_cubin)
    with getting_ready(SOURCE, None, (), never_cancelled):
        assert begun.wait(10)
        assert not given_up.is_set()
    assert given_up.is_set()
    with getting_ready(SOURCE, None, (), lambda: True) as resources:
        assert resources() == (), "the user stopped the search"
