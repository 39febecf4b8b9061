"""What speaks against moving a kernel's statements, where no rewrite's fixture can show it."""

from __future__ import annotations

from support.findings import program
from warpwright.rewrites._launched import block_of_all_launches
from warpwright.rewrites._movable import unmovable

LAUNCHED = "__global__ void k(int *a) { a[threadIdx.x] = 1; }\nvoid run(int *a) { k<<<4, 64>>>(a); }\n"


def test_a_header_may_be_launched_from_anywhere() -> None:
    assert block_of_all_launches(program(LAUNCHED).kernels[0]) == (64, 1, 1)
    assert block_of_all_launches(program(LAUNCHED, "kernels.cuh").kernels[0]) == (
        "k stands in a header, so not all of its launches are found."
    )


def test_what_is_not_whole_is_not_moved() -> None:
    assert unmovable(program("void run(int *a) { k<<<4, 64>>>(a); }").kernels[0]) == "k is defined elsewhere."
    broken = program("__global__ void k(int *a) { a[threadIdx.x] = ; }").kernels[0]
    assert unmovable(broken) == "k has a syntax error."


def test_jumps_and_labels_keep_statements_in_place() -> None:
    kernel = program("__global__ void k(int *a) {\n  goto end;\n  a[0] = 1;\nend:\n  return;\n}").kernels[0]
    assert unmovable(kernel) == "k has a goto at line 2."
