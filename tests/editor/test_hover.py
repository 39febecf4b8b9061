"""What a hover says of accesses, branches and barriers that are not simple."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warpwright.editor.analysis import Analysis, analyse
from warpwright.editor.hover import hover, image_picture
from warpwright.editor.picture import lanes_picture
from warpwright.editor.picture_svg import lanes_svg
from warpwright.editor.profile.store import store_profile
from warpwright.editor.settings import Settings
from warpwright.facts.model import AccessKind, LaneAddresses, Space
from warpwright.facts.profile import (
    Backend,
    Fault,
    FaultKind,
    InstructionSet,
    Line,
    Profile,
    ProfiledLaunch,
    Traffic,
    text_hash,
)
from warpwright.syntax.source import Source


def analysis_of(text: str) -> Analysis:
    return analyse(Source("/src/a.cu", text.encode()), lambda path, name: None, Settings())


def said(text: str, words: str) -> str:
    answer = hover(analysis_of(text), text.encode().index(words.encode()))
    assert answer is not None, words
    assert answer.span.text in text
    return answer.markdown


def test_each_launch_has_its_own_numbers() -> None:
    text = (
        "__global__ void k(float* a) { a[threadIdx.x * 2 + threadIdx.y] = 0; }\n"
        "void f(float* a) { k<<<1, 256>>>(a); k<<<1, dim3(4, 64)>>>(a); }\n"
    )
    answer = said(text, "a[thread")
    assert "Global store" in answer
    assert "**8 sectors/request** (ideal 4)" in answer
    assert "block 256 (from a.cu:2)" in answer
    assert "block 4 x 64 (from a.cu:2)" in answer


def test_a_kernel_says_which_lines_its_memory_time_goes_to() -> None:
    text = "__global__ void k(float *a, float *b) {\n  a[32 * threadIdx.x] = 0;\n  b[threadIdx.x] = 0;\n}\n"
    text += "void f(float *a) { k<<<64, 256>>>(a, a); }\n"
    assert "- where the memory time goes, by estimate: line 2 89%, line 3 11%" in said(text, "k(float")


def test_an_assumed_shape_is_called_assumed() -> None:
    answer = said("__global__ void k(float* a) { a[threadIdx.x] = 0; }\n", "a[thread")
    assert "assumed" in answer


def test_a_kept_profile_speaks_until_the_text_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPWRIGHT_CACHE_DIR", str(tmp_path))
    text = (
        "__global__ void k(float* a, int m) {\n    int j = threadIdx.x * m;\n    a[j] = 0;\n}\n"
        "void f(float* a, int m) { k<<<1, 32>>>(a, m); }\n"
    )
    store = Traffic(Space.GLOBAL, AccessKind.STORE, 4, 1, 32, sectors=17, ideal_sectors=4, array="a")
    line = Line("/src/a.cu", 3, InstructionSet.PTX, 5, 160, traffic=(store,))
    fault = Fault(FaultKind.GLOBAL_RACE, "/src/a.cu", 3, "a[3] is written by two threads.")
    launch = ProfiledLaunch((1, 1, 1), (32, 1, 1), shape={"n": 32})
    texts = {"/src/a.cu": text_hash(text.encode())}
    store_profile(Profile("k", launch, Backend.EMULATOR, texts, (line,), (fault,), flags=("-arch=sm_90",)))
    answer = said(text, "a[j]")
    assert "**17 sectors/request** (ideal 4), 4 bytes a lane, emulated" in answer
    assert "**This line, emulated** (grid 1, block 32, n = 32): 5 PTX instructions, 32.0 threads each" in answer
    kernel = said(text, "k(float")
    assert "bound by memory (H200): 0.0092 warp instructions/byte, ridge point 0.19; at full bandwidth 5% of" in kernel
    assert "```text\nmemory --o------------+--------------- issue\n```" in kernel
    assert "**Fault, emulated**: global-memory-race: a\\[3\\] is written by two threads." in answer
    assert "**The whole run, emulated**" in said(text, "k(float")
    assert "emulated" not in said(text + "\n", "a[j]")


def test_what_depends_on_data_is_not_counted() -> None:
    text = (
        "__global__ void k(float* a, const int* at) { a[at[threadIdx.x]] = 0; }\n"
        "void f(float* a, int* b) { k<<<1, 32>>>(a, b); }\n"
    )
    answer = said(text, "a[at")
    assert "Depends on data" in answer
    assert "/request**" not in answer


def test_a_divergent_branch_and_the_barrier_in_it() -> None:
    text = (
        "__global__ void k(float* a) {\n"
        "  __shared__ float s[32]; if (threadIdx.x % 2) { __syncthreads(); } a[threadIdx.x] = s[0]; }\n"
        "void f(float* a) { k<<<8, 256>>>(a); }\n"
    )
    assert "Every warp diverges" in said(text, "threadIdx.x % 2")
    barrier = said(text, "__syncthreads")
    assert "Not every thread of the block reaches it" in barrier
    assert "`threadIdx.x % 2`" in barrier


def test_source_text_cannot_break_the_markdown() -> None:
    text = (
        "__global__ void k(float* a, int* __restrict__ n) { a[threadIdx.x * 2 + 0 * ('`' | '<' + '_')] = 0; }\n"
        "void f(float* a, int* n) { k<<<1, 32>>>(a, n); }\n"
    )
    answer = said(text, "a[thread")
    assert answer.count("```") == 2
    assert "`` a[threadIdx.x * 2 + 0 * ('`' | '<' + '_')] ``" in answer


def test_a_macro_and_a_device_function_are_followed() -> None:
    text = (
        "#define AT(i) a[(i) * 32]\n"
        "__device__ float load(const float* p) { return p[threadIdx.x * 4]; }\n"
        "__global__ void k(float* a) { AT(threadIdx.x) = load(a); }\n"
        "void f(float* a) { k<<<1, 64>>>(a); }\n"
    )
    assert "**16 sectors/request**" in said(text, "p[thread")
    assert "**32 sectors/request**" in said(text, "AT(thread")


def test_an_access_that_reads_and_writes_is_said_once() -> None:
    text = "__global__ void k(float* a) { a[threadIdx.x] += 1; }\nvoid f(float* a) { k<<<1, 32>>>(a); }\n"
    answer = said(text, "a[thread")
    assert "Global load and store" in answer
    assert answer.count("4 sectors/request") == 1


def drawn(text: str, words: str) -> ElementTree.Element:
    answer = hover(analysis_of(text), text.encode().index(words.encode()), image_picture)
    assert answer is not None
    image = re.search(r"!\[[^\]\n]+\]\(data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)\)", answer.markdown)
    assert image is not None, answer.markdown
    return ElementTree.fromstring(base64.b64decode(image[1]))


def boxes(picture: ElementTree.Element, kind: str) -> int:
    return sum(part.get("class") == kind for part in picture)


def test_the_picture_of_a_bank_conflict_shows_each_word_of_the_bank() -> None:
    text = (
        "__global__ void k(float* a) { __shared__ float s[1024]; s[threadIdx.x * 32] = a[threadIdx.x]; }\n"
        "void f(float* a) { k<<<1, 32>>>(a); }\n"
    )
    conflict = drawn(text, "s[thread")
    assert (boxes(conflict, "g"), boxes(conflict, "b")) == (1, 31)
    assert "bank 0" in [part.text for part in conflict]
    clean = drawn(text, "a[thread")
    assert (boxes(clean, "g"), boxes(clean, "b")) == (32, 0)
    for picture in (conflict, clean):
        assert float(picture.get("width", "0")) <= 500
        assert float(picture.get("height", "0")) <= 250


@given(st.lists(st.none() | st.integers(0, 1 << 20), min_size=32, max_size=32), st.sampled_from([1, 2, 4, 8, 16]))
def test_any_request_can_be_drawn(places: list[int | None], size: int) -> None:
    lanes = LaneAddresses(0, (0, 0, 0), tuple(None if at is None else at * size for at in places))
    for space in (Space.SHARED, Space.GLOBAL):
        picture = ElementTree.fromstring(lanes_svg(lanes, space, size, 1.0))
        assert float(picture.get("width", "0")) <= 500
        assert len(lanes_picture(lanes, space, size).splitlines()) <= 19


def test_a_request_that_is_drawn_says_which_it_is() -> None:
    text = (
        "__global__ void k(float* a, int n) {\n"
        "  if (threadIdx.x + 32 * threadIdx.y < n) a[threadIdx.x * threadIdx.y] = 0; }\n"
        "void f(float* a) { k<<<4, dim3(32, 8)>>>(a, 200); }\n"
    )
    answer = said(text, "a[thread")
    assert re.search(r"Drawn: the lanes of the worst request, by warp \d of block \(\d, 0, 0\), \d+ sectors", answer)
