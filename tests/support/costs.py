"""`pytest --costs`: the processor seconds of each test file and of the dearest tests, their children's included.

Seconds on the clock depend on what else runs; these do not. Time that a test waits costs others nothing, so both are
shown. What a process that several tests share does counts for the test in which it does it, where the system tells of
living children (Linux); else for the one in which it ends.
"""

from __future__ import annotations

import os
import resource
import time
from collections import defaultdict
from collections.abc import Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

_DEAREST = 40
_NAME = "cost"


@dataclass
class Cost:
    processor: float = 0.0
    clock: float = 0.0
    tests: int = 0

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.processor - other.processor, self.clock - other.clock)

    def add(self, processor: float, clock: float) -> None:
        self.processor += processor
        self.clock += clock


def _now() -> Cost:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return Cost(sum(one.ru_utime + one.ru_stime for one in used) + _living("self"), time.monotonic())


def _living(process: str) -> float:
    """Processor seconds of the children of a process that have not ended, and of theirs."""
    used = 0.0
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):  # it ended meanwhile
            for child in children.read_text().split():
                fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
                used += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK") + _living(child)
    return used


@dataclass(eq=False)
class Costs:
    """In each process that runs tests it measures them; in the one that reports it adds up."""

    before: Cost = field(default_factory=_now)
    of_test: dict[str, Cost] = field(default_factory=lambda: defaultdict(Cost))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        self.before = _now()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        now = _now()
        cost, self.before = now - self.before, now
        report.user_properties.append((_NAME, (cost.processor, cost.clock)))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        cost = self.of_test[report.nodeid]
        cost.tests = 1
        processor, clock = cast(tuple[float, float], dict(report.user_properties)[_NAME])
        cost.add(processor, clock)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("what the tests cost, dearest first")
        of_file: dict[str, Cost] = defaultdict(Cost)
        for name, cost in self.of_test.items():
            of_file[name.split("::")[0]].tests += 1
            of_file[name.split("::")[0]].add(cost.processor, cost.clock)
        processor, clock = (sum(getattr(cost, of) for cost in of_file.values()) for of in ("processor", "clock"))
        terminalreporter.line(f"{processor:9.1f} s of processor  {clock:9.1f} s  {len(self.of_test):6} tests  all")
        for name, cost in _dearest(of_file):
            terminalreporter.line(
                f"{cost.processor:9.1f} s of processor  {cost.clock:9.1f} s  {cost.tests:6} tests  {name}"
            )
        for name, cost in _dearest(self.of_test)[:_DEAREST]:
            terminalreporter.line(f"{cost.processor:9.1f} s of processor  {cost.clock:9.1f} s  {name}")


def _dearest(costs: Mapping[str, Cost]) -> list[tuple[str, Cost]]:
    return sorted(costs.items(), key=lambda item: -item[1].processor)
