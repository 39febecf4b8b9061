from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from warpwright.progress import CancelledError, IsCancelled, never_cancelled
from warpwright.verify import rates
from warpwright.verify.child import ChildEndedError, Event
from warpwright.verify.harness import Gpu
from warpwright.verify.rates import keep_rates, known_rates, rates_of

GPU = Gpu("NVIDIA H200", "sm_90", {"uuid": "f6279c9f-c73c", "driver": "13.0"})
RATES = {"dram_bytes": 4.3e12, "fp32": 6.5e13}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WARPWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_rates_are_kept_per_gpu_and_driver() -> None:
    assert known_rates(GPU) == {}
    keep_rates(GPU, RATES)
    assert known_rates(GPU) == RATES
    assert known_rates(Gpu(GPU.name, GPU.arch, {**GPU.details, "uuid": "another"})) == {}
    assert known_rates(Gpu(GPU.name, GPU.arch, {**GPU.details, "driver": "13.1"})) == {}


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"per_second": 3}', '{"per_second": {"fp32": "fast"}}'])
def test_a_broken_file_is_measured_again(text: str, cache: Path) -> None:
    keep_rates(GPU, RATES)
    (file,) = (cache / "rates").iterdir()
    assert json.loads(file.read_text(encoding="utf-8"))["gpu"] == "NVIDIA H200"
    file.write_text(text, encoding="utf-8")
    assert known_rates(GPU) == {}


def test_rates_are_measured_once_for_all_who_ask_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Mapping[str, Any]] = []

    def run_request(request: Mapping[str, Any], _: IsCancelled) -> Iterator[Event]:
        asked.append(request)
        yield {"event": "hello", "device": {}}
        yield {"event": "rates", "rates": RATES}
        yield {"event": "done"}

    monkeypatch.setattr(rates, "run_request", run_request)
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: rates_of(GPU, never_cancelled), range(4)))
    assert answers == [RATES] * 4
    assert [request["measure"] for request in asked] == ["rates"]


def test_a_harness_that_ends_leaves_them_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_request(request: Mapping[str, Any], _: IsCancelled) -> Iterator[Event]:
        yield {"event": "hello", "device": {}, "asked": request["measure"]}
        raise ChildEndedError("it went away")

    monkeypatch.setattr(rates, "run_request", run_request)
    assert rates_of(GPU, never_cancelled) == {}


def test_who_waits_for_another_to_measure_can_be_stopped() -> None:
    with rates._measuring, pytest.raises(CancelledError):
        rates_of(GPU, lambda: True)


def test_a_cache_that_cannot_be_written_is_no_error(cache: Path) -> None:
    cache.write_text("a file where the folder should be", encoding="utf-8")
    keep_rates(GPU, RATES)
    assert known_rates(GPU) == {}
