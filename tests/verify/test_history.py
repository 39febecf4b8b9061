"""Verdicts that are kept: asked once, found again, and never in the way."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.command import run_command
from warpwright.syntax.source import Source
from warpwright.verify import history
from warpwright.verify.history import HistoryError, find_answer, history_file, keep_run, past_runs, question
from warpwright.verify.memory import Memory
from warpwright.verify.plain import PlainError, from_plain, to_plain
from warpwright.verify.report import CaseResult, Report, Speed, Status
from warpwright.verify.run import Observed

FINITE = st.floats(allow_nan=False)
TEXT = st.text(max_size=20)
SHAPES = st.dictionaries(TEXT, st.integers(0, 1 << 40), max_size=3)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | FINITE | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
SPEEDS = st.builds(
    Speed, shape=SHAPES, baseline_us=FINITE, candidate_us=FINITE, speedup=FINITE, ci95=st.tuples(FINITE, FINITE),
    details=st.dictionaries(TEXT, PLAIN, max_size=3),
)  # fmt: skip
CASES = st.builds(
    CaseResult, shape=SHAPES, distribution=TEXT, ok=st.booleans(), max_abs=st.none() | FINITE,
    max_rel=st.none() | FINITE, reason=TEXT,
)  # fmt: skip
OBSERVED = st.builds(
    Observed, status=st.sampled_from(Status), reason=TEXT, cases=st.lists(CASES, max_size=3),
    speed=st.lists(SPEEDS, max_size=3), notes=st.lists(TEXT, max_size=3),
    rates=st.dictionaries(TEXT, FINITE, max_size=2), sandbox=st.lists(TEXT, max_size=2).map(tuple),
)  # fmt: skip

SOURCE = Source("a.cu", b"__global__ void k(float* a) { a[0] = 1; }")
CORRECT = Observed(Status.CORRECT, cases=[CaseResult({"n": 3}, "normal", True, 0.0, 0.0)])
REPORT = Report(Status.CORRECT, kernel="k", backend="emulator", environment={"name": "emulator"})


@pytest.fixture(autouse=True)
def own_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPWRIGHT_DATA_DIR", str(tmp_path / "data"))


@given(OBSERVED)
def test_what_was_seen_comes_back_from_the_disk_as_it_was(observed: Observed) -> None:
    assert from_plain(Observed, json.loads(json.dumps(to_plain(observed)))) == observed


@given(PLAIN)
def test_any_other_data_is_refused_and_never_raises_another_error(data: object) -> None:
    try:
        made = from_plain(Observed, data)
    except PlainError:
        return
    assert isinstance(made, Observed)


def test_an_answer_is_found_by_its_question_alone() -> None:
    asked = question("texts", "kernel")
    assert find_answer(asked) is None
    keep_run(REPORT, SOURCE, "+1 -0 lines", asked, CORRECT)
    kept = find_answer(asked)
    assert kept is not None
    assert kept.observed == CORRECT
    assert kept.environment == {"name": "emulator"}
    assert find_answer(question("texts", "another kernel")) is None


@pytest.mark.parametrize("status", [Status.TIMEOUT, Status.NOT_RUN])
def test_what_may_end_otherwise_the_next_time_is_no_answer(status: Status) -> None:
    asked = question("x")
    keep_run(replace(REPORT, status=status), SOURCE, "", asked, replace(CORRECT, status=status))
    assert find_answer(asked) is None
    assert [run.status for run in past_runs()] == [str(status)]


def test_the_same_question_is_not_paid_twice_unless_it_is_asked_again() -> None:
    paid = []

    def ask(again: bool) -> Observed:
        memory = Memory(again)
        observed, environment = memory.answer(("q",), {"name": "emulator"}, lambda: (paid.append(1), CORRECT)[1])
        memory.keep(replace(REPORT, environment=environment), SOURCE, SOURCE)
        return observed

    first, second = ask(False), ask(False)
    assert len(paid) == 1
    assert second.cases == first.cases
    assert "nothing that decides the verdict has changed since" in second.notes[-1]
    ask(True)
    assert len(paid) == 2
    assert len(past_runs()) == 2


@pytest.mark.parametrize("way", ["broken", "newer", "folder", "locked"])
def test_a_history_that_cannot_be_used_is_a_note_and_the_verdict_is_given(way: str) -> None:
    keep_run(REPORT, SOURCE, "", question("other"), CORRECT)
    path = history_file()
    locker = None
    if way == "broken":
        path.write_bytes(b"no database at all" * 100)
    elif way == "newer":
        with sqlite3.connect(path) as database:
            database.execute(f"pragma user_version = {history.VERSION + 1}")
        database.close()
    elif way == "folder":
        for each in path.parent.iterdir():
            each.unlink()
        path.mkdir()
    else:
        locker = sqlite3.connect(path)
        locker.execute("pragma locking_mode = exclusive")
        locker.execute("begin exclusive")
        locker.execute("delete from runs")
    memory = Memory(again=False)
    observed, _ = memory.answer(("q",), {}, lambda: replace(CORRECT, notes=[]))
    assert observed.status is Status.CORRECT
    memory.keep(REPORT, SOURCE, SOURCE)
    if way != "locked":
        assert "the history" in observed.notes[-1]
        with pytest.raises(HistoryError):
            past_runs()
    if locker is not None:
        locker.close()


def test_a_report_that_is_damaged_is_said_in_a_sentence() -> None:
    keep_run(REPORT, SOURCE, "", "q", CORRECT)
    with closing(sqlite3.connect(history_file())) as database, database:
        database.execute("update runs set report = '{'")
    with pytest.raises(HistoryError, match="holds something that is not a report"):
        past_runs()


def test_a_full_disk_costs_only_the_history(tmp_path: Path) -> None:
    code = """
import resource, signal
from warpwright.syntax.source import Source
from warpwright.verify.memory import Memory
from warpwright.verify.report import Report, Status
from warpwright.verify.run import Observed
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
source = Source("a.cu", b"x")
memory = Memory(False)
observed, _ = memory.answer(("q",), {}, lambda: Observed(Status.CORRECT))
memory.keep(Report(Status.CORRECT), source, source)
assert observed.status is Status.CORRECT
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    keep_run(REPORT, SOURCE, "", question("q"), CORRECT)
    assert len(past_runs()) == 1


def test_a_name_that_is_no_text_is_kept(tmp_path: Path) -> None:
    path = str(tmp_path / "a\udcff.cu")
    keep_run(REPORT, Source(path, b""), "a\udcff.cu", "q", CORRECT)
    assert len(past_runs(path)) == 1


def test_several_threads_write_at_once() -> None:
    def write(number: int) -> None:
        for each in range(5):
            keep_run(REPORT, SOURCE, "", question(number, each), CORRECT)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(past_runs(most=100)) == 20


def test_the_oldest_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_RUNS", 3)
    for number in range(6):
        keep_run(REPORT, SOURCE, str(number), question(number), CORRECT)
    assert [run.what for run in past_runs()] == ["5", "4", "3"]


def test_the_command_shows_the_history(tmp_path: Path) -> None:
    assert "Nothing was verified yet" in run_command("history", cwd=tmp_path).stdout
    speed = Speed({"n": 4096}, 2.0, 1.0, 1.9, (1.8, 2.0))
    faster = replace(REPORT, status=Status.FASTER, backend="cuda:NVIDIA H200", speed=(speed,))
    keep_run(faster, Source(str(tmp_path / "a.cu"), b""), "b.cu, +1 -1 lines", "q", CORRECT)
    keep_run(REPORT, Source(str(tmp_path / "c.cu"), b""), "+2 -0 lines", "r", CORRECT)
    shown = run_command("history", str(tmp_path / "a.cu"), cwd=tmp_path).stdout
    assert "faster 1.9x (NVIDIA H200, 95% CI 1.80-2.00)" in shown
    assert "1.90x" in shown
    assert "b.cu, +1 -1 lines" in shown
    assert "c.cu" not in shown
    rows = json.loads(run_command("history", "--kernel", "k", "--format", "json", cwd=tmp_path).stdout)
    assert [row["status"] for row in rows] == ["correct", "faster"]
    assert rows[1]["report"]["speed"][0]["ci95"] == [1.8, 2.0]
    (tmp_path / "data" / "history.sqlite").write_bytes(b"broken" * 999)
    broken = run_command("history", cwd=tmp_path)
    assert broken.status == 2
    assert "cannot be used" in broken.stderr
