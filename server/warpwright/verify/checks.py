"""What a kernel can be compared with beside another text of it: its reference in torch, its committed version."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from warpwright.facts.analyze import analyze
from warpwright.facts.model import Program
from warpwright.missing import Missing
from warpwright.problems.infer import find_problem
from warpwright.problems.model import Problem
from warpwright.syntax.source import Source, read_include
from warpwright.toolchain.committed import committed_text


@dataclass(frozen=True, slots=True)
class Check:
    """One comparison: with what, for people, and the goal that `verify` is asked for."""

    against: str
    original: Source
    goal: str


def checks_of(program: Program, name: str, left_out: list[str]) -> Iterator[Check]:
    """What the kernel can be compared with; what it cannot be compared with goes to `left_out`, one sentence each."""
    kernel = program.kernel(name)
    problem = find_problem(program, kernel) if kernel is not None else None
    reference = problem.reference if isinstance(problem, Problem) else None
    if reference is None:
        left_out.append("It has no torch reference.")
    else:
        yield Check(f"its torch reference {reference.name}", program.source, "reference")
    path = program.source.path
    committed = committed_text(path)
    if isinstance(committed, Missing):
        left_out.append(committed.reason)
    elif _lines(committed) == _lines(program.source.data):
        left_out.append(f"{PurePath(path).name} is as it was committed.")
    elif analyze(Source(path, committed), read_include, program.assume).kernel(name) is None:
        left_out.append(f"The committed version of {PurePath(path).name} has no kernel {name}.")
    else:
        yield Check("its last committed version", Source(path, committed), "speed")


def _lines(data: bytes) -> list[bytes]:
    """A repository may keep other line ends than the folder that is worked in."""
    return data.splitlines()
