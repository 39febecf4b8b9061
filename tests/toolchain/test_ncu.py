"""Nsight Compute's command line: where it is looked for, what is said when it fails. A shell script stands for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from warpwright.missing import Missing
from warpwright.progress import never_cancelled
from warpwright.toolchain.ncu import exported, find_ncu
from warpwright.toolchain.ncu_tables import NcuError

DETAILS = (
    '"ID","Kernel Name","Block Size","Grid Size","Metric Name","Metric Unit","Metric Value"\n'
    '"0","k(float *)","(64, 1, 1)","(2, 1, 1)","Registers Per Thread","register/thread","18"\n'
)


def script(folder: Path, body: str) -> Path:
    path = folder / "ncu"
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_the_path_that_is_named_is_taken_at_its_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPWRIGHT_NCU", str(tmp_path / "ncu"))
    missing = find_ncu()
    assert isinstance(missing, Missing)
    assert missing.reason == f"WARPWRIGHT_NCU names {tmp_path / 'ncu'}, which does not exist."
    assert find_ncu() != (found := script(tmp_path, "")) and find_ncu() == found


def test_it_is_found_in_the_toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WARPWRIGHT_NCU", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    (tmp_path / "bin").mkdir()
    path = script(tmp_path / "bin", "")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert find_ncu() == path


def test_both_pages_of_a_report_are_read(tmp_path: Path) -> None:
    """It is asked for the pages of that report, in CSV, with source and machine code side by side."""
    (tmp_path / "details").write_text(DETAILS, encoding="utf-8")
    ncu = script(
        tmp_path,
        f'echo "$@" >> {tmp_path}/asked\ncase "$*" in *details*) cat {tmp_path}/details;; *) echo "source page";; esac',
    )
    with exported(ncu, tmp_path / "r.ncu-rep", never_cancelled) as (table, launches):
        assert table.read_text(encoding="utf-8") == "source page\n"
        assert [(launch.kernel, launch.grid) for launch in launches] == [("k(float *)", (2, 1, 1))]
    assert not table.exists()
    assert (tmp_path / "asked").read_text(encoding="utf-8").splitlines() == [
        f"--import {tmp_path}/r.ncu-rep --csv --page details",
        f"--import {tmp_path}/r.ncu-rep --csv --page source --print-source cuda,sass",
    ]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("echo '==ERROR== Failed to open r.ncu-rep'; exit 1", r"/ncu failed: Failed to open r\.ncu-rep\.$"),
        ("echo '==ERROR== ERR_NVGPUCTRPERM - no'; exit 1", r"does not let this user read the GPU's counters"),
        ("exit 3", r"/ncu failed: it said nothing\.$"),
    ],
)
def test_a_failure_is_one_sentence(tmp_path: Path, body: str, said: str) -> None:
    ncu = script(tmp_path, body)
    with pytest.raises(NcuError, match=said), exported(ncu, tmp_path / "r.ncu-rep", never_cancelled):
        pass
