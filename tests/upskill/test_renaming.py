"""A kernel under other names is the same kernel."""

from __future__ import annotations

from support.upskill import SAMPLES
from warpwright.facts.analyze import analyze
from warpwright.syntax.source import Source, read_source
from warpwright_upskill.data.renaming import renamed

TURN = read_source(SAMPLES / "tiles" / "turn" / "kernel.cu")


def texts(source: Source, count: int, seed: str = "1") -> list[tuple[Source, str]]:
    return list(renamed(analyze(source).defined_kernels[0], count, seed))


def test_every_text_parses_and_keeps_its_launch() -> None:
    (before,) = analyze(TURN).defined_kernels
    for text, name in texts(TURN, 6):
        assert not text.root.has_error
        (kernel,) = analyze(text).defined_kernels
        assert kernel.name == name
        assert len(kernel.parameters) == len(before.parameters)
        assert len(kernel.launches) == len(before.launches)
        assert all(launch.source.startswith(TURN.path) for launch in kernel.launches if launch.span is not None)


def test_texts_differ_and_are_the_same_again_wherever_the_file_lies() -> None:
    found = [text.data for text, _ in texts(TURN, 8)]
    assert len({TURN.data, *found}) == 9
    assert found == [text.data for text, _ in texts(Source("/elsewhere/kernel.cu", TURN.data), 8)]
    assert found != [text.data for text, _ in texts(TURN, 8, seed="2")]


def test_no_name_is_taken_twice() -> None:
    own = b"__global__ void k(const float* src, float* dst, int n) { float x = src[n]; dst[n] = x; }"
    for text, _ in texts(Source("a.cu", own), 10):
        names = [each.name for each in analyze(text).defined_kernels[0].parameters]
        assert len(set(names)) == 3
        assert not set(names) & {"src", "dst", "n", "x"}
