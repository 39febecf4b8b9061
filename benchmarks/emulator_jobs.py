"""The kernels that the emulator is compared with a GPU on, each launched once at the shape of its profile."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from emulator_lines import Row, compare
from warpwright.emulator.launch import ArrayArgument, Launch, Run, ScalarArgument, run
from warpwright.emulator.profile import SEED, machine_code_of
from warpwright.emulator.program import Program, as_machine_code
from warpwright.emulator.ready import ARCH, make_ready
from warpwright.emulator.values import arguments_of
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Kernel
from warpwright.facts.model import Program as Unit
from warpwright.missing import Missing
from warpwright.problems.infer import find_problem
from warpwright.problems.model import Case, Problem
from warpwright.syntax.source import read_include, read_source
from warpwright.toolchain.compile import compile_cubin
from warpwright.toolchain.machine_code import MemoryInstruction

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Job:
    unit: Unit
    kernel: Kernel
    problem: Problem
    case: Case
    program: Program
    arguments: list[ArrayArgument | ScalarArgument]
    code: Sequence[MemoryInstruction]
    result: Run
    seconds: float

    @property
    def name(self) -> str:
        return f"{Path(self.unit.source.path).parent.name}/{self.kernel.name}"


def jobs_of(path: Path) -> Iterator[Job | str]:
    """The kernels of a file, each launched once in the emulator; a sentence for one that cannot be."""
    unit = analyze(read_source(path), read_include)
    code = machine_code_of(compile_cubin(unit.source, arch=ARCH))
    if isinstance(code, Missing):
        raise SystemExit(f"{path}: {code}")
    for kernel in unit.defined_kernels:
        yield launched(unit, kernel, code)


def launched(unit: Unit, kernel: Kernel, code: Mapping[str, Sequence[MemoryInstruction]]) -> Job | str:
    """One kernel at the shape of its profile; where `code` has none of its own, accesses count as PTX has them."""
    problem = find_problem(unit, kernel)
    if isinstance(problem, Missing):
        return f"{Path(unit.source.path).parent.name}/{kernel.name}: {problem}"
    program = make_ready(unit, kernel, problem)
    if isinstance(program, Missing):
        return f"{Path(unit.source.path).parent.name}/{kernel.name}: {program}"
    mine = code.get(program.kernel, ())
    program = as_machine_code(program, mine)
    case = problem.case(problem.profile or {})
    arguments = arguments_of(problem, case, seed=SEED)
    start = time.perf_counter()
    result = run(program, Launch(case.grid, case.block, case.dynamic_shared_bytes), arguments)
    return Job(unit, kernel, problem, case, program, arguments, mine, result, time.perf_counter() - start)


def digest(arrays: Mapping[str, bytes]) -> str:
    """SHA-256 of the bytes of arrays, in the order of their names."""
    whole = hashlib.sha256()
    for name in sorted(arrays):
        whole.update(arrays[name])
    return whole.hexdigest()


def files_of(given: Sequence[Path] = ()) -> list[Path]:
    """The files whose kernels are compared."""
    return list(given) or sorted([*ROOT.glob("csrc_samples/*/*/kernel.cu"), *ROOT.glob("tests/emulator/kernels/*.cu")])


def line_counts(job: Job, measured: Sequence[Row]) -> dict[str, Any]:
    """The lines of a kernel, how many agree, and those that differ with their causes."""
    lines = compare(job.program, job.result, job.code, measured)
    differing = [asdict(line) for line in lines if line.cause is not None]
    return {"lines": len(lines), "lines_equal": len(lines) - len(differing), "lines_that_differ": differing}


def summary(kernels: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    return {
        "kernels": len(kernels),
        "bit_equal": sum(not k["different"] for k in kernels),
        "lines": sum(k["lines"] for k in kernels),
        "lines_equal": sum(k["lines_equal"] for k in kernels),
    }
