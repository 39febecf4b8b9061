"""Nsight Systems' reports: its SQLite export, or a .nsys-rep that its own `nsys export` turns into one.

Tables are there where something was recorded, and newer versions add columns; what is read here:
CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId), CUPTI_ACTIVITY_KIND_KERNEL (start, end,
deviceId, streamId, correlationId, demangledName or shortName, gridX..Z, blockX..Z), ..._MEMCPY (and bytes, copyKind,
srcKind, dstKind), ..._MEMSET (bytes), CUPTI_ACTIVITY_KIND_GRAPH_TRACE for graphs that were recorded whole, NVTX_EVENTS
(start, end, text or textId, globalTid) and StringIds (id, value). Memory kinds are named by ENUM_CUDA_MEM_KIND where it
is there. Times are in nanoseconds. Python frames are not in it.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from warpwright.sandbox.confine import Confined, Policy
from warpwright.syntax.encoding import shown_bytes
from warpwright.timeline.model import Activity, Call, Event, Trace, TraceError, Work

_EXPORT_SECONDS = 600.0
_PREFIX = "CUPTI_ACTIVITY_KIND_"
_DIRECTIONS = {1: "HtoD", 2: "DtoH", 8: "DtoD", 10: "PtoP"}
_PAGEABLE = 0
"""In nsys' numbering of memory, where no table names it."""

Row = Mapping[str, Any]


def read_nsys_report(path: Path) -> Trace:
    """Raises TraceError."""
    if path.suffix != ".nsys-rep":
        return read_nsys_sqlite(path)
    if not path.is_file():
        raise TraceError(f"{path} is not a file")
    nsys = find_nsys()
    if nsys is None:
        raise TraceError(
            f"{path} needs Nsight Systems to be read, and no nsys is on PATH; where there is one, run "
            "`nsys export --type sqlite REPORT`, and import what it writes"
        )
    with tempfile.TemporaryDirectory(prefix="warpwright-") as folder:
        return read_nsys_sqlite(_exported(nsys, path.absolute(), Path(folder)), path.name)


def find_nsys() -> str | None:
    """Nsight Systems' command line: on PATH, or where its installer puts it."""
    places = sorted(Path("/opt/nvidia/nsight-systems").glob("*/bin/nsys"), reverse=True)
    return shutil.which("nsys") or next((str(each) for each in places if os.access(each, os.X_OK)), None)


def _exported(nsys: str, report: Path, folder: Path) -> Path:
    made = folder / "report.sqlite"
    command = (nsys, "export", "--type", "sqlite", "--force-overwrite", "true", "--output", str(made), str(report))
    environment = {**os.environ, "HOME": str(folder), "TMPDIR": str(folder)}
    with (folder / "log").open("w+b") as log:
        try:
            running = Confined(
                command, Policy(writes=(str(folder),), local_sockets=True), environment=environment, output=log
            )
        except OSError as error:
            raise TraceError(f"{nsys} cannot be started ({error.strerror})") from None
        try:
            status = running.process.wait(timeout=_EXPORT_SECONDS)
        except subprocess.TimeoutExpired:
            raise TraceError(f"nsys did not export {report.name} in {_EXPORT_SECONDS:g} seconds") from None
        finally:
            running.kill()
        log.seek(0)
        said = shown_bytes(log.read(4096)).strip().splitlines()
    if status or not made.is_file():
        raise TraceError(f"nsys could not export {report.name}: {said[-1] if said else f'exit status {status}'}")
    return made


def read_nsys_sqlite(path: Path, name: str = "") -> Trace:
    """The trace in an export. Raises TraceError."""
    if not path.is_file():
        raise TraceError(f"{path} is not a file")
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)) as database:
            database.row_factory = sqlite3.Row
            return _trace(database, name or path.name)
    except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
        raise TraceError(f"{path} cannot be read as an export of Nsight Systems' ({error})") from None


def _trace(database: sqlite3.Connection, name: str) -> Trace:
    strings = {row["id"]: str(row["value"]) for row in _rows(database, "StringIds")}
    memory = {row["id"]: _label(row) for row in _rows(database, "ENUM_CUDA_MEM_KIND")}
    pageable = {kind for kind, label in memory.items() if "pageable" in label} or {_PAGEABLE}
    calls = tuple(
        Call(
            strings.get(row.get("nameId"), "").partition("_v")[0], *span, _thread(row), _whole(row.get("correlationId"))
        )
        for row, span in _spans(database, f"{_PREFIX}RUNTIME")
    )
    activities = [
        Activity(
            Work.KERNEL,
            strings.get(row.get("demangledName"), "") or strings.get(row.get("shortName"), "?"),
            *span,
            *_where(row),
            grid=tuple(_whole(row.get(f"grid{axis}")) for axis in "XYZ"),
            block=tuple(_whole(row.get(f"block{axis}")) for axis in "XYZ"),
        )
        for row, span in _spans(database, f"{_PREFIX}KERNEL")
    ]
    for row, span in _spans(database, f"{_PREFIX}MEMCPY"):
        direction = _DIRECTIONS.get(_whole(row.get("copyKind")), "")
        paged = bool({row.get("srcKind"), row.get("dstKind")} & pageable) and direction in ("HtoD", "DtoH")
        title = f"Memcpy {direction or 'of another kind'}{' (pageable)' if paged else ''}"
        size = max(0, _whole(row.get("bytes")))
        activities.append(
            Activity(Work.COPY, title, *span, *_where(row), bytes=size, direction=direction, pageable=paged)
        )
    for table, kind, title in (("MEMSET", Work.SET, "Memset"), ("GRAPH_TRACE", Work.KERNEL, "CUDA graph")):
        activities += [Activity(kind, title, *span, *_where(row)) for row, span in _spans(database, _PREFIX + table)]
    if not (calls or activities):
        raise TraceError(f"{name} has no CUDA call and no kernel; record it with `nsys profile --trace cuda,nvtx`")
    ranges = tuple(
        Event(str(row.get("text") or strings.get(row.get("textId"), "")), *span, _thread(row))
        for row, span in _spans(database, "NVTX_EVENTS")
    )
    devices = tuple(str(row["name"]) for row in _rows(database, "TARGET_INFO_GPU") if row.get("name"))
    return Trace(name, calls=calls, activities=tuple(activities), ranges=ranges, devices=devices, is_python=False)


def _rows(database: sqlite3.Connection, table: str) -> Iterator[Row]:
    """The rows of a table, none where it is not there. `table` is one of ours."""
    known = database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    if known is not None:
        yield from (dict(row) for row in database.execute(f'SELECT * FROM "{table}"'))


def _spans(database: sqlite3.Connection, table: str) -> Iterator[tuple[Row, tuple[int, int]]]:
    for row in _rows(database, table):
        start, end = row.get("start"), row.get("end")
        if isinstance(start, int) and isinstance(end, int) and start <= end:
            yield row, (start, end)


def _label(row: Row) -> str:
    return f"{row.get('name', '')} {row.get('label', '')}".lower()


def _thread(row: Row) -> str:
    """A globalTid holds the machine, the process and the thread; one number tells threads apart."""
    return str(row.get("globalTid"))


def _where(row: Row) -> tuple[int, int, int]:
    """Device, stream and correlation."""
    return _whole(row.get("deviceId")), _whole(row.get("streamId")), _whole(row.get("correlationId"))


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
