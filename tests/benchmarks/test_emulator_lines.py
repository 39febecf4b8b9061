"""The comparison of lines with Nsight Compute, and the causes that it names, on a small kernel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from emulator_lines import Cause, Compared, Row, compare, measured_rows
from emulator_page import PAGE, others, page, read
from warpwright.emulator.launch import ArrayArgument, Launch, Run, run
from warpwright.emulator.program import Program, translate
from warpwright.emulator.ptx.parse import parse
from warpwright.facts.model import AccessKind, Space
from warpwright.toolchain.machine_code import MemoryInstruction
from warpwright.toolchain.ncu_tables import instructions, table_rows

HEADER, OWN = "/cuda/include/atomics.hpp", "/home/a.cu"

TEXT = """
.version 9.0
.target sm_90
.address_size 64
.file 1 "/home/a.cu"
.file 2 "/cuda/include/atomics.hpp"
.section .debug_str
{
$L0:
.b8 97
.b8 0
}
.visible .entry k(.param .u64 out)
{
    .reg .b64 %rd<9>;
    .reg .b32 %r<9>;
    .reg .pred %p<2>;
    .shared .align 16 .b8 t[2048];
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, t;
    mad.lo.s32 %r3, %r1, 8, %r2;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    .loc 1 5 1
    st.shared.v2.u32 [%r3], {%r1, %r1};
    .loc 1 6 1
    setp.lt.u32 %p1, %r1, 20;
    @%p1 st.shared.v2.u32 [%r3], {%r1, %r1};
    .loc 1 7 1
    ld.shared.u32 %r4, [%r3];
    .loc 1 8 1
    .loc 2 40 1, function_name $L0, inlined_at 1 8 1
    red.global.add.u32 [%rd3], %r4;
    .loc 1 9 1
    atom.global.cas.b32 %r5, [%rd3], %r4, %r1;
    .loc 1 10 1
    ret;
}
"""

CSV = """"File Path","/cuda/include/atomics.hpp"
"Function Name","k(int *)"
"Line No","Source","Address","Source","Instructions Executed","Predicated-On Thread Instructions Executed",\
"Address Space","Access Operation","Access Size","L2 Theoretical Sectors Global","L1 Wavefronts Shared"
"40","return __iAtomicAdd(p, v);","-","-","1","32","-","-","-","4","0"
"","","0x10","REDG.E.ADD [R2.64], R4","1","32","Global","-","32","4","0"
"File Path","/home/a.cu"
"Function Name","k(int *)"
"Line No","Source","Address","Source","Instructions Executed","Predicated-On Thread Instructions Executed",\
"Address Space","Access Operation","Access Size","L2 Theoretical Sectors Global","L1 Wavefronts Shared"
"5","t[i] = v;","-","-","1","32","-","-","-","0","2"
"","","0x20","STS.64 [R2], R4","1","32","Shared","Store","64","0","2"
"8","atomicAdd(p, v);","-","-","1","32","-","-","-","4","0"
"","","0x10","REDG.E.ADD [R2.64], R4","1","32","Global","-","32","4","0"
"""

TRUE: list[Row] = [
    ("a.cu", 5, "shared", "store", 2),
    ("a.cu", 6, "shared", "store", 2),
    ("a.cu", 7, "shared", "load", 2),
    ("a.cu", 8, "global", "atomic", 4),
    ("a.cu", 9, "global", "atomic", 4),
    ("atomics.hpp", 40, "global", "atomic", 4),
]
"""What a GPU would count of one warp: a request of 8 bytes takes two wavefronts, 32 neighbouring words four sectors."""


def made(line: int, width: int, kind: AccessKind = AccessKind.STORE) -> MemoryInstruction:
    return MemoryInstruction(OWN, line, "", Space.SHARED, kind, width, 0)


CODE = [made(5, 8), made(6, 8), made(7, 4, AccessKind.LOAD)]


@pytest.fixture(scope="module")
def ran() -> tuple[Program, Run]:
    program = translate(parse(TEXT), "k")
    return program, run(program, Launch((1, 1, 1), (32, 1, 1)), [ArrayArgument("out", np.zeros(32, np.uint32))])


def differing(ran: tuple[Program, Run], code: Sequence[MemoryInstruction], measured: Sequence[Row]) -> list[Compared]:
    return [line for line in compare(*ran, code, measured) if line.cause is not None]


def changed(line: int, total: int | None) -> list[Row]:
    """TRUE with another total for the accesses of a line, or without them."""
    kept = [row for row in TRUE if row[1] != line]
    return kept if total is None else [*kept, *((*row[:4], total) for row in TRUE if row[1] == line)]


def test_an_instruction_counts_at_every_line_that_the_table_has_it_under(tmp_path: Path) -> None:
    table = tmp_path / "source.csv"
    table.write_text(CSV)
    assert measured_rows(instructions(table_rows(table))) == [TRUE[0], TRUE[3], TRUE[5]]


def test_equal_totals_are_equal_lines(ran: tuple[Program, Run]) -> None:
    lines = compare(*ran, CODE, TRUE)
    assert [(c.file, c.line, c.space, c.emulated) for c in lines] == [(*row[:3], row[4]) for row in TRUE]
    assert all(line.cause is None for line in lines)


def test_a_line_whose_instructions_the_table_has_in_a_header_alone_is_compared_there(ran: tuple[Program, Run]) -> None:
    assert differing(ran, CODE, changed(8, None)) == []
    missing_header = differing(ran, CODE, changed(40, None))
    assert [(line.file, line.line, line.emulated, line.measured) for line in missing_header] == [
        ("atomics.hpp", 40, 4, 0)
    ]


@pytest.mark.parametrize(
    ("line", "total", "code", "cause"),
    [
        (9, 8, CODE, Cause.ORDER),
        (5, 4, [made(5, 16), *CODE[1:]], Cause.MERGED),
        (5, 4, [made(5, 4), made(5, 4), *CODE[1:]], Cause.SPLIT),
        (6, 1, CODE, Cause.PARTIAL),
        (7, None, CODE[:2], Cause.REMOVED),
        (7, 4, [*CODE, made(7, 4), made(7, 4)], Cause.COPIED),
        (7, 4, CODE, Cause.UNKNOWN),
        (5, 4, CODE, Cause.UNKNOWN),
    ],
)
def test_causes(
    ran: tuple[Program, Run], line: int, total: int | None, code: list[MemoryInstruction], cause: Cause
) -> None:
    assert [(each.line, each.cause) for each in differing(ran, code, changed(line, total))] == [(line, cause)]


def test_an_access_at_a_line_where_ptx_has_none_is_the_line_table_s(ran: tuple[Program, Run]) -> None:
    code = [made(5, 8), made(6, 8), made(12, 4, AccessKind.LOAD)]
    found = differing(ran, code, [*changed(7, None), ("a.cu", 12, "shared", "load", 2)])
    assert [(line.line, line.emulated, line.measured, line.cause) for line in found] == [
        (7, 2, 0, Cause.TABLE), (12, 0, 2, Cause.TABLE),
    ]  # fmt: skip


def test_the_page_has_a_row_for_each_line_that_differs_and_each_kernel(ran: tuple[Program, Run]) -> None:
    one = {
        "kernel": "kernels/k", "shape": {"n": 5}, "faults": [], "different": 3, "max_ulp": 2, "max_of_largest": 1e-8,
        "approximate": [], "float_atomics": True, "matrix": False, "lines": 6, "lines_equal": 5,
        "lines_that_differ": [
            {"file": "a.cu", "line": 9, "space": "global", "emulated": 4, "measured": 8, "cause": "order of threads"}
        ],
    }  # fmt: skip
    result = {
        "command": "x", "hardware": "H200", "versions": {"warpwright": "1", "numpy": "2", "python": "3"}, "kernels": 1,
        "bit_equal": 0, "lines": 6, "lines_equal": 5, "results": [one],
    }  # fmt: skip
    text = page(result, {})
    assert "| `kernels/k` | a.cu:9 | global | 4 | 8 | order of threads |" in text
    assert "| `kernels/k` | 3 | 2 | 1.0e-08 | float atomics |" in text
    assert "| `kernels/k` | n=5 | 3 differ, at most 2 ulp | 5 of 6 |" in text
    assert "5 (83.3%)" in text


def test_the_committed_page_is_that_of_the_committed_results() -> None:
    result = read("emulator_gpu")
    assert PAGE.read_text(encoding="utf-8") == page(result, others())
    assert result["lines_equal"] >= 0.9 * result["lines"]
    assert not [k["kernel"] for k in result["results"] for line in k["lines_that_differ"] if line["cause"] == "unknown"]
