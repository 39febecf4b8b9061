"""Who may launch a kernel: files that are not read, or the text alone."""

from __future__ import annotations

import pytest
from warpwright.facts.analyze import analyze
from warpwright.syntax.source import Source

BODY = "__global__ void k(int *a) { a[0] = 1; }"


def elsewhere(text: str, path: str = "a.cu") -> str:
    kernel = analyze(Source(path, text.encode())).kernel("k")
    assert kernel is not None
    return kernel.launched_elsewhere


@pytest.mark.parametrize(
    "text",
    [
        f"static {BODY}",
        BODY.replace("void", "static void"),
        f"static __global__ void k(int *);\n{BODY}",
        f"namespace {{ {BODY} }}",
        f"namespace {{ namespace inner {{ {BODY} }} }}",
        f'extern "C" {{ static {BODY} }}',
        f"template <typename T> {BODY}",
        f"template <typename T> {BODY}\ntemplate __global__ void other<float>(int *);",
        f"{BODY}\nint main() {{ }}",
        f"{BODY}\nint main(int argc, char **argv) {{ return 0; }}",
    ],
)
def test_no_other_file_can(text: str) -> None:
    assert elsewhere(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        BODY,
        f"// static, main\n{BODY}",
        f'extern "C" {BODY}',
        f"namespace own {{ {BODY} }}",
        f"template <typename T> {BODY}\ntemplate __global__ void k<float>(int *);",
        f"{BODY}\nstatic void run(int *a) {{ k<<<1, 1>>>(a); }}",
        f"{BODY}\n#if 0\nint main() {{ }}\n#endif",
        f"{BODY}\nvoid domain() {{ }}",
    ],
)
def test_another_file_may(text: str) -> None:
    assert elsewhere(text) == "k has external linkage, and the file no `main`"


@pytest.mark.parametrize("path", ["a.cuh", "a.h", "a.hpp"])
def test_whoever_includes_a_header_may(path: str) -> None:
    assert elsewhere(f"static {BODY}", path) == "k stands in a header, which other files may include"
