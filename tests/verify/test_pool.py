"""Warm processes: what becomes of one that hangs, dies, floods or lies, and of the next request. All are real."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.processes import gone, running
from warpwright.progress import CancelledError, never_cancelled
from warpwright.sandbox.confine import Policy
from warpwright.verify import pool as pools
from warpwright.verify.child import ChildEndedError, Event, Kind
from warpwright.verify.pool import Pool

CHILD = """
import json, os, subprocess, sys, time
sink = os.fdopen(int(sys.argv[-1]), "w", buffering=1)
def emit(**event): sink.write(json.dumps(event) + "\\n")
time.sleep(float(sys.argv[1]))
emit(event="hello", pid=os.getpid())
for line in sys.stdin:
    request = json.loads(line)
    what = request["what"]
    emit(event="begin", pid=os.getpid(), **request.get("begin", {}))
    if what == "sleep": time.sleep(request["seconds"])
    if what == "hang": subprocess.Popen(["sleep", SLEEP], start_new_session=True); time.sleep(600)
    if what == "exit": print("good-bye", flush=True); os._exit(7)
    if what == "crash": os.kill(os.getpid(), 11)
    if what == "killed": os.kill(os.getpid(), 9)
    if what == "flood":
        while True: print("x" * 1000)
    if what == "nonsense": sink.write(request["words"] + "\\n"); time.sleep(600)
    if what == "memory": emit(event="error", text="kept" if bytearray(1 << 30) else ""); continue
    if what == "fault": emit(event="fault", text="an illegal memory access"); continue
    if what == "spent": emit(event="done", spent=True); continue
    if what == "stop reading": time.sleep(600)
    emit(event="done", pid=os.getpid(), size=len(line))
"""
SLEEP = f"800.{os.getpid():07}"  # so long sleeps no process of another test


@pytest.fixture
def kind(tmp_path: Path) -> Kind:
    program = tmp_path / "child.py"
    program.write_text(f"SLEEP = {SLEEP!r}\n{CHILD}")
    command = (sys.executable, str(program), "0")
    return Kind("the child", command, {"PATH": os.environ["PATH"]}, Policy(), step_seconds=1.0, total_seconds=8.0)


@pytest.fixture
def make(kind: Kind) -> Iterator[Callable[..., Pool]]:
    made: list[Pool] = []

    def pool(**changes: Any) -> Pool:
        made.append(Pool(lambda: replace(kind, **changes)))
        return made[-1]

    yield pool
    for each in made:
        each.close()


def ask(pool: Pool, what: str, **more: Any) -> list[Event]:
    return list(pool.run({"what": what, **more}, never_cancelled))


def is_gone(pid: int) -> bool:
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


def test_one_process_answers_one_request_after_another(make: Callable[..., Pool]) -> None:
    pool = make()
    pids = {ask(pool, "work")[-1]["pid"] for _ in range(4)}
    assert len(pids) == 1
    assert pool.greeting(never_cancelled)["pid"] in pids
    pool.close()
    assert is_gone(pids.pop())


def test_there_are_as_many_as_there_are_requests_at_once(make: Callable[..., Pool]) -> None:
    pool = make()
    with ThreadPoolExecutor(3) as threads:
        first = {e[-1]["pid"] for e in threads.map(lambda _: ask(pool, "sleep", seconds=0.5), range(3))}
        second = {e[-1]["pid"] for e in threads.map(lambda _: ask(pool, "sleep", seconds=0.3), range(6))}
    assert len(first) == 3
    assert second <= first


def test_who_waits_for_a_start_takes_one_that_is_given_back_sooner(make: Callable[..., Pool], tmp_path: Path) -> None:
    slow = (tmp_path / "child.py").read_text().replace("time.sleep(float(sys.argv[1]))", "time.sleep(START)")
    (tmp_path / "child.py").write_text(
        f"import os\nSTART = 60 if os.path.exists({str(tmp_path / 'slow')!r}) else 0\n{slow}"
    )
    pool = make()
    busy = pool.run({"what": "sleep", "seconds": 0.5}, never_cancelled)
    first = next(busy)["pid"]
    (tmp_path / "slow").touch()  # whoever starts from now on takes a minute
    with ThreadPoolExecutor(2) as threads:
        later = [threads.submit(ask, pool, "work") for _ in range(2)]
        list(busy)
        assert [each.result(10)[-1]["pid"] for each in later] == [first, first]


@pytest.mark.parametrize(
    ("what", "words", "exit_status"),
    [
        ("hang", "nothing happened for 1 seconds", None),
        ("exit", "ended unexpectedly with exit status 7 (good-bye)", 7),
        ("crash", "crashed (SIGSEGV)", -11),
        ("killed", "was killed by the system, which does that where memory runs out", -9),
        ("flood", "printed more than", None),
        ("nonsense", "wrote something that is not an event", None),
    ],
)
def test_a_process_that_fails_is_said_and_a_fresh_one_takes_over(
    what: str, words: str, exit_status: int | None, make: Callable[..., Pool]
) -> None:
    pool = make(step_seconds=30.0 if what == "flood" else 1.0)
    first = ask(pool, "work")[-1]["pid"]
    with pytest.raises(ChildEndedError, match=r"the child|nothing") as raised:
        ask(pool, what, words="[1, 2")
    assert words in str(raised.value)
    assert raised.value.exit_status == exit_status
    assert raised.value.timed_out == (what == "hang")
    assert is_gone(first)
    assert gone(SLEEP)
    assert ask(pool, "work")[-1]["pid"] != first


@pytest.mark.parametrize("words", ["[]", "null", '{"no": "event"}', '{"event": 3}', "\\ud800", "{" * 5000])
def test_what_is_no_event_is_never_taken_for_one(words: str, make: Callable[..., Pool]) -> None:
    with pytest.raises(ChildEndedError, match="not an event"):
        ask(make(), "nonsense", words=words)


@pytest.mark.parametrize("what", ["fault", "spent"])
def test_after_its_last_event_a_spent_process_goes_and_the_next_is_on_its_way(
    what: str, make: Callable[..., Pool], tmp_path: Path
) -> None:
    pool = make()
    events = ask(pool, what)
    assert events[-1]["event"] == ("fault" if what == "fault" else "done")
    assert is_gone(events[0]["pid"])
    child, until = str(tmp_path / "child.py"), time.monotonic() + 10
    while not running(child) and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(0.2)  # a process that has not yet become the child's program shows another's command
    spare = running(child)
    assert ask(pool, "work")[-1]["pid"] in spare


def test_a_cancel_kills_it_at_once(make: Callable[..., Pool]) -> None:
    pool = make(step_seconds=60.0)
    cancelled = threading.Event()
    pids = []
    with pytest.raises(CancelledError):
        for event in pool.run({"what": "hang"}, cancelled.is_set):
            pids.append(event["pid"])
            if event["event"] == "begin":
                threading.Timer(0.2, cancelled.set).start()
    assert is_gone(pids[0])
    assert gone(SLEEP)
    assert ask(pool, "work")[-1]["event"] == "done"


def test_one_that_never_starts_has_a_deadline_of_its_own(make: Callable[..., Pool], kind: Kind) -> None:
    pool = make(command=(*kind.command[:2], "600"), start_seconds=0.5)
    with pytest.raises(ChildEndedError, match=r"nothing happened for 0\.5 seconds") as raised:
        ask(pool, "work")
    assert raised.value.timed_out


def test_all_steps_together_have_a_deadline(make: Callable[..., Pool]) -> None:
    pool = make(total_seconds=0.5)
    with pytest.raises(ChildEndedError) as raised:
        ask(pool, "sleep", seconds=5)
    assert raised.value.timed_out


def test_long_work_is_waited_for_where_it_is_announced(make: Callable[..., Pool]) -> None:
    assert ask(make(), "sleep", seconds=1.5, begin={"seconds": 5})[-1]["event"] == "done"
    with pytest.raises(ChildEndedError):
        ask(make(), "sleep", seconds=1.5)


def test_memory_has_a_limit(make: Callable[..., Pool]) -> None:
    pool = make(policy=Policy(limits={"AS": 512 << 20}))
    with pytest.raises(ChildEndedError, match="MemoryError"):
        ask(pool, "memory")
    assert ask(pool, "work")[-1]["event"] == "done"


def test_a_long_request_is_taken_whole_and_one_that_is_not_read_has_a_deadline(make: Callable[..., Pool]) -> None:
    assert ask(make(), "work", text="x" * 3_000_000)[-1]["size"] > 3_000_000
    pool = make()
    stuck = pool.run({"what": "stop reading"}, never_cancelled)
    assert next(stuck)["event"] == "hello"
    with pytest.raises(ChildEndedError):
        list(stuck)


def test_one_that_was_idle_for_long_is_not_used(make: Callable[..., Pool], monkeypatch: pytest.MonkeyPatch) -> None:
    pool = make()
    first = ask(pool, "work")[-1]["pid"]
    monkeypatch.setattr(pools, "IDLE_SECONDS", 0.0)
    assert ask(pool, "work")[-1]["pid"] != first
    assert is_gone(first)


def test_one_that_died_while_it_was_idle_is_replaced(make: Callable[..., Pool]) -> None:
    pool = make()
    first = ask(pool, "work")[-1]["pid"]
    os.kill(first, 9)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    assert ask(pool, "work")[-1]["pid"] != first


def test_a_program_that_is_not_there_is_an_error_and_so_is_a_full_disk(
    make: Callable[..., Pool], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FileNotFoundError):
        ask(make(command=("/nowhere/python",)), "work")
    monkeypatch.setattr("tempfile.tempdir", "/dev/null/full")
    with pytest.raises(OSError, match="Not a directory"):
        ask(make(), "work")


def test_all_go_with_the_process_that_started_them(kind: Kind, tmp_path: Path) -> None:
    code = f"""
import sys, time
from warpwright.progress import never_cancelled
from warpwright.sandbox.confine import Policy
from warpwright.verify.child import Kind
from warpwright.verify.pool import Pool
kind = Kind("the child", {kind.command!r}, {dict(kind.environment)!r}, Policy())
pool = Pool(lambda: kind)
pool.prepare()
for event in pool.run({{"what": "hang"}}, never_cancelled):
    print(event["pid"], flush=True)
"""
    starter = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    pid = int(starter.stdout.readline())
    starter.stdout.readline()
    starter.kill()
    starter.wait()
    starter.stdout.close()
    assert is_gone(pid)
    assert gone(SLEEP)
    assert gone(str(tmp_path / "child.py"))


def test_nothing_is_left_behind(make: Callable[..., Pool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    handles = len(list(Path("/proc/self/fd").iterdir()))
    pool = make()
    for what in ("work", "fault", "spent", "work"):
        ask(pool, what)
    with pytest.raises(ChildEndedError):
        ask(pool, "exit")
    pool.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == handles
    assert [each.name for each in tmp_path.iterdir()] == ["child.py"]
