"""Other texts of a kernel say the same with other names, sizes and types."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.upskill import SAMPLES
from warpwright.facts.analyze import analyze
from warpwright.syntax.source import Source, read_source
from warpwright_upskill.variants import Variant, vary

TURN = SAMPLES / "tiles" / "turn" / "kernel.cu"


def variants(source: Source, count: int, seed: int = 0) -> list[Variant]:
    return list(vary(analyze(source).defined_kernels[0], source, count, seed))


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*/*/kernel.cu")), ids=lambda path: path.parent.name)
def test_every_text_parses_and_keeps_its_launch(path: Path) -> None:
    source = read_source(path)
    for variant in variants(source, 6):
        assert not variant.source.root.has_error
        program = analyze(variant.source)
        [kernel] = program.defined_kernels
        assert kernel.name == variant.kernel
        before = analyze(source).defined_kernels[0]
        assert len(kernel.parameters) == len(before.parameters)
        assert len(kernel.launches) == len(before.launches)
        assert all(launch.source.startswith(str(path)) for launch in kernel.launches if launch.span is not None)


def test_texts_differ_and_are_the_same_again() -> None:
    source = read_source(TURN)
    texts = [v.source.data for v in variants(source, 8)]
    assert len({source.data, *texts}) == 9
    assert texts == [v.source.data for v in variants(source, 8)]
    assert texts != [v.source.data for v in variants(source, 8, seed=1)]


def test_texts_are_the_same_wherever_the_file_lies() -> None:
    source = read_source(TURN)
    there = Source("/elsewhere/kernel.cu", source.data)
    assert [v.source.data for v in variants(source, 8)] == [v.source.data for v in variants(there, 8)]


def test_sizes_and_types_are_varied_too() -> None:
    how = " ".join(v.how for v in variants(read_source(TURN), 12))
    assert "TILE 32 to 16" in how and "double for float" in how


def test_no_name_is_taken_twice() -> None:
    text = b"__global__ void k(const float* src, float* dst, int n) { float x = src[n]; dst[n] = x; }"
    for variant in variants(Source("a.cu", text), 10):
        names = [p.name for p in analyze(variant.source).defined_kernels[0].parameters]
        assert len(set(names)) == 3
        assert not set(names) & {"src", "dst", "n", "x"}
