"""Nsight Systems' SQLite exports, made by hand with the tables that its documentation names."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from warpwright.timeline.host import Cause
from warpwright.timeline.model import TraceError, Work
from warpwright.timeline.nsys_report import read_nsys_report
from warpwright.timeline.shares import shared

TABLES = """
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER, name TEXT, label TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER,
    correlationId INTEGER, nameId INTEGER, returnValue INTEGER, callchainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,
    streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER,
    shortName INTEGER, gridX INTEGER, gridY INTEGER,
    gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,
    streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER,
    copyKind INTEGER, srcKind INTEGER, dstKind INTEGER);
INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, 'cudaMemcpyAsync_v3020'), (3, 'saxpy(int, float *)');
INSERT INTO ENUM_CUDA_MEM_KIND VALUES (0, 'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE', 'Pageable'),
    (1, 'CUDA_MEMOPR_MEMORY_KIND_PINNED', 'Pinned'), (2, 'CUDA_MEMOPR_MEMORY_KIND_DEVICE', 'Device');
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (0, 900, 1, 77, 1, 2, 0, NULL), (1000, 1100, 1, 77, 2, 1, 0, NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (100, 900, 0, 1, 7, 1, 5, 4096, 1, 0, 2);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1100, 1200, 0, 1, 7, 2, 5, 3, 3, 8, 1, 1, 256, 1, 1);
"""


def made(folder: Path, text: str) -> Path:
    path = folder / "report.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(text)
    return path


def test_a_report_is_read(tmp_path: Path) -> None:
    trace = read_nsys_report(made(tmp_path, TABLES))
    assert [call.name for call in trace.calls] == ["cudaMemcpyAsync", "cudaLaunchKernel"]
    kernel, copy = trace.activities
    assert (kernel.kind, kernel.name, kernel.grid) == (Work.KERNEL, "saxpy(int, float *)", (8, 1, 1))
    assert (copy.direction, copy.pageable, copy.bytes) == ("HtoD", True, 4096)
    assert shared(trace).bound is Cause.COPIES


@pytest.mark.parametrize("text", ["", "CREATE TABLE t (a)", "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start TEXT)"])
def test_what_is_no_report_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError):
        read_nsys_report(made(tmp_path, text))


def test_odd_columns_are_read_or_refused(tmp_path: Path) -> None:
    odd = "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, demangledName); "
    trace = read_nsys_report(
        made(tmp_path, odd + "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 'x'), ('a', 2, 3)")
    )
    assert [each.name for each in trace.activities] == ["?"]


def test_bytes_that_are_no_database(tmp_path: Path) -> None:
    path = tmp_path / "report.sqlite"
    path.write_bytes(b"no database" * 999)
    with pytest.raises(TraceError, match=r"report\.sqlite"):
        read_nsys_report(path)


def test_a_binary_report_needs_nsys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = tmp_path / "a.nsys-rep"
    report.write_bytes(b"\0")
    monkeypatch.setattr("warpwright.timeline.nsys_report.find_nsys", lambda: None)
    with pytest.raises(TraceError, match="nsys export"):
        read_nsys_report(report)
