"""What is said of a compiled kernel above it and at its name."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from warpwright.editor.analysis import Analysis, analyse
from warpwright.editor.build import build_of
from warpwright.editor.hover import hover
from warpwright.editor.resources_view import resource_words
from warpwright.editor.settings import Settings
from warpwright.facts.resources import KernelResources, SpillPlace
from warpwright.syntax.source import Source, read_include

PATH = "/project/a.cu"
TEXT = b"""\
__global__ void heavy(float* x) {
    x[threadIdx.x] *= 2.0f;
}
void run(float* x) {
    heavy<<<100000, 256>>>(x);
}
"""
HEAVY = KernelResources("heavy", "_Z5heavyPf", 66, 0, 0, 0, 0, 536, 0, "sm_90")


def _analysis(resources: KernelResources, text: bytes = TEXT) -> Analysis:
    kernels = {"sm_90": {resources.name: asdict(resources)}}
    answer = json.loads(json.dumps({"kernels": kernels, "compiler": "nvcc 13.0.88"}))
    return analyse(Source(PATH, text), read_include, Settings(), build=build_of(answer, TEXT))


def _hover(analysis: Analysis) -> str:
    found = hover(analysis, TEXT.index(b"heavy"))
    assert found is not None
    return found.markdown


def test_the_hover_has_the_limiter_and_what_would_lift_it() -> None:
    analysis = _analysis(HEAVY)
    said = _hover(analysis)
    assert "- occupancy 37.5 % (block 256): 3 blocks, 24 warps on a multiprocessor, limited by registers\n" in said
    assert "  - 2 registers fewer per thread (64) give 37.5 -> 50 %" in said
    assert resource_words(analysis, analysis.kernels_here()[0]) == ("sm_90: occupancy 37.5 % (registers), 66 registers")


def test_the_finding_has_the_same_numbers() -> None:
    (finding,) = [each for each in _analysis(HEAVY).findings if each.rule == "low-occupancy"]
    assert finding.evidence["occupancy"] == 0.375
    assert finding.evidence["source"] == "compiler"


def test_spills_are_said_with_their_lines() -> None:
    place = SpillPlace(((PATH, 2),), 2, 3, 80, 96)
    analysis = _analysis(replace(HEAVY, spill_store_bytes=80, spill_load_bytes=96, stack_bytes=80, spills=(place,)))
    assert "spills: 80 bytes stored, 96 loaded" in _hover(analysis)
    assert "spills most at lines 2" in _hover(analysis)
    (finding,) = [each for each in analysis.findings if each.rule == "register-spill"]
    assert finding.evidence["lines"] == [{"line": 2, "store_bytes": 80, "load_bytes": 96}]


def test_of_an_older_text_no_occupancy_and_no_finding_is_said() -> None:
    analysis = _analysis(HEAVY, TEXT.replace(b"2.0f", b"3.0f"))
    assert "66 registers" in _hover(analysis)
    assert "occupancy" not in _hover(analysis)
    assert [each.rule for each in analysis.findings if each.rule in ("low-occupancy", "register-spill")] == []


def test_many_instances_keep_the_hover_short() -> None:
    text = TEXT.replace(b"__global__", b"template <int N> __global__").replace(b"heavy<<<", b"heavy<1><<<")
    taken = [replace(HEAVY, name=f"heavy<{n}>", registers=40 + n % 5) for n in range(40)]
    answer = {"kernels": {"sm_90": {each.name: asdict(each) for each in taken}}, "compiler": "nvcc 13.0.88"}
    analysis = analyse(Source(PATH, text), read_include, Settings(), build=build_of(answer, text))
    found = hover(analysis, text.index(b"heavy"))
    assert found is not None
    said = found.markdown.partition("**Compiled for sm_90**")[2]
    assert "`heavy<4>` and 7 more: 44 registers" in said
    assert "16 more instances, with no more spills" in said
    assert len([line for line in said.splitlines() if line.startswith("- ")]) <= 8
