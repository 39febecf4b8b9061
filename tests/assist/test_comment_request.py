"""Which comments ask for a kernel."""

from __future__ import annotations

import pytest
from warpwright.assist.comment_request import asked_at, requested_kernel
from warpwright.syntax.source import Source


def asked(marked: str) -> str | None:
    """The request at the place of `|` in a text."""
    before, _, after = marked.partition("|")
    return requested_kernel(Source("a.cu", (before + after).encode()), len(before.encode()))


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("// kernel: add two vectors\n|", "add two vectors"),
        ("// CUDA kernel: row sums\n\n|", "row sums"),
        ("// CUDA kernel that adds two vectors\n|\nint x;\n", "adds two vectors"),
        ("// A CUDA kernel to transpose a matrix\n|", "transpose a matrix"),
        ("// a fast kernel that sums\n|", "sums"),
        ("// Write a kernel for softmax\n|", "kernel for softmax"),
        ("// write me a tiled CUDA kernel that multiplies\n|", "tiled CUDA kernel that multiplies"),
        ("int y;\n// kernel: add two\n// vectors of\n// floats\n|", "add two vectors of floats"),
        ("/* kernel: add */\n|", "add"),
        ("/**\n * Kernel: add two\n * vectors\n */\n|", "add two vectors"),
        ("/// kernel: écart type\n    |", "écart type"),
        ("namespace a {\n// kernel: add\n|\n}", "add"),
        ("// kernel: add|", "add"),
        ("// kernel: add |\n\nint x;\n", "add"),
        ("// kernel: add  \n|", "add"),
        ("/* kernel: add */|\n", "add"),
    ],
)
def test_asks(text: str, request_: str) -> None:
    assert asked(text) == request_


@pytest.mark.parametrize(
    "text",
    [
        "|",
        "// kernel: ad|d",
        "// kernel: add|\n// two vectors\n",
        "// kernel: add|\n__global__ void add() {}",
        "int y; // kernel: add|",
        "/* kernel: add|\n",
        "/* kernel: add| */\n",
        "// kernel: add\n\n\n|",
        "// kernel: add\nint x;\n|",
        "// kernel: add\n|int x;",
        "// kernel: add\n|\n__global__ void add() {}",
        "// kernel: add\n|\ntemplate <typename T>\n__global__ void add() {}",
        "// the kernel is slow\n|",
        "// kernel launch follows\n|",
        "// This kernel that was here is gone\n|",
        "// kernel:\n|",
        "void f() {\n  // kernel: add\n  |\n}",
        "struct S {\n  // kernel: add\n  |\n};",
        'const char *s = R"(\n// kernel: add\n|\n)";',
    ],
)
def test_does_not_ask(text: str) -> None:
    assert asked(text) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("// kernel: add |two vectors\nint x;\n", "add two vectors"),
        ("// sums of\n|// rows\nint x;\n", "sums of rows"),
        ("// |sums of\n// rows\n/* else */\n", "sums of rows"),
        ("// transpose\n\n|", "transpose"),
        ("/* scale\n * by |two */", "scale by two"),
        ("// transpose|", "transpose"),
    ],
)
def test_a_command_takes_the_comment_at_the_cursor_as_it_is(text: str, words: str) -> None:
    before, _, after = text.partition("|")
    asked = asked_at(Source("a.cu", (before + after).encode()), len(before.encode()))
    assert asked is not None
    assert asked.words == words
    whole = before + after
    assert whole[: asked.placed].endswith(("\n", whole))


@pytest.mark.parametrize(
    "text",
    [
        "|",
        "int |x;\n",
        "// a\n\n\n|",
        "//|\n",
        "void f() {\n  // add |two\n}\n",
        "// a\nint x; |\n",
        "// a\n|int x;",
    ],
)
def test_elsewhere_there_is_none(text: str) -> None:
    before, _, after = text.partition("|")
    assert asked_at(Source("a.cu", (before + after).encode()), len(before.encode())) is None
