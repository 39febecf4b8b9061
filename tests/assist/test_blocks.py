"""What a model writes about a kernel: taken whole where it is exactly in the form and within the kernel, else not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warpwright.assist.blocks import LONGEST_ANSWER, MOST_BLOCKS, Proposal, read_blocks
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Kernel
from warpwright.syntax.edits import apply_edits
from warpwright.syntax.source import Source

TEXT = """\
#include <cstdio>
__device__ float twice(float x) { return 2 * x; }
template <int N>
__global__ void scale(float *a, const float *b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) printf("%d", i);
#pragma unroll
  for (int k = 0; k < N; ++k) {
    a[k * n + i] = twice(b[i]);
  }
  __syncthreads();
  __syncthreads();
}
void run(float *a, const float *b, int n) {
  scale<4><<<n / 256, 256>>>(a, b, n);
}
"""
SOURCE = Source("/src/a.cu", TEXT.encode())
(KERNEL,) = analyze(SOURCE).defined_kernels
LOOP = "    a[k * n + i] = twice(b[i]);\n"


def answer(*blocks: tuple[str, str], why: str = "It is faster.") -> str:
    return f"@why {why}\n" + "".join(f"@original\n{old}@updated\n{new}@end\n" for old, new in blocks)


def taken(text: str, kernel: Kernel = KERNEL) -> str:
    proposal = read_blocks(text, kernel)
    assert isinstance(proposal, Proposal), proposal
    return apply_edits(kernel.source.data, proposal.edits).decode()


def test_whole_lines_are_replaced_added_and_taken_away() -> None:
    new = "    const float x = twice(b[i]);\n    a[k * n + i] = x;\n"
    head = "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    text = taken(answer((LOOP, new), (head, head + "  __syncwarp();\n")))
    assert text == TEXT.replace(LOOP, new).replace(head, head + "  __syncwarp();\n")
    both = "  __syncthreads();\n  __syncthreads();\n"
    assert taken(answer((both, "  __syncthreads();\n"))) == TEXT.replace(both, "  __syncthreads();\n")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not in the form"),
        ("```cuda\n" + answer((LOOP, "")) + "```\n", "not in the form"),
        (answer((LOOP, "")).replace("@end\n", ""), "not in the form"),
        ("Sure! " + answer((LOOP, "")), "not in the form"),
        (answer((LOOP, ""), why="a" * 300), "not in the form"),
        (answer(("", LOOP)), "not in the form"),
        (answer(*[(LOOP, "")] * (MOST_BLOCKS + 1)), f"more than {MOST_BLOCKS} blocks"),
        (answer((LOOP, "    a[i] = 1;\n" * 70)), "more than 60 lines"),
        (answer((LOOP, "x" * LONGEST_ANSWER)), "longer than"),
        (answer((LOOP, "  // größe\n")), "characters that code has not"),
        (answer((LOOP, "  \x1b[0m\n")), "characters that code has not"),
        (answer((LOOP.lstrip(), "")), "are not in the kernel"),
        (answer(("  scale<4><<<n / 256, 256>>>(a, b, n);\n", "")), "are not in the kernel"),
        (answer(("__device__ float twice(float x) { return 2 * x; }\n", "")), "are not in the kernel"),
        (answer(("  __syncthreads();\n", "")), "are in the kernel 2 times"),
        (answer((" \n", "  x;\n")), "blank"),
        (answer((LOOP, LOOP)), "changes nothing"),
        (answer((LOOP, ""), ("  for (int k = 0; k < N; ++k) {\n" + LOOP, "")), "change the same lines"),
        (answer((LOOP, ("    a[i] = b[i] + 1;" + " " * 170 + "\n") * 30)), "bytes longer"),
        (answer((LOOP, LOOP + "  }\n}\nvoid more() {\n  {\n")), "not one whole function"),
        (answer((LOOP, LOOP + "  {\n")), "not one whole function"),
        (answer((LOOP, LOOP + "#include </etc/passwd>\n")), "directive"),
        (answer((LOOP, '    asm("trap;");\n')), "assembly"),
        (answer((LOOP, "    __trap();\n")), "__trap"),
        (answer((LOOP, "    a[i] = f(b[i]);\n")), "calls f"),
        (answer((LOOP, "    static int x = 1;\n" + LOOP)), "between launches"),
        (answer((LOOP, "    scale<1><<<1, 1>>>(a, 0, n);\n")), "launches a kernel"),
        (answer((LOOP, "    // hidden \\\n" + LOOP)), "go on in the next"),
        (answer((LOOP, "    a[0] = 'x';\n")), "a quote"),
        (answer((LOOP, "    delete a;\n")), "frees memory"),
    ],
)
def test_anything_else_is_refused_whole_with_its_reason(text: str, why: str) -> None:
    refused = read_blocks(text, KERNEL)
    assert isinstance(refused, str)
    assert why in refused


def test_lines_keep_the_ends_that_the_file_has() -> None:
    (kernel,) = analyze(Source("/src/a.cu", TEXT.replace("\n", "\r\n").encode())).defined_kernels
    new = LOOP.replace("twice(b[i])", "2 * b[i]")
    assert taken(answer((LOOP, new)), kernel) == TEXT.replace(LOOP, new).replace("\n", "\r\n")


def test_a_kernel_that_begins_within_a_line_is_changed_there_alone() -> None:
    text = "int before; __global__ void k(float *a) {\n  a[0] = 1;\n} int after;\n"
    (kernel,) = analyze(Source("/src/b.cu", text.encode())).defined_kernels
    assert taken(answer(("  a[0] = 1;\n", "  a[0] = 2;\n")), kernel) == text.replace("= 1", "= 2")
    assert isinstance(read_blocks(answer(("} int after;\n", "}\n")), kernel), str)
    assert isinstance(read_blocks(answer(("int before; __global__ void k(float *a) {\n", "{\n")), kernel), str)


LINES = st.sampled_from([*TEXT.splitlines(keepends=True), "@end\n", "@updated\n", "  {\n", "}\n", "\n", "*/\n", "/*\n"])


@given(st.lists(st.tuples(st.lists(LINES, max_size=3), st.lists(LINES, max_size=4)), min_size=1, max_size=3))
def test_no_answer_reaches_outside_the_kernel(blocks: list[tuple[list[str], list[str]]]) -> None:
    proposal = read_blocks(answer(*(("".join(old), "".join(new)) for old, new in blocks)), KERNEL)
    if isinstance(proposal, str):
        return
    changed = apply_edits(SOURCE.data, proposal.edits)
    start, tail = KERNEL.span.start, SOURCE.data[KERNEL.span.end :]
    assert changed[:start] == SOURCE.data[:start]
    assert changed.endswith(tail)
    again = analyze(Source("/src/a.cu", changed))
    assert [kernel.name for kernel in again.defined_kernels] == ["scale"]
