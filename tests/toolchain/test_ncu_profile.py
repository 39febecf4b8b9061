"""Nsight Compute's tables become profiles: each instruction once, at its line, of this very text and of no other."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.ncu import Instruction, joined, line_of, source_page
from warpwright.facts.model import AccessKind, Basis, Space
from warpwright.facts.profile import InstructionSet, Profile, Traffic
from warpwright.toolchain.ncu_profile import profiles_of
from warpwright.toolchain.ncu_tables import LaunchRow, NcuError, launch_rows

TEXT = """\
__device__ float twice(float v, const float* p) {
    return v * p[threadIdx.x * 8];
}
template <int N> __global__ void scale(float* a, int n) {
    __shared__ float tile[N];
    int i = blockIdx.x * N + threadIdx.x;
    if (i >= n) return;
    tile[threadIdx.x] = a[i];
    __syncthreads();
    a[i] = twice(tile[threadIdx.x], a);
}
"""
FUNCTION = "void scale<(int)64>(float *, int)"
PATH = "/build/src/a.cu"
KERNEL = line_of(TEXT, "tile[threadIdx.x] =")
CALL = line_of(TEXT, "twice(tile")
GUARD = line_of(TEXT, "if (i >= n)")
CALLEE = line_of(TEXT, "return v")

load = ("0x7f0020", "      LDG.E R2, desc[UR4][R2.64]",
        {"inst": 64, "on": 2000, "space": "Global", "op": "Load", "bits": 32, "sec": 250, "ideal": 250})  # fmt: skip
strided = ("0x7f0030", "      LDG.E R6, desc[UR4][R2.64]",
         {"inst": 64, "on": 2048, "space": "Global", "op": "Load", "bits": 32, "sec": 2048, "ideal": 256})  # fmt: skip
store = ("0x7f0040", "@!P0  STG.E desc[UR4][R2.64], R4",
         {"inst": 64, "on": 1000, "space": "Global", "op": "Store", "bits": 32, "sec": 128, "ideal": 126})  # fmt: skip
put = ("0x7f0050", "      STS [R5], R2",
       {"inst": 64, "on": 2000, "space": "Shared", "op": "Store", "bits": 32, "wf": 128, "wfi": 64})  # fmt: skip
branch = ("0x7f0060", "@P0   BRA 0x7f0100", {"inst": 64, "on": 48, "div": 2})
leave = ("0x7f0070", "      EXIT", {"inst": 64, "on": 2048})
never = ("0x7f0080", "      LDG.E R9, desc[UR4][R2.64]", {"inst": 0, "space": "", "op": "", "bits": ""})


def table(tmp_path: Path, *pages: str) -> Path:
    path = tmp_path / "report.csv"
    path.write_text(joined(pages), encoding="utf-8")
    return path


def page(lines: dict[int, list[Instruction]], **how: bool) -> str:
    return source_page(PATH, TEXT, lines, FUNCTION, **how)


def profile(path: Path, launches: tuple[LaunchRow, ...] = ()) -> Profile:
    (found,) = profiles_of(path, {"src/a.cu": TEXT.encode()}, ["scale"], launches, "report.csv")
    return found


def test_counts_stand_at_their_lines(tmp_path: Path) -> None:
    found = profile(table(tmp_path, page({GUARD: [branch, leave], KERNEL: [load, load, put], CALL: [store, never]})))
    assert (found.kernel, found.basis, found.function) == ("scale", Basis.MEASURED, FUNCTION)
    assert [line.line for line in found.lines] == [GUARD, KERNEL, CALL]
    guard, middle, call = found.lines
    assert (guard.instructions, guard.branches, guard.divergent_branches) == (128, 64, 2)
    assert (middle.instruction_set, middle.instructions) == (InstructionSet.SASS, 128)
    assert middle.traffic == (
        Traffic(Space.GLOBAL, AccessKind.LOAD, 4, 64, 2000, sectors=250, ideal_sectors=250),
        Traffic(Space.SHARED, AccessKind.STORE, 4, 64, 2000, wavefronts=128, ideal_wavefronts=64),
    )
    assert (call.requests, call.sectors, call.traffic[0].active_lanes) == (64, 128, 1000 / 64)


def test_an_inlined_instruction_stands_at_the_callee(tmp_path: Path) -> None:
    header = source_page("/usr/local/cuda/include/a.cu", "x\n", {1: [strided]}, FUNCTION)
    found = profile(table(tmp_path, page({CALLEE: [strided], CALL: [strided, store]}), header))
    assert [(line.line, line.instructions) for line in found.lines] == [(CALLEE, 64), (CALL, 64)]
    assert found.notes == ()


def test_what_stands_in_no_file_of_the_program_is_said(tmp_path: Path) -> None:
    header = source_page("/usr/local/cuda/include/f.hpp", "x\n", {1: [strided, leave, put]}, FUNCTION)
    found = profile(table(tmp_path, page({CALL: [store]}), header))
    assert [line.instructions for line in found.lines] == [64]
    assert found.notes == ("75 % of the instructions stand at no line of these files.",)


@pytest.mark.parametrize(
    ("sass", "cells", "expected"),
    [
        ("LDL.64 R4, [R1+0x8]", {"space": "Local", "op": "Load", "bits": 64, "loc": 16},
         [Traffic(Space.LOCAL, AccessKind.LOAD, 8, 2, 64, sectors=16)]),
        ("REDG.E.ADD.STRONG.GPU desc[UR4][R2.64], R5", {"space": "Global", "op": "-", "bits": 32, "sec": 8, "ideal": 8},
         [Traffic(Space.GLOBAL, AccessKind.ATOMIC, 4, 2, 64, sectors=8, ideal_sectors=8)]),
        ("ATOMS.CAST.SPIN R9, [R2], R8, R9", {"space": "Shared", "op": "Atomic", "bits": 32, "wf": 4, "wfi": 4},
         [Traffic(Space.SHARED, AccessKind.ATOMIC, 4, 2, 64, wavefronts=4, ideal_wavefronts=4)]),
        ("LD.E R20, desc[UR8][R20.64]", {"space": "Shared", "op": "Load", "bits": 32, "wf": 2, "wfi": 2},
         [Traffic(Space.SHARED, AccessKind.LOAD, 4, 2, 64, wavefronts=2, ideal_wavefronts=2)]),
        ("LDGSTS.E.128 [R3], desc[UR4][R2.64]",
         {"space": "Global", "op": "Load", "bits": 128, "sec": 32, "ideal": 32, "wf": 16, "wfi": 8},
         [Traffic(Space.GLOBAL, AccessKind.LOAD, 16, 2, 64, sectors=32, ideal_sectors=32),
          Traffic(Space.SHARED, AccessKind.STORE, 16, 2, 64, wavefronts=16, ideal_wavefronts=8)]),
        ("LDC R1, c[0x0][0x28]", {}, []),
    ],
)  # fmt: skip
def test_each_kind_of_access(tmp_path: Path, sass: str, cells: dict[str, object], expected: list[Traffic]) -> None:
    instruction = ("0x7f0020", f"      {sass}", {"inst": 2, "on": 64, **cells})
    (line,) = profile(table(tmp_path, page({KERNEL: [instruction]}))).lines
    assert list(line.traffic) == expected


def test_a_request_that_no_lane_made_is_one_all_the_same(tmp_path: Path) -> None:
    idle = ("0x7f0090", "@!P3  STG.E.64 desc[UR8][R14.64], R7", {"inst": 16, "space": "", "op": "Store", "bits": ""})
    (line,) = profile(table(tmp_path, page({CALL: [idle]}))).lines
    assert line.traffic == (Traffic(Space.GLOBAL, AccessKind.STORE, 8, 16, 0, sectors=0, ideal_sectors=0),)


def test_launches_are_told_apart_by_their_instance(tmp_path: Path) -> None:
    launches = (
        LaunchRow("void scale<32>(float *, int)", (9, 1, 1), (32, 1, 1), 0),
        LaunchRow("void scale<64>(float *, int)", (2, 1, 1), (64, 1, 1), 256),
        LaunchRow("void scale<64>(float *, int)", (4, 1, 1), (64, 1, 1), 0),
    )
    found = profile(table(tmp_path, page({CALL: [store]})), launches)
    assert (found.launch.grid, found.launch.block, found.launch.dynamic_shared_bytes) == ((2, 1, 1), (64, 1, 1), 256)
    assert found.notes == ("The report holds 2 launches of this kernel; these are the counts of the first.",)


def test_a_report_of_another_text_is_refused(tmp_path: Path) -> None:
    path = table(tmp_path, page({CALL: [store]}))
    changed = TEXT.replace("twice(tile[threadIdx.x], a)", "tile[threadIdx.x]")
    with pytest.raises(NcuError, match=r"was made of another text than src/a.cu has now: its line 10 was `a\[i\] = tw"):
        profiles_of(path, {"src/a.cu": changed.encode()}, ["scale"])


def test_a_report_without_text_speaks_of_no_text(tmp_path: Path) -> None:
    found = profile(table(tmp_path, page({CALL: [store]}, shown=False)))
    assert found.texts == {}
    assert "not known whether" in found.notes[0]


def test_of_two_files_of_one_name_the_text_decides(tmp_path: Path) -> None:
    path = table(tmp_path, page({CALL: [store]}))
    found = profiles_of(path, {"b/a.cu": b"int other;\n", "c/a.cu": TEXT.encode()}, ["scale"])
    assert [line.file for line in found[0].lines] == ["c/a.cu"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is not Nsight Compute's source page"),
        ('"ID","Kernel Name"\n"0","k"\n', "is not Nsight Compute's source page"),
        ("\0\1\2", "is not"),
        (source_page("/x/b.cu", TEXT, {1: [store]}, FUNCTION), "covers other files than the one asked for: b.cu"),
        (source_page(PATH, TEXT, {1: [store]}, "other(int)"), "holds none of the kernels scale"),
        (source_page(PATH, TEXT, {1: [("0x1", "EXIT", {"inst": "many"})]}, FUNCTION), "'many' under Instructions Exec"),
    ],
)  # fmt: skip
def test_other_files_are_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "report.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(NcuError, match=message):
        profiles_of(path, {"src/a.cu": TEXT.encode()}, ["scale"])


WHOLE = page({GUARD: [branch, leave], KERNEL: [load, load, put], CALL: [store, never], CALLEE: [strided]})


@given(st.integers(0, len(WHOLE)), st.integers(0, len(WHOLE)), st.text(max_size=6))
def test_a_damaged_table_is_read_or_refused(start: int, end: int, put_in: str) -> None:
    """Cut out and overwritten anywhere, as by a copy that broke off."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.csv"
        path.write_text(WHOLE[:start] + put_in + WHOLE[max(start, end) :], encoding="utf-8", errors="replace")
        with contextlib.suppress(NcuError):
            profiles_of(path, {"src/a.cu": TEXT.encode()}, ["scale"])


def test_the_details_page_gives_the_launches(tmp_path: Path) -> None:
    path = tmp_path / "details.csv"
    path.write_text(
        '"ID","Kernel Name","Block Size","Grid Size","Metric Name","Metric Unit","Metric Value"\n'
        '"0","scale(float *)","(256, 1, 1)","(8, 2, 1)","Registers Per Thread","register/thread","18"\n'
        '"0","scale(float *)","(256, 1, 1)","(8, 2, 1)","Dynamic Shared Memory Per Block","Kbyte/block","1.02"\n'
        '"1","scale(float *)","(64, 1, 1)","(1, 1, 1)","Dynamic Shared Memory Per Block","byte/block","512"\n',
        encoding="utf-8",
    )
    assert launch_rows(path) == [
        LaunchRow("scale(float *)", (8, 2, 1), (256, 1, 1), 1020),
        LaunchRow("scale(float *)", (1, 1, 1), (64, 1, 1), 512),
    ]
    path.write_text("x\n1\n", encoding="utf-8")
    with pytest.raises(NcuError, match="is not Nsight Compute's details page"):
        launch_rows(path)
