"""The figures and the classes of misses on a small made-up set, and the committed page against its result."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from accuracy_page import page
from line_figures import Line, counted_lines, figures, said_lines, sources_of, tally
from miss_classes import misses, summary

ROOT = Path(__file__).resolve().parents[2]

SOURCE = """__global__ void k(float* a, int* b, int n) {
    int i = threadIdx.x;
    a[i] = 1;
    a[2 * i] = 2;
    a[b[i]] = 3;
    a[n * i] = 4;
    if (i & 1)
        a[i] += 5;
    a[32 * i] = 6;
}
"""


def store(line: int, sectors: float, ideal: float, **more: Any) -> dict[str, Any]:
    row = {"line": line, "op": "STG.E", "inst": 10.0, "thr": 32.0, "space": "Global", "size": "32"}
    return row | {"sec": 10 * sectors, "ideal": 10 * ideal} | more


def access(line: int, sectors: float | None, ideal: float | None, basis: str = "exact") -> dict[str, Any]:
    where = {"file": "/any/main.cu", "line": line, "space": "global", "basis": basis, "bytes": 4, "active_lanes": 32.0}
    return where | {"sectors_per_request": sectors, "ideal_sectors_per_request": ideal}


PROGRAM: dict[str, Any] = {
    "prog": "k-cuda",
    "launches": [{"kernel": "k(float *, int *, int)", "block": "(64, 1, 1)"}],
    "blocks": [
        {
            "file": "main.cu",
            "fn": "k(float *, int *, int)",
            "rows": [
                store(3, 4, 4),
                store(4, 8, 4),
                store(5, 32, 4),
                store(6, 16, 4),
                {"line": 7, "op": "BRA", "inst": 10.0, "thr": 16.0, "div": 10.0},
                store(8, 2, 2, pred=True),
                store(9, 32, 4),
                {"line": 3, "op": "BRA", "inst": 10.0, "thr": 16.0, "div": 10.0},
            ],
        },
        {"file": "cuda_runtime.h", "fn": "k(float *, int *, int)", "rows": [store(3, 32, 4)]},
    ],
}
FACTS: dict[str, Any] = {
    "kernels": [
        {
            "name": "k",
            "launches": [{"block": [64, 1, 1]}],
            "accesses": [
                access(3, 4.0, 4.0),
                access(4, 8.0, 4.0),
                access(5, None, None, "data-dependent"),
                access(6, 4.0, 4.0, "assumed"),
                access(8, 4.0, 4.0),
            ],
            "branches": [{"file": "/any/main.cu", "line": 7, "divergence": "unknown", "warps_diverging": None}],
        }
    ]
}


def sources(tmp_path: Path) -> dict[str, Path]:
    (tmp_path / "main.cu").write_text(SOURCE)
    return sources_of(tmp_path)


def test_figures_of_a_small_set(tmp_path: Path) -> None:
    counted, said = counted_lines(PROGRAM, sources(tmp_path)), said_lines(FACTS)
    assert Line("branch", "main.cu", 3) not in counted, "the text of line 3 has no branch"
    got = figures([tally(counted, said)])
    assert got["global"] == {
        "weighted_lines": 6.0,
        "precision": 1.0,  # of line 4
        "recall": 0.25,  # line 4 of 4, 5, 6, 9
        "data_dependent": 0.25,  # line 5
        "recall_static": 0.3333,
        "exact_positive": 0.5,  # line 4 of 4, 6
        "exact": 0.5,  # lines 3, 4 of 3, 4, 6, 8
        "answered": 0.6667,
    }
    assert got["branch"] == {"weighted_lines": 1.0, "precision": None, "recall": 0.0}
    assert got["shared"]["precision"] is None


def test_a_program_of_many_lines_weighs_as_thirty(tmp_path: Path) -> None:
    (tmp_path / "main.cu").write_text("a[i];\n" * 90)
    rows = [store(line, 4, 4) for line in range(1, 91)]
    program = {"blocks": [{"file": "main.cu", "fn": "k()", "rows": rows}]}
    got = figures([tally(counted_lines(program, sources_of(tmp_path)), {})])
    assert got["global"]["weighted_lines"] == 30.0


def test_each_miss_has_its_class(tmp_path: Path) -> None:
    counted, said = counted_lines(PROGRAM, sources(tmp_path)), said_lines(FACTS)
    found = {miss.line.line: miss.cause for miss in misses(PROGRAM, FACTS, counted, said)}
    assert found == {5: "data-dependent", 6: "assumed value", 7: "unknown", 8: "predicate", 9: "another line"}
    other_shape = PROGRAM | {"launches": [{"kernel": "k(float *, int *, int)", "block": "(17, 13, 1)"}]}
    found = {miss.line.line: miss.cause for miss in misses(other_shape, FACTS, counted, said)}
    assert found[6] == "block shape"
    nothing: dict[str, Any] = {"kernels": []}
    assert {miss.cause for miss in misses(PROGRAM, nothing, counted, {})} == {"kernel not seen"}


def test_lines_of_a_blind_set_are_not_shown(tmp_path: Path) -> None:
    counted, said = counted_lines(PROGRAM, sources(tmp_path)), said_lines(FACTS)
    found = misses(PROGRAM, FACTS, counted, said)
    assert "main.cu" in json.dumps(summary(found, show_lines=True))
    assert "main.cu" not in json.dumps(summary(found, show_lines=False))


def test_the_page_is_made_from_the_committed_result() -> None:
    result = json.loads((ROOT / "benchmarks" / "results" / "accuracy.json").read_text(encoding="utf-8"))
    assert (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8") == page(result)


def test_the_command_measures_a_label_file(tmp_path: Path) -> None:
    (tmp_path / "k-cuda").mkdir()
    (tmp_path / "k-cuda" / "main.cu").write_text(SOURCE + "int main() { k<<<1, 64>>>(0, 0, 0); }\n")
    labels = tmp_path / "small.json.gz"
    labels.write_bytes(gzip.compress(json.dumps([PROGRAM]).encode()))
    command = [sys.executable, str(ROOT / "benchmarks" / "accuracy.py"), str(tmp_path), str(labels)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    got = json.loads(run.stdout[run.stdout.index("{") :])["small"]["global"]
    assert got["answered"] >= 0.8  # line 5 has its load at least
    assert got["recall"] >= 0.5  # lines 4 and 9


def test_without_the_sources_the_command_says_how_to_get_them(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "accuracy.py"), str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert "git clone" in run.stderr
    assert len(run.stderr.splitlines()) == 1
