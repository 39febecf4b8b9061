"""What a search begins before it has a candidate is not waited for once it is over, and a failure of it is none of the
search's."""

from __future__ import annotations

import threading
from contextlib import nullcontext

import pytest
from warpwright.facts.resources import KernelResources
from warpwright.missing import Missing
from warpwright.progress import CancelledError, IsCancelled, never_cancelled
from warpwright.syntax.source import Source
from warpwright.toolchain.compilation import Compiled, Ending
from warpwright.verify import emulation, ready
from warpwright.verify import verify as verifying
from warpwright.verify.claim import Claim
from warpwright.verify.ready import getting_ready
from warpwright.verify.report import Level

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


@pytest.mark.nvcc
@pytest.mark.parametrize(("likely", "times"), [("sm_90", 1), ("sm_80", 2)])
def test_what_needs_no_gpu_is_done_while_one_is_looked_for_and_again_where_it_is_another(
    likely: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    analysed, said = threading.Event(), []

    def find_gpu(_: IsCancelled) -> Missing:
        assert analysed.wait(60)
        return Missing("gpu", "None after all.", "")

    def progress(text: str, _: float | None) -> None:
        said.append(text)
        if text.startswith("Analysing"):
            analysed.set()

    monkeypatch.setattr(verifying, "has_driver", lambda: True)
    monkeypatch.setattr(verifying, "is_gpu_known", lambda: False)
    monkeypatch.setattr(verifying, "likely_arch", lambda: likely)
    monkeypatch.setattr(verifying, "find_gpu", find_gpu)
    monkeypatch.setattr(verifying, "hidden_faults_expected", nullcontext)
    candidate = Source("k.cu", SOURCE.data.replace(b"1.0f", b"1.0f + 0.0f"))
    report = verifying.climb(Claim(SOURCE, candidate, progress=progress, backend="cuda", again=True))
    assert report.reached(Level.ANALYSED)
    assert report.compilation is not None
    assert report.compilation.arch == "sm_90", "what there is to run on decides"
    assert said.count("Compiling both") == said.count("Analysing the candidate again") == times
