"""What torch takes stands beside every candidate's times, is measured once, and costs no verdict."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from warpwright.facts.analyze import analyze
from warpwright.problems.infer import find_problem
from warpwright.problems.model import Problem
from warpwright.progress import IsCancelled, never_cancelled, silent
from warpwright.syntax.source import read_include, read_source
from warpwright.verify import peers
from warpwright.verify.child import ChildEndedError, Event
from warpwright.verify.harness import Gpu
from warpwright.verify.peers import beside_torch
from warpwright.verify.plan import make_timing
from warpwright.verify.report import Report, Speed, Status

SAMPLES = Path(__file__).parents[2] / "csrc_samples"
OWN, OTHER = {"width": 4096, "height": 4096}, {"width": 1237, "height": 853}


class Harness:
    """Says of each shape that it is asked for what it takes, then ends as it is told to."""

    def __init__(self, compile_us: float | None = 0.8, ending: str = "done") -> None:
        self.asked: list[Mapping[str, int]] = []
        self.compile_us, self.ending = compile_us, ending

    def __call__(self, request: Mapping[str, Any], _: IsCancelled) -> Iterator[Event]:
        assert request["measure"] == "peers"
        for index, case in enumerate(request["cases"]):
            self.asked.append(case["shape"])
            yield {"event": "begin", "phase": "peers", "case": index, "side": ""}
            if self.ending == "hang":
                raise ChildEndedError("nothing happened for 20 seconds", timed_out=True)
            took = {"eager_us": 3.0, "compile_us": self.compile_us}
            yield {"event": "peers", "case": index, "shape": case["shape"], "peers": took}
        yield {"event": self.ending, "text": "an illegal address"}


@pytest.fixture(autouse=True)
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPWRIGHT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(peers, "find_gpu", lambda _: Gpu("NVIDIA H200", "sm_90", {"uuid": "f627", "torch": "2.11"}))


@pytest.fixture(scope="module")
def problem() -> Problem:
    program = analyze(read_source(SAMPLES / "memory" / "transpose_tiled" / "kernel.cu"), read_include)
    found = find_problem(program, program.defined_kernels[0])
    assert isinstance(found, Problem)
    return found


def timed(*shapes: Mapping[str, int]) -> Report:
    return Report(Status.FASTER, speed=tuple(Speed(shape, 2.0, 1.0, 2.0, (1.9, 2.1)) for shape in shapes))


def beside(monkeypatch: pytest.MonkeyPatch, harness: Harness, problem: Problem, *reports: Report) -> list[Report]:
    monkeypatch.setattr(peers, "run_request", harness)
    return beside_torch(reports, problem, progress=silent, is_cancelled=never_cancelled)


def test_all_candidates_share_what_is_measured_once(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    harness = Harness()
    wrong = Report(Status.WRONG)
    first, none, second = beside(monkeypatch, harness, problem, timed(OWN, OTHER), wrong, timed(OWN))
    assert harness.asked == [OWN, OTHER]
    assert none is wrong
    for speed in (*first.speed, *second.speed):
        assert speed.details["peers"] == {"eager_us": 3.0, "compile_us": 0.8}
        assert speed.details["best_baseline"] == {"name": "torch.compile", "us": 0.8, "speedup": 0.8}
    again = Harness(compile_us=7.0)
    (kept,) = beside(monkeypatch, again, problem, timed(OTHER))
    assert again.asked == []
    assert kept.speed[0].details["peers"]["compile_us"] == 0.8


def test_another_reference_is_measured_anew(problem: Problem, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    beside(monkeypatch, Harness(), problem, timed(OWN))
    changed = tmp_path / "reference.py"
    changed.write_text("def reference(): ...\n", encoding="utf-8")
    again = Harness(compile_us=7.0)
    (report,) = beside(monkeypatch, again, replace(problem, reference=changed), timed(OWN))
    assert again.asked == [OWN]
    assert report.speed[0].details["peers"]["compile_us"] == 7.0


@pytest.mark.parametrize("ending", ["hang", "fault"])
def test_a_torch_that_does_not_end_is_a_note(ending: str, problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    (report,) = beside(monkeypatch, Harness(ending=ending), problem, timed(OWN))
    assert report.status is Status.FASTER
    assert "what the reference takes in torch was not measured" in report.notes[0]


def test_nothing_is_asked_without_a_reference_or_a_time(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    harness = Harness()
    untimed = Report(Status.CORRECT)
    assert beside(monkeypatch, harness, problem, untimed) == [untimed]
    alone = timed(OWN)
    assert beside(monkeypatch, harness, replace(problem, reference=None), alone) == [alone]
    assert harness.asked == []


def test_the_harness_understands_what_it_is_asked(
    problem: Problem, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """On the CPU, with a stopwatch that stands: every shape has its event, and no kernel is loaded."""
    torch = pytest.importorskip("torch", reason="not installed: torch")
    from warpwright_harness import worker
    from warpwright_harness.checks import correctness
    from warpwright_harness.timing import peers as harness_peers
    from warpwright_harness.timing import speed

    class Stopwatch:
        def start_cold(self, work: Callable[[], object], _: int) -> Callable[[], float]:
            work()
            return lambda: 5.0

    monkeypatch.setattr(correctness, "DEVICE", "cpu")
    monkeypatch.setattr(speed, "Stopwatch", Stopwatch)
    monkeypatch.setattr(harness_peers, "find_spec", lambda _: None)  # without Triton nothing is compiled
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    monkeypatch.setitem(sys.modules, "torch._inductor", SimpleNamespace(config=SimpleNamespace()))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    shapes = [{"width": 31, "height": 33}, {"width": 8, "height": 2}]
    request = {**make_timing(problem, shapes), "lock": str(tmp_path / "lock")}
    events: list[Event] = []
    worker._run(request, events.append)
    found = [event for event in events if event["event"] == "peers"]
    assert [event["shape"] for event in found] == shapes
    assert all(event["peers"]["eager_us"] == 5.0 for event in found)
    assert all("triton" in event["peers"]["compile_failed"] for event in found)
