"""Nsight Compute's tables become label rows: each executed access or branch once, at the right line."""

from __future__ import annotations

from pathlib import Path

from counter_labels import blocks, half, launches

COLUMNS = (
    "Line No,Source,Address,Source,Instructions Executed,Avg. Predicated-On Threads Executed,Divergent Branches,"
    "Address Space,Access Size,L2 Theoretical Sectors Global,L2 Theoretical Sectors Global Ideal"
)
KERNEL = '"Function Name","void scale<float>(T1 *, int)"'
SOURCE = """__device__ float twice(float v, const float* p) {
    return v * *p;
}
__global__ void scale(float* a, int n) {
    if (n > 3)
        a[n] = twice(a[n], a);
}
"""


def folder(tmp_path: Path) -> Path:
    own = tmp_path / "scale-cuda"
    own.mkdir()
    (own / "main.cu").write_text(SOURCE)
    return own


def table(tmp_path: Path, *lines: str) -> Path:
    report = tmp_path / "scale-cuda.source.csv"
    report.write_text("\n".join(lines) + "\n")
    return report


def test_an_instruction_stands_once_at_the_callee(tmp_path: Path) -> None:
    load = '"","","0x7f0020","      LDG.E R2, desc[UR6][R2.64]","64","32","0","Global","32","256","256"'
    report = table(
        tmp_path,
        '"File Path","/build/src/scale-cuda/main.cu"',
        KERNEL,
        COLUMNS,
        '"2","return v * *p;","-","-","64","32","0","Global","32","256","256"',
        load,
        '"6","a[n] = twice(a[n], a);","-","-","128","64","0","Global","32(2)","512","512"',
        load,
        '"","","...","...","-","-","-","-","-","-","-"',
        '"","","0x7f0040","@!P0  STG.E desc[UR6][R4.64], R2","64","30","0","Global","32","512","240"',
        '"File Path","/usr/local/cuda/include/sm_32_intrinsics.hpp"',
        KERNEL,
        COLUMNS,
        '"100","asm()","-","-","64","32","0","Global","32","256","256"',
        load,
    )
    (block,) = blocks(report, folder(tmp_path))
    assert (block["file"], block["fn"]) == ("main.cu", "void scale<float>(T1 *, int)")
    load_row, store_row = block["rows"]
    assert (load_row["line"], load_row["op"], load_row["sec"], load_row["addr"]) == (2, "LDG.E", 256.0, 0)
    assert "pred" not in load_row
    assert store_row == {
        "line": 6,
        "addr": 0x20,
        "op": "STG.E",
        "inst": 64.0,
        "thr": 30.0,
        "space": "Global",
        "size": "32",
        "sec": 512.0,
        "ideal": 240.0,
        "div": 0.0,
        "pred": True,
    }


def test_what_did_not_run_or_is_arithmetic_or_lies_in_a_header_is_left_out(tmp_path: Path) -> None:
    report = table(
        tmp_path,
        '"File Path","/build/src/scale-cuda/main.cu"',
        KERNEL,
        COLUMNS,
        '"5","if (n > 3)","-","-","64","32","3","-","-","0","0"',
        '"","","0x7f0000","      ISETP.GT.AND P0, PT, R0, 0x3, PT","64","32","0","-","-","0","0"',
        '"","","0x7f0010","@P0   BRA 0x7f0050","64","16","3","-","-","0","0"',
        '"","","0x7f0020","      LDG.E R2, desc[UR6][R2.64]","0","0","0","Global","32","0","0"',
        '"File Path","/usr/local/cuda/include/device_atomic_functions.hpp"',
        KERNEL,
        COLUMNS,
        '"100","asm()","-","-","64","32","0","Global","32","256","256"',
        '"","","0x7f0030","      REDG.E.ADD desc[UR6][R2.64], R4","64","32","0","Global","32","256","256"',
    )
    (block,) = blocks(report, folder(tmp_path))
    assert [(row["op"], row["line"], row["div"]) for row in block["rows"]] == [("BRA", 5, 3.0)]


def test_launches_have_their_shape_and_the_rules_that_fired(tmp_path: Path) -> None:
    details = tmp_path / "scale-cuda.details.csv"
    details.write_text(
        '"ID","Kernel Name","Block Size","Grid Size","Metric Name","Metric Unit","Metric Value","Rule Name"\n'
        '"0","scale(float *, int)","(256, 1, 1)","(8, 1, 1)","Registers Per Thread","register/thread","18",""\n'
        '"0","scale(float *, int)","(256, 1, 1)","(8, 1, 1)","","","","UncoalescedGlobalAccess"\n'
    )
    assert launches(details) == [
        {
            "kernel": "scale(float *, int)",
            "block": "(256, 1, 1)",
            "grid": "(8, 1, 1)",
            "rules": ["UncoalescedGlobalAccess"],
            "Registers Per Thread": "18 register/thread",
        }
    ]


def test_the_halves_are_about_equal() -> None:
    names = [f"program{number}-cuda" for number in range(200)]
    assert 70 < sum(half(name) == "blind" for name in names) < 130
