"""What was verified before: kept in a database, so that one question is not paid for twice and can be looked up.

The database is SQLite, in the user's data directory. A verdict is kept under a hash of all that decides it (see
`question`), for as long as it is not pushed out by newer ones. Verification never depends on it: where it is locked,
broken, of a newer version or on a full disk, HistoryError says so in a sentence for the report's notes.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import warpwright
from warpwright.directories import data_dir
from warpwright.syntax.encoding import encoded, shown
from warpwright.syntax.source import Source
from warpwright.verify.plain import PlainError, from_plain, to_plain
from warpwright.verify.report import Report, Status
from warpwright.verify.run import Observed

VERSION = 1
"""Of the tables. A database of a newer one is left alone."""

MOST_RUNS = 5000
MOST_DAYS = 365
LOCKED_SECONDS = 1.0
LASTING = frozenset({Status.FASTER, Status.SLOWER, Status.INCONCLUSIVE, Status.CORRECT, Status.WRONG, Status.UNSAFE})
"""Verdicts that stand. A time-out or a run that did not come about may end otherwise the next time."""

_TABLES = """
create table if not exists runs (
    id integer primary key, at real not null, question text not null, file text not null, kernel text not null,
    what text not null, goal text not null, backend text not null, status text not null, badge text not null,
    speedup real, answer text, report text not null
);
create index if not exists by_question on runs (question, at);
create index if not exists by_file on runs (file, at);
"""


class HistoryError(Exception):
    """The history cannot be used; the message is one sentence without its full stop."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The answer to a question that was asked before. `at` is in seconds since 1970."""

    at: float
    observed: Observed
    environment: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Run:
    """One verification of the past. `what` tells the candidate apart; `report` is the report's JSON."""

    at: float
    file: str
    kernel: str
    what: str
    goal: str
    backend: str
    status: str
    badge: str
    speedup: float | None
    report: Mapping[str, Any]


_COLUMNS = tuple(field.name for field in fields(Run))


def history_file() -> Path:
    return data_dir() / "history.sqlite"


def question(*parts: object) -> str:
    """A hash of all that decides a verdict, with the version of what runs and judges among it.

    >>> question("a", 1) == question("a", 1), question("a", 1) == question("a1")
    (True, False)
    """
    digest = hashlib.sha256(encoded(_judge()))
    for part in parts:
        data = part if isinstance(part, bytes) else encoded(repr(part))
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


@lru_cache(maxsize=1)
def _judge() -> str:
    """A hash of the code that runs kernels and judges what came of it."""
    server = Path(warpwright.__file__).parent.parent
    digest = hashlib.sha256(encoded(warpwright.__version__))
    for folder in ("warpwright_harness", "warpwright/emulator", "warpwright/verify", "warpwright/problems"):
        for path in sorted((server / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def find_answer(asked: str) -> Kept | None:
    """The newest lasting answer to a question, None where it was not asked. Raises HistoryError."""
    if not _is_there():
        return None
    with _opened() as database:
        row = database.execute(
            "select at, answer, report from runs where question = ? and answer is not null order by at desc limit 1",
            (asked,),
        ).fetchone()
    if row is None:
        return None
    try:
        observed = from_plain(Observed, json.loads(row[1]))
        return Kept(float(row[0]), observed, dict(json.loads(row[2])["environment"]))
    except (PlainError, ValueError, KeyError, TypeError):
        return None


def keep_run(report: Report, source: Source, what: str, asked: str, observed: Observed | None) -> None:
    """Add a verification; `observed` is the answer to `asked`, None where there is none. Raises HistoryError."""
    lasting = observed is not None and report.status in LASTING
    answer = json.dumps(to_plain(observed)) if lasting else None
    speedup = report.speed[0].speedup if report.speed else None
    file = _storable(str(Path(source.path).absolute()))
    row = (
        time.time(), asked, file, report.kernel, _storable(what), report.goal, report.backend, str(report.status),
        report.badge(), speedup, answer, json.dumps(report.to_json()),
    )  # fmt: skip
    with _opened() as database:
        database.execute(
            "insert into runs (at, question, file, kernel, what, goal, backend, status, badge, speedup, answer, report)"
            " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            row,
        )
        database.execute("delete from runs where at < ?", (time.time() - MOST_DAYS * 86400,))
        database.execute(
            "delete from runs where id <= (select id from runs order by id desc limit 1 offset ?)", (MOST_RUNS,)
        )


def past_runs(file: str | None = None, kernel: str | None = None, most: int = 50) -> list[Run]:
    """The newest runs first, of one file or kernel where these are given. Raises HistoryError."""
    if not _is_there():
        return []
    wanted, values = [], []
    if file is not None:
        wanted.append("file = ?")
        values.append(_storable(str(Path(file).absolute())))
    if kernel is not None:
        wanted.append("kernel = ?")
        values.append(kernel)
    where = f" where {' and '.join(wanted)}" if wanted else ""
    with _opened() as database:
        rows = database.execute(
            f"select {', '.join(_COLUMNS)} from runs{where} order by at desc, id desc limit ?",
            (*values, most),
        ).fetchall()
    try:
        return [Run(**dict(zip(_COLUMNS, row, strict=True)) | {"report": json.loads(row[-1])}) for row in rows]
    except (ValueError, TypeError):
        raise HistoryError(f"the history {history_file()} holds something that is not a report") from None


def _is_there() -> bool:
    try:
        return history_file().exists()
    except OSError as error:
        raise HistoryError(f"the history {history_file()} cannot be read ({error.strerror})") from None


def _storable(text: str) -> str:
    """The text without what UTF-8 has no bytes for, as a file's name may have."""
    return shown(text)


@contextmanager
def _opened() -> Iterator[sqlite3.Connection]:
    """The database in one transaction."""
    path = history_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path, timeout=LOCKED_SECONDS)) as database:
            version = int(database.execute("pragma user_version").fetchone()[0])
            if version > VERSION:
                raise HistoryError(f"the history {path} was written by a newer warpwright and is left alone")
            if version < VERSION:
                database.execute("pragma journal_mode = wal")
                database.executescript(f"{_TABLES} pragma user_version = {VERSION};")
            with database:
                yield database
    except sqlite3.DatabaseError as error:
        raise HistoryError(f"the history {path} cannot be used ({error}); the verdict does not depend on it") from None
    except OSError as error:
        raise HistoryError(f"the history {path} cannot be used ({error.strerror})") from None
