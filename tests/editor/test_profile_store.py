"""A stored profile is found for exactly its text, and for no other."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from warpwright.editor.profile.store import MOST_TEXTS, load_profiles, other_version, placed, store_profile
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Program
from warpwright.facts.profile import (
    Backend,
    Fault,
    FaultKind,
    InstructionSet,
    Line,
    Place,
    Profile,
    ProfiledLaunch,
    text_hash,
)
from warpwright.syntax.source import Source, read_include

HEADER = "__device__ float twice(float v) { return v + v; }\n"
TEXT = '#include "twice.cuh"\n__global__ void k(float* a) { a[threadIdx.x] = twice(1.0f); }\n'


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPWRIGHT_CACHE_DIR", str(tmp_path / "cache"))


def program(folder: Path, text: str = TEXT, header: str = HEADER) -> Program:
    folder.mkdir(exist_ok=True)
    (folder / "twice.cuh").write_text(header, encoding="utf-8")
    return analyze(Source(str(folder / "a.cu"), text.encode()), read_include)


def profile(of: Program, backend: Backend = Backend.EMULATOR, n: int = 32) -> Profile:
    paths = {path: text_hash(source.data) for path, source in of.sources.items()}
    main, header = of.source.path, next(path for path in paths if path != of.source.path)
    lines = (
        Line(main, 2, InstructionSet.PTX, 4, 128),
        Line(header, 1, InstructionSet.PTX, 1, 32),
    )
    fault = Fault(FaultKind.GLOBAL_RACE, main, 2, "a[0] is written twice.", other=Place(header, 1))
    launch = ProfiledLaunch((1, 1, 1), (n, 1, 1), shape={"n": n})
    return Profile("k", launch, backend, {main: paths[main], **paths}, lines, (fault,), flags=("-arch=sm_90", "-DN=4"))


def load(of: Program) -> tuple[Profile, ...]:
    return load_profiles(of, {"N": "4"}, "sm_90")


def test_it_comes_back(tmp_path: Path) -> None:
    here = program(tmp_path / "src")
    stored = profile(here)
    store_profile(stored)
    assert load(here) == (stored,)


def test_an_edit_makes_it_stale_and_undoing_brings_it_back(tmp_path: Path) -> None:
    here = program(tmp_path / "src")
    store_profile(profile(here))
    assert load(program(tmp_path / "src", TEXT + "\n")) == ()
    assert load(program(tmp_path / "src", header=HEADER + "\n")) == ()
    assert len(load(program(tmp_path / "src"))) == 1


def test_a_moved_tree_keeps_its_profiles(tmp_path: Path) -> None:
    store_profile(profile(program(tmp_path / "old")))
    here = program(tmp_path / "new")
    (found,) = load(here)
    assert {line.file for line in found.lines} == set(here.sources)
    assert found.faults[0].file == here.source.path
    assert found.faults[0].other is not None and found.faults[0].other.file in here.sources


def test_other_macros_are_another_program(tmp_path: Path) -> None:
    here = program(tmp_path / "src")
    store_profile(profile(here))
    assert load_profiles(here, {"N": "8"}, "sm_90") == ()
    assert load_profiles(here, {"N": "4"}, "sm_80") == ()
    measured = replace(profile(here, Backend.NCU), flags=None)
    store_profile(measured)
    assert load_profiles(here, {"N": "8"}, "sm_80") == (measured,)


def test_what_was_measured_comes_first_then_the_newest(tmp_path: Path) -> None:
    here = program(tmp_path / "src")
    measured, older, newer = profile(here, Backend.NCU), profile(here, n=64), profile(here, n=96)
    for age, each in enumerate((measured, older, newer)):
        path = store_profile(each)
        assert path is not None
        os.utime(path, (1000 + age, 1000 + age))
    assert load(here) == (measured, newer, older)


def test_the_same_run_is_kept_once(tmp_path: Path) -> None:
    here = program(tmp_path / "src")
    again = replace(profile(here), notes=("again",))
    store_profile(profile(here))
    store_profile(again)
    assert load(here) == (again,)


def test_the_last_other_version_is_found_at_the_same_sizes_in_the_same_file(tmp_path: Path) -> None:
    first = profile(program(tmp_path / "src"))
    second = profile(program(tmp_path / "src", TEXT + "\n"))
    for each in (first, profile(program(tmp_path / "other", TEXT + "\n\n")), replace(second, kernel="other"), second):
        store_profile(each)
    assert other_version(second) == first
    assert other_version(first) == second
    assert other_version(profile(program(tmp_path / "src", TEXT + "\n"), n=64)) is None
    assert other_version(replace(second, texts={"a.cu": text_hash(b"")})) is None


def test_one_without_text_is_not_kept(tmp_path: Path) -> None:
    here = program(tmp_path / "src")
    assert store_profile(replace(profile(here), texts={})) is None
    assert placed(replace(profile(here), texts={}), here) is None


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    here = program(tmp_path / "src")
    path = store_profile(profile(here))
    assert path is not None
    for content in (b"", b"{}", b"\xff\x00", b"[" * 100_000):
        path.write_bytes(content)
        assert load(here) == ()


def test_old_texts_go(tmp_path: Path) -> None:
    here = program(tmp_path / "src")
    home = tmp_path / "cache" / "profiles"
    for number in range(MOST_TEXTS):
        folder = home / f"{number:064x}"
        folder.mkdir(parents=True)
        os.utime(folder, (number, number))
    store_profile(profile(here))
    assert len(load(here)) == 1
    assert len(list(home.iterdir())) == MOST_TEXTS + 1 - MOST_TEXTS // 2
