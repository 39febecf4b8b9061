"""The program's own test, before a change and after it: built and run in copies of the project, in turns.

What the user wrote in `warpwright.toml` is run with the user's program, so it is done in a folder alone that the user
allowed. Each side has a copy of its own, is kept from what lies outside of it, from the network and from the user's
environment, and ends with its deadline.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from warpwright.missing import Missing
from warpwright.progress import CancelledError, IsCancelled, Progress
from warpwright.sandbox.confine import Policy, system_folders
from warpwright.toolchain.find import find_toolchain
from warpwright.toolchain.process import Finished, run_limited
from warpwright.toolchain.program import ProgramTest
from warpwright.verify.program_output import compare_outputs
from warpwright.verify.report import ProgramOutcome, ProgramSide, ProgramStatus

LEAST_RUNS = 2
"""Of each side: what differs between two runs of one program is no result of it."""
MOST_RUNS = 5
ENOUGH_SECONDS = 10.0
"""Of runs, after which there are no more than LEAST_RUNS."""
MOST_BYTES = 2 << 30
MOST_FILES = 50_000
OUTPUT_BYTES = 8 << 20
_NOT_STARTED = (126, 127)
"""The exit statuses of a shell whose command is not found, cannot be executed, or lacks a library. Source:
POSIX.1-2017, Shell Command Language, 2.8.2."""
_LEFT_OUT = frozenset({".git", ".hg", ".svn", "node_modules", ".venv", "venv", "__pycache__"})
_PASSED_ON = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "CC",
    "CXX",
)


class _NotRunError(Exception):
    """Nothing can be said of the candidate; the message is one sentence."""


Texts = Mapping[Path, bytes]
"""Files of the project by their absolute paths, and what they hold on one side."""


def run_program(
    test: ProgramTest,
    original: Texts,
    candidate: Texts,
    *,
    is_trusted: bool,
    progress: Progress,
    is_cancelled: IsCancelled,
) -> ProgramOutcome:
    """Build and run both sides, in turns, and compare what they print and how they end. Takes as long as the program:
    never call it in a server's process. Raises CancelledError."""
    if not is_trusted:
        reason = (
            f"{test.folder} is not an allowed folder: `warpwright trust {test.folder}` allows what it builds and runs."
        )
        return ProgramOutcome(ProgramStatus.NOT_RUN, reason, test.build, test.run)
    if sys.platform == "win32":
        return ProgramOutcome(ProgramStatus.NOT_RUN, "Programs are not run on Windows.", test.build, test.run)
    try:
        with tempfile.TemporaryDirectory(prefix="warpwright-program-") as work:
            sides = [
                _made(test, Path(work) / place, texts, is_cancelled)
                for place, texts in (("a", original), ("b", candidate))
            ]
            return _Both(test, sides[0], sides[1], progress, is_cancelled).outcome()
    except _NotRunError as error:
        return ProgramOutcome(ProgramStatus.NOT_RUN, str(error), test.build, test.run)
    except OSError as error:
        said = f"The program's test could not be run ({error.strerror})."
        return ProgramOutcome(ProgramStatus.NOT_RUN, said, test.build, test.run)


@dataclass(frozen=True, slots=True)
class _Both:
    """The copies of both sides, ready to be built."""

    test: ProgramTest
    original: Path
    candidate: Path
    progress: Progress
    is_cancelled: IsCancelled

    def outcome(self) -> ProgramOutcome:
        test = self.test
        built = [
            self._build(folder, name) for folder, name in ((self.original, "original"), (self.candidate, "candidate"))
        ]
        if built[0].status or built[0].stopped:
            raise _NotRunError(f"The original's program could not be built: {built[0].ending}.")
        if built[1].status or built[1].stopped:
            reason = f"The candidate's program could not be built: {built[1].ending}."
            return ProgramOutcome(ProgramStatus.DIFFERS, reason, test.build, test.run)
        runs: tuple[list[_Ran], list[_Ran]] = ([], [])
        started = time.monotonic()
        while len(runs[0]) < LEAST_RUNS or (len(runs[0]) < MOST_RUNS and time.monotonic() - started < ENOUGH_SECONDS):
            for folder, name, done in zip(
                (self.original, self.candidate), ("original", "candidate"), runs, strict=True
            ):
                self.progress(f"Running the {name}'s program ({len(done) + 1})", 0.99)
                done.append(self._ran(folder, test.run))
                if done[-1].stopped:
                    return self._stopped(name, done[-1])
                if name == "original" and done[-1].status in _NOT_STARTED:
                    raise _NotRunError(f"The program could not be started by `{test.run}`: {done[-1].ending}.")
        sides = [
            ProgramSide(each[0].status, tuple(ran.seconds for ran in each), start.seconds)
            for each, start in zip(runs, built, strict=True)
        ]
        return self._judged(runs, sides)

    def _build(self, folder: Path, name: str) -> _Ran:
        if not self.test.build:
            return _Ran(0, "", "", 0.0)
        self.progress(f"Building the {name}'s program", 0.99)
        return self._ran(folder, self.test.build)

    def _stopped(self, name: str, ran: _Ran) -> ProgramOutcome:
        if name == "original":
            raise _NotRunError(f"The original's program {ran.stopped}.")
        reason = f"The candidate's program {ran.stopped}."
        return ProgramOutcome(ProgramStatus.DIFFERS, reason, self.test.build, self.test.run)

    def _judged(self, runs: tuple[list[_Ran], list[_Ran]], sides: Sequence[ProgramSide]) -> ProgramOutcome:
        test = self.test
        mine, theirs = runs
        statuses = {ran.status for ran in mine}
        if len(statuses) > 1:
            raise _NotRunError("The original's program does not end with the same exit status each time.")
        made = ProgramOutcome(ProgramStatus.SAME, "", test.build, test.run, sides[0], sides[1], "exit status")
        if other := next((ran for ran in theirs if ran.status not in statuses), None):
            ends = f"ends with {other.status}, and the original's with {mine[0].status}"
            reason = f"The candidate's program {ends}: {other.ending}."
            return replace(made, status=ProgramStatus.DIFFERS, reason=reason)
        if test.compare == "status":
            return made
        compared = compare_outputs([ran.output for ran in mine], [ran.output for ran in theirs], test.tolerance)
        if compared.is_restless:
            return replace(made, compared="exit status; the output differs from run to run")
        numbers = "1 number that varies or is a time" if compared.masked == 1 else "the numbers that vary or are times"
        masked = f", but for {numbers}" if compared.masked else ""
        made = replace(made, compared=f"output and exit status{masked}")
        reason = f"The candidate's program prints something else: {compared.why}."
        return replace(made, status=ProgramStatus.DIFFERS, reason=reason) if compared.why else made

    def _ran(self, folder: Path, command: str) -> _Ran:
        temporary = folder.parent / "tmp"
        temporary.mkdir(exist_ok=True)
        toolchain = find_toolchain()
        tools = () if isinstance(toolchain, Missing) else (str(toolchain.nvcc.parent),)
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        environment["PATH"] = os.pathsep.join([environment.get("PATH", os.defpath), *tools])
        environment |= {"HOME": str(temporary), "TMPDIR": str(temporary)}
        home = (
            () if isinstance(toolchain, Missing) else map(str, (toolchain.nvcc.parent.parent, *toolchain.include_dirs))
        )
        reads = (*system_folders(), *home, *(str(self.test.folder / each) for each in self.test.reads))
        policy = Policy(reads=reads, writes=(str(folder.parent),), devices=True)
        started = time.monotonic()
        finished = run_limited(
            ["/bin/sh", "-c", command],
            directory=folder,
            environment=environment,
            timeout=self.test.seconds,
            output_bytes=OUTPUT_BYTES,
            memory_bytes=None,
            is_cancelled=self.is_cancelled,
            policy=policy,
        )
        return _ran(finished, time.monotonic() - started, folder)


@dataclass(frozen=True, slots=True)
class _Ran:
    status: int
    output: str
    stopped: str
    seconds: float

    @property
    def ending(self) -> str:
        """How it went, in words: its last line."""
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        return self.stopped or (f"`{lines[-1][:120]}`" if lines else f"exit status {self.status}")


def _ran(finished: Finished, seconds: float, folder: Path) -> _Ran:
    """Without the names of the copies' folders, which differ."""
    output = finished.output.replace(str(folder.resolve()), ".").replace(str(folder), ".")
    return _Ran(finished.returncode, output, finished.stopped, round(seconds, 4))


def _made(test: ProgramTest, place: Path, texts: Texts, is_cancelled: IsCancelled) -> Path:
    """A copy of the project with one side's texts in it. Raises _NotRunError."""
    source = test.folder.resolve()
    folder = place / (source.name or "project")
    folder.mkdir(parents=True)
    files = size = 0
    for root, each in _files(source):
        if is_cancelled():
            raise CancelledError
        path = Path(root) / each
        files, size = files + 1, size + (0 if path.is_symlink() else path.stat().st_size)
        if files > MOST_FILES or size > MOST_BYTES:
            raise _NotRunError(
                f"{test.folder} has more than {MOST_FILES:,} files or {MOST_BYTES >> 30} GB, which is not copied."
            )
        target = folder / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target, follow_symlinks=False)
    for path, data in texts.items():
        try:
            inside = path.resolve().relative_to(source)
        except ValueError:
            raise _NotRunError(f"{path} does not lie in {test.folder}, whose program is tested.") from None
        (folder / inside).unlink(missing_ok=True)  # it may be a link out of the copy
        (folder / inside).write_bytes(data)
    return folder


def _files(source: Path) -> Iterator[tuple[str, str]]:
    """Regular files and links, without the folders of version control and of libraries for other languages."""
    for root, folders, names in os.walk(source):
        linked = [name for name in folders if (Path(root) / name).is_symlink()]
        folders[:] = [name for name in folders if name not in _LEFT_OUT and name not in linked]
        for name in (*names, *linked):
            path = Path(root) / name
            if path.is_symlink() or path.is_file():
                yield root, name
