"""What is said of host code that a candidate changes, and of what nothing is said."""

from __future__ import annotations

import pytest
from warpwright.facts.analyze import analyze
from warpwright.syntax.source import Source
from warpwright.verify.host_code import host_differences
from warpwright.verify.report import EMULATOR, SAME_CODE, What
from warpwright.verify.verify import verify

pytestmark = pytest.mark.sampled(2)

TEXT = """#include <cstdio>
#define BLOCK 256
#define N 1000
__global__ void first(float* a, int n) { int i = threadIdx.x; if (i < n) a[i] = 1.0f; }
__global__ void second(float* a, int n) { int i = threadIdx.x; if (i < n) a[i] += 1.0f; }
int main() {
    float* d;  // on the device
    int n = N;
    cudaMalloc(&d, n * sizeof(float));
    cudaMemset(d, 0, n * sizeof(float));
    dim3 block(BLOCK);
    int blocks = (n + BLOCK - 1) / BLOCK;
    if (blocks > 1024) { blocks = 1024; }
    first<<<blocks, block>>>(d, n);
    second<<<blocks, block>>>(d, n);
    second<<<blocks, block>>>(d, n);
    float h[N];
    cudaMemcpy(h, d, n * sizeof(float), cudaMemcpyDeviceToHost);
    for (int i = 0; i < n; ++i) if (h[i] != 3.0f) printf("%d", i);
    return 0;
}
"""
FIRST, SECOND = "    first<<<blocks, block>>>(d, n);\n", "    second<<<blocks, block>>>(d, n);\n"
CLEARED = "    cudaMemset(d, 0, n * sizeof(float));\n"
CHECKED = '    if (cudaError_t error = cudaGetLastError()) { fprintf(stderr, "first"); return 1; }\n'


def told(*edits: tuple[str, str]) -> str:
    text = TEXT
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    found = host_differences(analyze(Source("a.cu", TEXT.encode())), analyze(Source("b.cu", text.encode())))
    return "; ".join(f"{each.text} ({each.file}:{each.line})" for each in found)


@pytest.mark.parametrize(
    "edits",
    [
        [("n * sizeof(float)", "n*sizeof(float) /* bytes */")],
        [("BLOCK 256", "BLOCK 128")],
        [("dim3 block(BLOCK);", "dim3 block; block.x = 64; block.y = 2;")],
        [("int blocks = (n + BLOCK - 1) / BLOCK", "int half = n / 2, blocks = half / BLOCK + 1")],
        [("    if (blocks > 1024) { blocks = 1024; }\n", "")],
        [(FIRST, "    first<<<2 * blocks, block.x / 2, 16>>>(d, n);\n")],
        [(SECOND, "    second<<<9, 64>>>(d, n);\n"), (SECOND, "    second<<<9, 64>>>(d, n);\n")],
        [(FIRST, FIRST + CHECKED)],
        [(FIRST, "    cudaFuncSetAttribute(first, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536);\n" + FIRST)],
        [('printf("%d", i)', 'printf("wrong at %d", i)')],
        [("a[i] = 1.0f", "a[i] = 2.0f")],
    ],
    ids=[
        "spacing", "a-macro-for-the-block", "the-block", "the-grid", "a-limit-of-the-grid", "the-launch-itself",
        "both-launches", "the-error-is-read", "shared-memory-is-asked-for", "what-is-printed", "the-kernel",
    ],
)  # fmt: skip
def test_nothing_is_said_of_what_is_read_or_shows_nowhere(edits: list[tuple[str, str]]) -> None:
    assert told(*edits) == ""


@pytest.mark.parametrize(
    ("edits", "words"),
    [
        ([(CLEARED, "")], "`cudaMemset(d, 0, n * sizeof(float))` is gone (a.cu:10)"),
        (
            [("cudaMemset(d, 0,", "cudaMemset(d, 1,")],
            "`cudaMemset(d, 1, n * sizeof(float))` was `cudaMemset(d, 0, n * sizeof(float))` (b.cu:10)",
        ),
        ([("DeviceToHost", "DeviceToDevice")], "cudaMemcpyDeviceToDevice)` was `cudaMemcpy(h, d,"),
        (
            [(FIRST, "    first<<<blocks, block>>>(d, n / 2);\n")],
            "first is passed `(d, n / 2)`, and `(d, n)` by the original (b.cu:14)",
        ),
        ([(FIRST + SECOND, SECOND + FIRST)], "`second<<<blocks, block>>>(d, n)` stands elsewhere (b.cu:14)"),
        ([(SECOND, SECOND + SECOND)], "`second<<<blocks, block>>>(d, n)` is new"),
        ([("N 1000", "N 999")], "`#define N 999` was `#define N 1000` (b.cu:3)"),
        ([("first<<<blocks, block>>>", "first<<<blocks, block, 0, one>>>")], "was `first<<<blocks, block>>>(d, n)`"),
        (
            [(SECOND + "    float", "    second<<<blocks / 2, block>>>(d, n);\n    float")],
            "`second<<<blocks / 2, block>>>(d, n)` was `second<<<blocks, block>>>(d, n)` (b.cu:16)",
        ),
        ([(FIRST, "    for (int k = 0; k < 2; ++k)\n    " + FIRST)], "`for (int k = 0; k < 2; ++k)` is new (b.cu:14)"),
        (
            [(CLEARED, ""), ("N 1000", "N 999"), ("i < n; ++i", "i < 1; ++i"), ("return 0", "return 1")],
            "`return 1` was `return 0`",
        ),
    ],
    ids=[
        "memset-gone", "memset-changed", "memcpy-changed", "arguments", "order", "one-more", "a-size", "a-stream",
        "another-shape-further-down", "a-loop-around-it", "many",
    ],
)  # fmt: skip
def test_what_is_not_read_is_said(edits: list[tuple[str, str]], words: str) -> None:
    assert words in told(*edits)


@pytest.mark.nvcc
def test_the_report_says_it() -> None:
    original, candidate = (Source("/nowhere/a.cu", text.encode()) for text in (TEXT, TEXT.replace(CLEARED, "")))
    report = verify(original, candidate, kernel="first", backend="emulator", goal="fix", again=True)
    (unread,) = report.uncovered
    assert (unread.what, unread.line) == (What.HOST_CODE, 10)
    assert "`cudaMemset(d, 0, n * sizeof(float))` is gone" in unread.text


CHECK = (
    "#define CHECK(call) do { cudaError_t e = (call); "
    'if (e != cudaSuccess) { fprintf(stderr, "%s\\n", cudaGetErrorString(e)); exit(1); } } while (0)\n'
)
DROPS = "#define CHECK(call) do { cudaError_t e = cudaSuccess; (void)e; } while (0)\n"
NEVER = "#define CHECK(call) do { if (0) call; if (cudaGetLastError() != cudaSuccess) exit(1); } while (0)\n"
LAST = "#define CHECK(call) do { call; if (cudaGetLastError() != cudaSuccess) exit(1); } while (0)\n"
CLEARS = "#define CLEAR(p, n) cudaMemset(p, 0, n)\n"
HEAD = "#include <cstdio>\n"
CHECKED_CLEAR = "    CHECK(cudaMemset(d, 0, n * sizeof(float)));\n"


def between(before: list[tuple[str, str]], after: list[tuple[str, str]]) -> str:
    texts = []
    for edits in (before, after):
        text = TEXT
        for old, new in edits:
            assert old in text
            text = text.replace(old, new, 1)
        texts.append(text)
    found = host_differences(*(analyze(Source(f"{n}.cu", text.encode())) for n, text in zip("ab", texts, strict=True)))
    return "; ".join(each.text for each in found)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ([], [(HEAD, HEAD + CHECK), (CLEARED, CHECKED_CLEAR)], ""),
        ([(HEAD, HEAD + CHECK), (CLEARED, CHECKED_CLEAR)], [], ""),
        ([], [(HEAD, HEAD + LAST), (CLEARED, CHECKED_CLEAR)], ""),
        ([], [(HEAD, HEAD + NEVER), (CLEARED, CHECKED_CLEAR)], "was `cudaMemset(d, 0, n * sizeof(float))`"),
        ([], [(HEAD, HEAD + DROPS), (CLEARED, CHECKED_CLEAR)], "was `cudaMemset(d, 0, n * sizeof(float))`"),
        ([(HEAD, HEAD + LAST), (CLEARED, CHECKED_CLEAR)], [(HEAD, HEAD + LAST), (CLEARED, "")], "is gone"),
        (
            [(HEAD, HEAD + CLEARS), (CLEARED, "    CLEAR(d, n * sizeof(float));\n")],
            [(HEAD, HEAD + CLEARS.replace(", 0,", ", 1,")), (CLEARED, "    CLEAR(d, n * sizeof(float));\n")],
            "`#define CLEAR(p, n) cudaMemset(p, 1, n)` was `#define CLEAR(p, n) cudaMemset(p, 0, n)`",
        ),
        (
            [(CLEARED, "    if (cudaMemset(d, 0, 4 * n) != cudaSuccess || cudaGetLastError()) return 1;\n")],
            [(CLEARED, "    if (cudaGetLastError()) return 1;\n")],
            "cudaMemset(d, 0, 4 * n)",
        ),
        (
            [(HEAD, HEAD + "typedef float Real;\n"), ("n * sizeof(float)", "n * sizeof(Real)")],
            [(HEAD, HEAD + "typedef char Real;\n"), ("n * sizeof(float)", "n * sizeof(Real)")],
            "`typedef char Real` was `typedef float Real`",
        ),
    ],
    ids=[
        "a-check-around-it", "a-check-gone", "a-check-of-the-last-error", "a-check-that-never-calls",
        "a-check-that-drops-the-call", "a-checked-call-gone", "a-macro", "a-call-where-errors-are-looked-at", "a-type",
    ],
)  # fmt: skip
def test_checks_of_errors_are_seen_through(
    before: list[tuple[str, str]], after: list[tuple[str, str]], words: str
) -> None:
    told_of = between(before, after)
    assert (words in told_of) if words else told_of == ""


LAUNCHED = """\
__global__ void first(float *d, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) d[i] = 2;
}
void run(float *d, int n) {
    first<<<(n + 255) / 256, 256>>>(d, n);
}
"""
MACRO = (
    "#define CHECK_LAUNCH() \\\n  do { \\\n    cudaError_t e = cudaGetLastError(); \\\n"
    "    if (e != cudaSuccess) { \\\n      abort(); \\\n    } \\\n  } while (0)\n"
)
ASKED = "(d, n);\n    if (cudaError_t error = cudaGetLastError()) abort();\n"


@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("edits", "backend"),
    [
        ([("(d, n);\n", ASKED)], SAME_CODE),
        ([("__global__", MACRO + "__global__"), ("(d, n);\n", "(d, n);\n    CHECK_LAUNCH();\n")], SAME_CODE),
        ([("__global__", MACRO.replace("abort", "clear") + "__global__"), ("(d, n);\n", "(d, n);\n")], EMULATOR),
        ([("(d, n);\n", ASKED), ("n + 255", "n + 511")], EMULATOR),
        ([("(d, n);\n", ASKED), ("256>>>", "128>>>")], EMULATOR),
        ([("(d, n);\n", ASKED), ("= 2", "= 3 - 1.0f")], SAME_CODE),
        ([("(d, n);\n", ASKED), ("= 2", "= 3")], EMULATOR),
    ],
    ids=[
        "a-check",
        "a-new-macro",
        "a-macro-that-does-more",
        "another-grid",
        "another-block",
        "the-same-in-other-words",
        "another-value",
    ],
)
def test_a_check_alone_is_not_run(edits: list[tuple[str, str]], backend: str) -> None:
    text = "#include <cstdlib>\n" + LAUNCHED
    changed = text
    for old, new in edits:
        changed = changed.replace(old, new)
    original, candidate = (Source("/nowhere/a.cu", each.encode()) for each in (text, changed))
    report = verify(original, candidate, kernel="first", backend="emulator", goal="fix", again=True)
    assert report.backend == backend, report.reason
