"""The path from data to adapter, gone once for all tests of this folder, on a tiny random Gemma 3."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.upskill import FORMULA, KERNEL, TASK, collect_few, ran, settings
from warpwright_upskill.examples import Example, Metrics, Provenance, write_json_lines


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("upskill")


@pytest.fixture(scope="session")
def tiny(folder: Path) -> Path:
    """A Gemma 3 of 0.3 million random weights as GGUF."""
    path = folder / "tiny.gguf"
    ran("tiny", path)
    return path


@pytest.fixture(scope="session")
def collected(folder: Path) -> Path:
    """Some examples of each task."""
    path = folder / "examples.jsonl"
    collect_few(path)
    return path


@pytest.fixture(scope="session")
def lesson(folder: Path) -> Path:
    """A request and its two answers, short enough for the tiny model to learn by heart."""
    path = folder / "lesson.jsonl"
    common = {"problem": TASK, "provenance": Provenance("sample", "twice"), "metrics": Metrics("parsed", "by hand")}
    steps = ("one thread per element",)
    kernel = Example(task="kernel", reasoning_steps=steps, cuda_kernel=KERNEL, kernel="twice", **common)
    write_json_lines(path, [kernel, Example(task="formula", formula=FORMULA, **common)])
    return path


@pytest.fixture(scope="session")
def learned(folder: Path, tiny: Path, lesson: Path) -> Path:
    """The folder of an adapter that knows the lesson by heart."""
    path = folder / "learned"
    by_heart = settings(
        mix="{kernel=0.5, formula=0.5}", epochs=80, batch=1, rank=16, alpha=32, learning_rate=0.01, max_tokens=4096
    )
    ran("train", lesson, "--model", tiny, "--out", path, *by_heart)
    return path


@pytest.fixture(scope="session")
def adapter(folder: Path, tiny: Path, lesson: Path, learned: Path) -> Path:
    """The same adapter as GGUF."""
    path = folder / "adapter.gguf"
    ran("export", learned, "--model", tiny, "--out", path, "--check", lesson)
    return path
