"""Edits over a text that was edited meanwhile: moved to where they belong, or dropped; never into the wrong text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warpwright.editor.rebase import line_edits, rebased
from warpwright.syntax.edits import TextEdit, apply_edits

# The file as pieces: those in capitals are nothing to the kernel `scale`.
PIECES = {
    "macro": "#define TILE 32\n",
    "COMMENT": "// größe\n",
    "helper": "__device__ float twice(float x) { return TILE * x; }\n",
    "UNREACHED": "__device__ float thrice(float x) { return 3.0f * x; }\n",
    "OTHER": "__global__ void other(float *b) { b[threadIdx.x] = thrice(b[0]); }\n",
    "kernel": "__global__ void scale(float *a, int n) {\n  int i = blockIdx.x * TILE + threadIdx.x;\n",
    "CODE COMMENT": "  // one element each\n",
    "body": "  if (i < n)\n    a[i] = twice(a[i]) / 4.0;\n}\n",
    "STRAY": "static int unrelated(int x) { return x + 1; }\n",
    "host": "void run(float *a, int n) { scale<<<n / TILE, TILE>>>(a, n); }\n",
    "caller": "void both(float *a, float *b) {\n  run(a, 4096);\n  other<<<1, 32>>>(b);\n}\n",
}
TEXT = "".join(PIECES.values())
FOUND = {"macro": "/ 4.0;", "new": "* 0.25f;"}
MINE = {
    "COMMENT": ["", "// other\n// words 😀\n"],
    "UNREACHED": ["", "__device__ float thrice(float x) { return x + x + x; }\n"],
    "OTHER": ["__global__ void other(float *b) { b[threadIdx.x] = 0; }\n", "__global__ void other(float *b) { b[\n"],
    "CODE COMMENT": ["", "  // two\n\n"],
    "STRAY": ["", "static int unrelated(int x) {\n  return x;\n}\n",
              "static int unrelated(int x) { return x; }\nint g() { return 1; }\n"],
    "stray": [
        "static int unrelated(int x) {\n#define TILE 16\n  return x; }\n",
        "__device__ double operator/(Own a, double b) { return 1; }\n",
        "template <> __device__ float twice<int>(int x) { return 1; }\n",
    ],
    "macro": ["#define TILE 16\n", "#define TILE 32\n#define float double\n", ""],
    "helper": ["__device__ float twice(float x) { return TILE + x; }\n"],
    "kernel": ["__global__ void scale(float *a, int n) {\n  int i = threadIdx.x;\n",
               "#if 0\n__global__ void scale(float *a) {\n"],
    "body": ["  if (i <= n)\n    a[i] = twice(a[i]) / 4.0;\n}\n", "  if (i < n)\n    a[i] = twice(a[i]) / 8.0;\n}\n"],
    "host": ["void run(float *a, int n) { scale<<<n / TILE, 2 * TILE>>>(a, n); }\n"],
    "caller": ["void both(float *a, float *b) {\n  run(a, 1000);\n}\n"],
}  # fmt: skip


def texts(pieces: dict[str, str]) -> dict[str, bytes]:
    return {"a.cu": "".join(pieces.values()).encode()}


def found_edits() -> dict[str, list[TextEdit]]:
    """What a search found: two edits, of the kernel's body and of its launch."""
    data = TEXT.encode()
    division, launch = data.index(b"/ 4.0"), data.index(b"n / TILE, TILE")
    return {
        "a.cu": [
            TextEdit(division, division + len(b"/ 4.0"), "* 0.25f"),
            TextEdit(launch, launch + len(b"n / TILE"), "(n + TILE - 1) / TILE"),
        ]
    }


def with_found(text: str) -> bytes:
    return text.replace("/ 4.0", "* 0.25f").replace("<<<n / TILE,", "<<<(n + TILE - 1) / TILE,").encode()


@given(st.dictionaries(st.sampled_from([*MINE]), st.integers(0, 2), max_size=4))
def test_edits_elsewhere_move_it_and_edits_of_what_matters_drop_it(chosen: dict[str, int]) -> None:
    mine = {name: MINE[name][which % len(MINE[name])] for name, which in chosen.items()}
    now = {**PIECES, **mine}
    if "stray" in now:
        now["STRAY"] = now.pop("stray")
    result = rebased("scale", {"a.cu": TEXT.encode()}, texts(now), found_edits())
    if any(name.islower() for name in mine):
        assert isinstance(result, str), "what the kernel depends on is another"
        assert result.endswith(": run it again.")
        assert "\n" not in result
    elif isinstance(result, str):
        assert mine.get("OTHER", "").endswith("b[\n"), f"dropped for nothing: {result}"
    else:
        assert apply_edits(texts(now)["a.cu"], result["a.cu"]) == with_found("".join(now.values()))


@given(st.integers(0, len(TEXT)), st.integers(0, 12), st.text(alphabet=' \n/*{}();"ax#1é', max_size=6))
def test_a_random_edit_is_kept_and_never_ends_up_in_a_text_that_nobody_verified(at: int, length: int, new: str) -> None:
    now = (TEXT[:at] + new + TEXT[at + length :]).encode()
    result = rebased("scale", {"a.cu": TEXT.encode()}, {"a.cu": now}, found_edits())
    if isinstance(result, str):
        return
    merged = apply_edits(now, result["a.cu"]).decode()
    assert merged.count("* 0.25f") == 1
    assert merged.count("(n + TILE - 1) / TILE") == 1
    taken_back = merged.replace("* 0.25f", "/ 4.0").replace("(n + TILE - 1) / TILE", "n / TILE")
    assert taken_back.encode() == now, "the user's text is as it was but for what was found"
    body = PIECES["kernel"] + PIECES["CODE COMMENT"] + PIECES["body"]
    words = [line.split() for line in body.splitlines() if "//" not in line]
    lines = [line.split() for line in now.decode().splitlines()]
    assert all(line in lines for line in words), "the kernel's own lines stand there still"


@given(st.text(alphabet="ab\n\ré", max_size=40), st.text(alphabet="ab\n\ré", max_size=40))
def test_line_edits_turn_one_text_into_the_other(old: str, new: str) -> None:
    assert apply_edits(old.encode(), line_edits(old.encode(), new.encode())) == new.encode()


@pytest.mark.parametrize("touched", ["/ 4.0", "a[i]) / 4.0;", "4.0;\n}"])
def test_an_edit_of_the_very_place_is_told_so(touched: str) -> None:
    now = TEXT.replace(touched, touched.replace("4.0", "5.0"))
    result = rebased("scale", {"a.cu": TEXT.encode()}, {"a.cu": now.encode()}, found_edits())
    assert result == "Your edits to a.cu lie where it would have been changed: run it again."


def test_a_directive_comment_is_no_mere_comment() -> None:
    now = TEXT.replace("// größe", "// warpwright: size n = 100")
    assert isinstance(rebased("scale", {"a.cu": TEXT.encode()}, {"a.cu": now.encode()}, found_edits()), str)


def test_a_kernel_that_a_fused_one_replaces_matters() -> None:
    """The new text holds a copy of the other kernel's body, which no longer is that kernel's."""
    data = TEXT.encode()
    at = data.index(b"other<<<1, 32>>>(b)")
    fused = {"a.cu": [TextEdit(at, at + len(b"other<<<1, 32>>>(b)"), "fused<<<1, 32>>>(b)")]}
    now = {"a.cu": data.replace(b"thrice(b[0])", b"b[1]")}
    assert isinstance(rebased("scale", {"a.cu": data}, now, fused), str)
    assert not isinstance(rebased("scale", {"a.cu": data}, {"a.cu": data + b"// end\n"}, fused), str)


def test_what_an_operator_calls_matters_though_nobody_names_the_operator() -> None:
    data = b"__device__ float add(Own a) { return a.x; }\n__device__ float operator+(Own a, Own b) { return add(a); }\n"
    before = {"a.cu": data + TEXT.encode()}
    edits = {"a.cu": [TextEdit(e.start + len(data), e.end + len(data), e.new_text) for e in found_edits()["a.cu"]]}
    now = {"a.cu": before["a.cu"].replace(b"return a.x", b"return a.y")}
    assert (
        rebased("scale", before, now, edits) == "scale, or code that it depends on, was edited meanwhile: run it again."
    )


def test_another_file_that_the_kernel_was_read_from_counts() -> None:
    before = {
        "a.cu": b'#include "t.cuh"\n' + TEXT.encode(),
        "t.cuh": b"#define N 4\n__device__ int f() { return N; }\n",
    }
    edits = {"a.cu": [TextEdit(e.start + 17, e.end + 17, e.new_text) for e in found_edits()["a.cu"]]}
    assert rebased("scale", before, before, edits) == {"a.cu": tuple(edits["a.cu"])}
    harmless = {**before, "t.cuh": before["t.cuh"].replace(b"return N", b"return N + 1")}
    assert rebased("scale", before, harmless, edits) == {"a.cu": tuple(edits["a.cu"])}
    assert isinstance(rebased("scale", before, {**before, "t.cuh": b"#define N 8\n"}, edits), str)
    assert rebased("scale", before, {"a.cu": before["a.cu"]}, edits) == "t.cuh is no longer there: run it again."
