"""The launches of a kernel that a program makes: each on each way on which it is reached, in the iterations of the
loops around it and with the block sizes that it may have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from warpwright.cuda.paths import launch_paths
from warpwright.cuda.project import files_that_launch
from warpwright.cuda.sites import launch_sites
from warpwright.facts.model import Kernel, Program
from warpwright.missing import Missing
from warpwright.problems.branches import decided
from warpwright.problems.host import Way
from warpwright.problems.infer import find_problem
from warpwright.problems.iterations import iterations, open_blocks, shown
from warpwright.problems.kernel_text import live
from warpwright.problems.model import Problem
from warpwright.syntax.source import Source

MOST_WAYS = 48
"""That are looked at for one kernel."""
MOST_TRIED = 4
"""Launches of which one has to be followed for a kernel to be run as it does."""


@dataclass(frozen=True, slots=True)
class Launched:
    """One launch: how the kernel is run by it, or why that is not known. `said` is what tells it from others of its
    place: the variables of loops and blocks."""

    file: str
    line: int
    said: str
    problem: Problem | Missing

    @property
    def name(self) -> str:
        """
        >>> Launched("src/a.cu", 9, "t = 49", Missing("problem", "", "")).name
        'a.cu:9 with t = 49'
        """
        place = f"{self.file.rpartition('/')[2]}:{self.line}"
        return f"{place} with {self.said}" if self.said else place


def launch_ways(program: Program, kernel: Kernel, files: Sequence[Source]) -> Iterator[tuple[Way, str]]:
    """The ways on which a kernel is launched in some files of a program, each with what variables are taken to be on
    it. Those that the conditions around a launch exclude are left out, unless they exclude all."""
    sources = list(program.sources.values())
    paths = [path for site in launch_sites(files, kernel.name) for path in launch_paths(sources, site)]
    reached = [(path, held) for path in paths if (held := decided(program, path)) is not None]
    for path, held in reached or [(path, {}) for path in paths]:
        blocks = [pinned for pinned in open_blocks(path) if not pinned.keys() & held.keys()]
        for pinned in (*iterations(program, path), *blocks):
            yield Way(path, {**held, **pinned}), shown(pinned)


def first_problem(program: Program, kernel: Kernel) -> Problem | Missing:
    """How to run a kernel as the first launch of it does that can be followed, or why that is not known."""
    whole = live(program)
    for way, _ in islice(launch_ways(whole, kernel, [*whole.sources.values()]), MOST_TRIED):
        problem = find_problem(whole, kernel, way=way)
        if isinstance(problem, Problem):
            return problem
    return find_problem(whole, kernel)


def project_problem(
    program: Program, kernel: Kernel, renamed: dict[str, str] | None = None, like: Kernel | None = None
) -> Problem | Missing:
    """As `find_problem`; a kernel that its program launches nowhere is run as a file of its project does, or of the
    project of `like`, that is compiled by itself. Reads the project's files from disk: never call it in a server's
    process."""
    found = find_problem(program, kernel, renamed, like)
    if kernel.node is None or next(launch_sites(program.sources.values(), kernel.name), None) is not None:
        return found
    own = {str(Path(path).absolute()) for path in program.sources}
    others = files_that_launch((like or kernel).source.path, kernel.name)
    there = (find_problem(_with(program, each), kernel, renamed, like) for each in others if each.path not in own)
    return next((problem for problem in there if isinstance(problem, Problem)), found)


def launches_of(
    program: Program,
    kernel: Kernel,
    renamed: dict[str, str] | None = None,
    like: Kernel | None = None,
    others: Sequence[Source] = (),
) -> list[Launched]:
    """All launches of a kernel, in the order of the text, those of `others` behind: files that are compiled by
    themselves. See `find_problem` for the other parameters."""
    program = live(program)
    found: list[Launched] = []
    for whole, files in (
        (program, [*program.sources.values()]),
        *((_with(program, other), [other]) for other in others if other.path not in program.sources),
    ):
        for way, said in launch_ways(whole, kernel, files):
            if len(found) == MOST_WAYS:
                break
            file, line = way.path.place
            found.append(Launched(file, line, said, find_problem(whole, kernel, renamed, like, way)))
    return found


def _with(program: Program, other: Source) -> Program:
    """The program with a file that is compiled by itself, whose own names come first."""
    return replace(program, sources={other.path: other, **program.sources})
