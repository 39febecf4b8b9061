"""Reports as people see them: those of a run on an NVIDIA H200, and made ones, in terminals of any width."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from warpwright.cli.report_text import report_text
from warpwright.editor.report import report_page
from warpwright.verify.presentation.blocks import Table
from warpwright.verify.presentation.compared import ULPS
from warpwright.verify.presentation.sections import headline, sections
from warpwright.verify.presentation.timed import whisker

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
CHECKS = json.loads((RESULTS / "gpu_check.json").read_text())["checks"]
REPORTS: dict[str, Any] = {check["name"]: check["report"] for check in CHECKS}
REPORTS["with torch.compile"] = json.loads((RESULTS / "verify_report.json").read_text())["report"]
FASTER = REPORTS["copy: coalesced, with its own grid"]


def plain(report: Any, width: int, monkeypatch: pytest.MonkeyPatch, *, whole: bool = True) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    return click.unstyle(report_text(report, whole=whole))


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("width", [60, 80, 160])
def test_it_fits_the_terminal_and_cuts_no_number(name: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = plain(REPORTS[name], width, monkeypatch)
    assert max(map(len, text.splitlines())) <= width
    words = set(text.split())
    for section in sections(REPORTS[name]):
        for table in (block for block in section.blocks if isinstance(block, Table)):
            shown = {word for row in table.rows for cell in row for word in cell.text.split() if re.match(r"\d", word)}
            assert shown <= words


@pytest.mark.parametrize("name", REPORTS)
def test_markdown_has_tables_of_equal_rows(name: str) -> None:
    page = report_page(REPORTS[name], "a.cu")
    tables = re.findall(r"(?:^\|.*\|\n)+", page, re.MULTILINE)
    assert tables
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1
    assert page.startswith(f"# `{REPORTS[name]['kernel']}`" if REPORTS[name]["kernel"] else "# A candidate")


def test_all_that_a_demanding_reader_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    text = plain(FASTER, 120, monkeypatch)
    cases, speeds = FASTER["cases"], [timed["speedup"] for timed in FASTER["speed"]]
    shapes = {tuple(case["shape"].values()) for case in cases}
    kinds = {case["distribution"] for case in cases if not case["distribution"].endswith(" changed")}
    for words in (
        f"{FASTER['badge']}  copy_matrix",
        f"{len(cases)} of {len(cases)} comparisons with the original hold: {len(shapes)} shapes, {len(kinds)} kinds of",
        "registers",
        f"Over all {len(speeds)}: median {median(speeds):.2f}x, geometric mean {geometric_mean(speeds):.2f}x.",
        "Launch-bound, below 20 times the",
        "of an empty launch: 1237 x 853.",
        "over the best other",
        "Faster is eager torch at",
        "The bound at 2048 x 2048: moving 33.6 MB at",
        "seed of the values",
        "read-only file system (Landlock",
        "nvcc 13.0.88, sm_90",
    ):
        assert words in text


CASE = {
    "shape": {"n": 1000},
    "distribution": "normal",
    "ok": True,
    "max_abs": 2e-7,
    "max_rel": 1e-7,
    "max_ulp": 3.0,
    "rel_l2": 4e-8,
    "tolerance": 8e-7,
    "reference": {"candidate_rel_l2": 5e-8, "candidate_max_ulp": 1.0, "baseline_rel_l2": 2e-7},
    "reason": "",
}


def test_what_is_measured_of_a_comparison_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    text = " ".join(plain({**FASTER, "cases": [CASE]}, 100, monkeypatch).split())
    assert "3 ulp" in text
    assert "2e-07 (3 units in the last place, relative L2 4e-08) at 1000, normal;" in text
    assert "8e-07 and 4 units in the last place are allowed there" in text
    assert "relative L2 error against the reference in float64: the candidate's 5e-08, the original's 2e-07." in text


def test_the_tolerance_is_told_as_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes measure it, neither of which can be imported where it is told."""
    server = RESULTS.parents[1] / "server"
    for module in ("warpwright_harness/checks/compare.py", "warpwright/emulator/agreement.py"):
        text = (server / module).read_text(encoding="utf-8")
        assert "NOISE_FACTOR = 8\n" in text
        assert f"\nULPS = {ULPS}\n" in text
    told = [(RESULTS.parents[1] / "docs" / "verification.md").read_text(encoding="utf-8")]
    told.append(plain(REPORTS["with torch.compile"] | {"cases": [CASE]}, 100, monkeypatch))
    assert all("eight times as far" in " ".join(text.split()) for text in told)


def test_a_wrong_comparison_is_no_agreement(monkeypatch: pytest.MonkeyPatch) -> None:
    text = plain(REPORTS["saxpy: NaN becomes zero"], 100, monkeypatch)
    assert "WRONG" in text
    assert "4 of 5 comparisons" in text
    assert "Every output" not in text


def test_of_one_of_several_candidates_the_ladder(monkeypatch: pytest.MonkeyPatch) -> None:
    text = plain(FASTER, 100, monkeypatch, whole=False)
    assert len(text.splitlines()) == 7
    assert text.splitlines()[0].startswith(headline(FASTER).text)


RATIOS = st.floats(0.01, 100)


@given(st.lists(RATIOS, min_size=3, max_size=3).map(sorted), st.tuples(RATIOS, RATIOS).map(sorted))
def test_a_drawn_interval_has_one_width_and_its_marks_in_order(interval: list[float], ends: list[float]) -> None:
    low, value, high = interval
    scale = (min(ends[0], low, 1.0) / 1.05, max(ends[1], high, 1.0) * 1.05)
    drawn = whisker(value, low, high, scale)
    assert len(drawn) == 19
    assert drawn.count("o") == 1
    assert re.fullmatch(r" *-*o-* *", drawn.replace("|", " "))
