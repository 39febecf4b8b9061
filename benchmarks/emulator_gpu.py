"""Does the emulator compute and count what a GPU does? Every kernel of the samples and of tests/emulator/kernels.

    python benchmarks/emulator_gpu.py --write

Needs a CUDA GPU, nvcc and ncu. Each kernel is launched once, at the shape that `warpwright profile` would take, on the
same bytes: by the emulator, and under Nsight Compute on the GPU. Compared are the outputs, bit for bit, and for each
source line the sectors of global and local memory and the wavefronts of shared memory. Writes emulator_gpu.json, with
every line that differs; exits 1 where an output differs that should not. `--emulate` stops before the GPU.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from warpwright import __version__
from warpwright.emulator.launch import ArrayArgument, Launch, Run, ScalarArgument, run
from warpwright.emulator.lines import lines_of
from warpwright.emulator.profile import SEED, own_files
from warpwright.emulator.program import Program, as_machine_code
from warpwright.emulator.ready import ARCH, machine_code_of, make_ready
from warpwright.emulator.values import arguments_of
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Kernel, Space
from warpwright.facts.model import Program as Unit
from warpwright.facts.profile import Line, Profile
from warpwright.missing import Missing
from warpwright.problems.infer import find_problem
from warpwright.problems.model import Case, Problem
from warpwright.progress import never_cancelled
from warpwright.syntax.source import read_include, read_source
from warpwright.toolchain.compile import compile_cubin
from warpwright.toolchain.names import instance_of
from warpwright.toolchain.ncu import exported, find_ncu
from warpwright.toolchain.ncu_profile import profiles_of

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "emulator_gpu.json"
SECTIONS = [
    "--section",
    "SourceCounters",
    "--section",
    "LaunchStats",
    "--import-source",
    "on",
    "--clock-control",
    "none",
]
APPROXIMATE = {"ex2", "lg2", "sin", "cos", "tanh", "rsqrt", "rcp", "sqrt", "div"}


@dataclass(frozen=True)
class Job:
    unit: Unit
    kernel: Kernel
    problem: Problem
    case: Case
    program: Program
    arguments: list[ArrayArgument | ScalarArgument]
    result: Run
    seconds: float

    @property
    def name(self) -> str:
        return f"{Path(self.unit.source.path).parent.name}/{self.kernel.name}"


def jobs_of(path: Path, only: str | None = None) -> Iterator[Job | str]:
    """The kernels of a file, or one, each launched once in the emulator; a sentence for one that cannot be."""
    unit = analyze(read_source(path), read_include)
    for kernel in unit.defined_kernels:
        if only not in (None, kernel.name):
            continue
        problem = find_problem(unit, kernel)
        if isinstance(problem, Missing):
            yield f"{path.parent.name}/{kernel.name}: {problem}"
            continue
        program = make_ready(unit, kernel, problem)
        if isinstance(program, Missing):
            yield f"{path.parent.name}/{kernel.name}: {program}"
            continue
        code = machine_code_of(unit)
        if not isinstance(code, Missing):
            program = as_machine_code(program, code.get(program.kernel, ()))
        case = problem.case(problem.profile or {})
        arguments = arguments_of(problem, case, seed=SEED)
        start = time.perf_counter()
        result = run(program, Launch(case.grid, case.block, case.dynamic_shared_bytes), arguments)
        yield Job(unit, kernel, problem, case, program, arguments, result, time.perf_counter() - start)


def lay_out(jobs: list[Job], directory: Path) -> None:
    """Write what `gpu_launch.py` launches: the kernels of one file, compiled, and their arguments."""
    compiled = compile_cubin(jobs[0].unit.source, arch=ARCH)
    if compiled.cubin is None:
        raise SystemExit(compiled.reason)
    (directory / "kernels.cubin").write_bytes(compiled.cubin.read_bytes())
    described = []
    for number, job in enumerate(jobs):
        resources = instance_of(compiled.kernels, job.kernel.name, job.problem.instance)
        assert resources is not None
        arguments = []
        for argument in job.arguments:
            if isinstance(argument, ScalarArgument):
                arguments.append({"bytes": argument.data.hex()})
                continue
            file = f"{number}.{argument.name}"
            (directory / file).write_bytes(np.ascontiguousarray(argument.data).tobytes())
            arguments.append({"array": file})
        described.append(
            {
                "function": resources.mangled_name,
                "grid": job.case.grid,
                "block": job.case.block,
                "shared": job.case.dynamic_shared_bytes,
                "arguments": arguments,
            }
        )
    (directory / "jobs.json").write_text(json.dumps(described))


def on_gpu(jobs: list[Job], ncu: Path) -> tuple[list[dict[str, bytes]], dict[str, Profile]]:
    """What the kernels of one file leave on the GPU, and their profiles by kernel."""
    unit = jobs[0].unit
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        lay_out(jobs, directory)
        report = directory / "counted.ncu-rep"
        launcher = Path(__file__).with_name("gpu_launch.py")
        command = [str(ncu), *SECTIONS, "-f", "-o", str(report), sys.executable, str(launcher), folder]
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
        if finished.returncode:
            raise SystemExit(f"{unit.source.path}: {finished.stdout[-500:]}{finished.stderr[-500:]}")
        texts = {str(Path(path).absolute()): source.data for path, source in unit.sources.items()}
        with exported(ncu, report, never_cancelled) as (table, launches):
            found = profiles_of(table, texts, [job.kernel.name for job in jobs], launches)
        after = [
            {
                a.name: (directory / f"{number}.{a.name}.after").read_bytes()
                for a in job.arguments
                if isinstance(a, ArrayArgument)
            }
            for number, job in enumerate(jobs)
        ]
    return after, {profile.kernel: profile for profile in found}


def compared_outputs(job: Job, after: Mapping[str, bytes]) -> dict[str, Any]:
    """How the outputs differ: scalars that are not bit-equal, and the most units in the last place."""
    different, ulps, relative = 0, 0, 0.0
    for name, own in job.result.outputs.items():
        theirs = np.frombuffer(after[name], dtype=own.dtype)
        bits = np.dtype(f"i{own.dtype.itemsize}")
        a, b = own.reshape(-1).view(bits), theirs.view(bits)
        unequal = a != b
        different += int(unequal.sum())
        if unequal.any() and own.dtype.kind == "f":
            x, y = own.reshape(-1)[unequal].astype(np.float64), theirs[unequal].astype(np.float64)
            ulps = max(ulps, int(np.abs(ordered(a[unequal]) - ordered(b[unequal])).max()))
            relative = max(relative, float(np.nanmax(np.abs(x - y) / np.maximum(np.abs(y), 1e-30), initial=0.0)))
    opcodes = {i.opcode for i in job.program.steps if "approx" in i.modifiers or "full" in i.modifiers}
    floating = any(i.opcode in {"atom", "red"} and i.modifiers[-1].startswith("f") for i in job.program.steps)
    return {
        "different": different,
        "max_ulp": ulps,
        "max_relative": relative,
        "approximate": sorted(opcodes & APPROXIMATE),
        "float_atomics": floating,
    }


def digest(job: Job, after: Mapping[str, bytes]) -> str:
    """SHA-256 of the bytes that the GPU left in the arrays that a kernel writes, in the order of their names."""
    whole = hashlib.sha256()
    for name in sorted(job.result.outputs):
        whole.update(after[name])
    return whole.hexdigest()


def device_name() -> str:
    """The GPU and its driver."""
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def ordered(bits: Any) -> Any:
    """Floats' bits as whole numbers in the order of the floats."""
    wide = bits.astype(np.int64)
    return np.where(wide < 0, np.iinfo(bits.dtype).min - wide, wide)


def compared_lines(own: tuple[Line, ...], theirs: tuple[Line, ...]) -> list[dict[str, Any]]:
    """For each line and space that either counted: both totals."""
    rows = []
    both = {(Path(line.file).name, line.line) for line in (*own, *theirs)}
    for file, number in sorted(both):
        for space, field in ((Space.GLOBAL, "sectors"), (Space.LOCAL, "sectors"), (Space.SHARED, "wavefronts")):
            counts = [
                sum(getattr(t, field) or 0 for line in lines if (Path(line.file).name, line.line) == (file, number)
                    for t in line.of(space))
                for lines in (own, theirs)
            ]  # fmt: skip
            if any(counts):
                rows.append(
                    {"file": file, "line": number, "space": space.value, "emulated": counts[0], "measured": counts[1]}
                )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/emulator_gpu.json")
    parser.add_argument("--emulate", action="store_true", help="run the emulator's half only, without a GPU")
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    files = options.files or sorted(
        [*ROOT.glob("csrc_samples/*/*/kernel.cu"), *ROOT.glob("tests/emulator/kernels/*.cu")]
    )
    ncu = find_ncu()
    if isinstance(ncu, Missing) and not options.emulate:
        print(ncu, file=sys.stderr)
        return 2
    kernels: list[dict[str, Any]] = []
    wrong = 0
    for path in files:
        made = list(jobs_of(path))
        for job in made:
            if isinstance(job, str):
                print(f"left out: {job}")
        jobs = [job for job in made if isinstance(job, Job)]
        if not jobs:
            continue
        if options.emulate or isinstance(ncu, Missing):
            for job in jobs:
                state = "whole" if job.result.is_complete and not job.result.faults else str(job.result.faults[:1])
                print(f"{job.name:40} {dict(job.case.shape)} {job.seconds:6.2f} s  {state}")
            continue
        outputs, profiles = on_gpu(jobs, ncu)
        for job, after in zip(jobs, outputs, strict=True):
            result = compared_outputs(job, after)
            theirs = profiles.get(job.kernel.name)
            lines = compared_lines(
                lines_of(job.program, job.result, own_files(job.unit)), theirs.lines if theirs else ()
            )
            same = sum(row["emulated"] == row["measured"] for row in lines)
            must = not result["approximate"] and not result["float_atomics"]
            wrong += bool(result["different"] and must)
            kernels.append(
                {
                    "kernel": job.name,
                    "shape": dict(job.case.shape),
                    "outputs": digest(job, after),
                    "faults": [str(fault.kind) for fault in job.result.faults],
                    **result,
                    "lines": len(lines),
                    "lines_equal": same,
                    "lines_that_differ": [row for row in lines if row["emulated"] != row["measured"]],
                }
            )
            print(
                f"{job.name:40} {result['different']:8} differ, {result['max_ulp']:4} ulp; lines {same} of {len(lines)}"
            )
    if kernels:
        total, same = sum(k["lines"] for k in kernels), sum(k["lines_equal"] for k in kernels)
        exact = sum(not k["different"] for k in kernels)
        print(f"{len(kernels)} kernels, {exact} bit-equal; {same} of {total} lines equal ({same / max(1, total):.1%})")
        if options.write:
            RESULT.parent.mkdir(exist_ok=True)
            summary = {"kernels": len(kernels), "bit_equal": exact, "lines": total, "lines_equal": same}
            about = {
                "command": "python benchmarks/emulator_gpu.py --write",
                "hardware": device_name(),
                "versions": {"warpwright": __version__, "python": platform.python_version(), "numpy": np.__version__},
            }
            RESULT.write_text(json.dumps({**about, **summary, "results": kernels}, indent=1) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
