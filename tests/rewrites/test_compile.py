"""What rewrites produce is CUDA: nvcc takes every expected result, all of them in one compilation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.cases import cases_of
from support.cuda import together
from support.findings import compile_errors
from support.pages import code, sections
from warpwright.rewrites.registry import all_rewrites

CASES = cases_of(Path(__file__).parent / "cases")
OTHER_LIBRARIES = re.compile(r'#\s*include\s*[<"](?:torch|ATen|c10)/')


def results() -> dict[str, str]:
    """Text by name of every result that needs nothing but the toolkit."""
    found = {case.id: case.expected for case in CASES if case.expected is not None}
    for kind in all_rewrites():
        for number, text in enumerate(code(sections(kind.doc)["After"])):
            found[f"{kind.name}, After {number}"] = text
    return {name: text for name, text in found.items() if not OTHER_LIBRARIES.search(text)}


@pytest.mark.nvcc
def test_every_result_compiles() -> None:
    texts = results()
    assert {name.split("/")[0].split(",")[0] for name in texts} == {kind.name for kind in all_rewrites()}
    assert not compile_errors(together(texts))


@pytest.mark.nvcc
def test_a_result_that_does_not_compile_is_named() -> None:
    """The test above can fail, and says where."""
    errors = compile_errors(together({"good.cu": "int a;", "bad.cu": "\n__global__ void k() { wrong; }"}))
    assert any(error.startswith("bad.cu:2:") for error in errors)
