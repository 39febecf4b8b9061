"""Does the emulator compute and count what a GPU does? Every kernel of the samples and of tests/emulator/kernels.

    python benchmarks/emulator_gpu.py --write

Needs a CUDA GPU, nvcc and ncu. Each kernel is launched once, at the shape that `warpwright profile` would take, on the
same bytes: by the emulator, and under Nsight Compute on the GPU. Compared are the outputs, bit for bit, and for each
source line the sectors of global and local memory and the wavefronts of shared memory. Writes emulator_gpu.json, with
what was measured and every line that differs, and docs/emulator.md; exits 1 where an output differs that should not.
`--emulate` stops before the GPU. `emulator_page.py` emulates again and compares with what was measured.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from emulator_jobs import Job, digest, files_of, jobs_of, line_counts, summary
from emulator_lines import measured_rows
from emulator_page import write
from warpwright import __version__
from warpwright.emulator.launch import ArrayArgument, ScalarArgument
from warpwright.emulator.ready import ARCH
from warpwright.missing import Missing
from warpwright.progress import never_cancelled
from warpwright.toolchain.compile import compile_cubin
from warpwright.toolchain.names import instance_of
from warpwright.toolchain.ncu import COLLECT, exported, find_ncu
from warpwright.toolchain.ncu_tables import Instruction as Executed
from warpwright.toolchain.ncu_tables import instructions, kernel_of, table_rows

TOLERANCE = 1e-6
"""How far a sum of floats may be off whose order is the machine's own, in parts of the largest output: matrix
instructions and float atomics."""
APPROXIMATE = {"ex2", "lg2", "sin", "cos", "tanh", "rsqrt", "rcp", "sqrt", "div"}


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


def on_gpu(jobs: list[Job], ncu: Path) -> tuple[list[dict[str, bytes]], dict[str, list[Executed]]]:
    """What the kernels of one file leave on the GPU, and the instructions that each executed."""
    unit = jobs[0].unit
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        lay_out(jobs, directory)
        report = directory / "counted.ncu-rep"
        launcher = Path(__file__).with_name("gpu_launch.py")
        command = [str(ncu), *COLLECT, "-f", "-o", str(report), sys.executable, str(launcher), folder]
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
        if finished.returncode:
            raise SystemExit(f"{unit.source.path}: {finished.stdout[-500:]}{finished.stderr[-500:]}")
        with exported(ncu, report, never_cancelled) as (table, _):
            found = instructions(table_rows(table))
        after = [
            {
                a.name: (directory / f"{number}.{a.name}.after").read_bytes()
                for a in job.arguments
                if isinstance(a, ArrayArgument)
            }
            for number, job in enumerate(jobs)
        ]
    return after, {job.kernel.name: [i for i in found if kernel_of(i.function) == job.kernel.name] for job in jobs}


def compared_outputs(job: Job, after: Mapping[str, bytes]) -> dict[str, Any]:
    """How the outputs differ: scalars that are not bit-equal, and the most units in the last place."""
    different, ulps, relative, scaled = 0, 0, 0.0, 0.0
    for name, own in job.result.outputs.items():
        theirs = np.frombuffer(after[name], dtype=own.dtype)
        bits = np.dtype(f"i{own.dtype.itemsize}")
        a, b = own.reshape(-1).view(bits), theirs.view(bits)
        unequal = a != b
        different += int(unequal.sum())
        if unequal.any() and own.dtype.kind == "f":
            x, y = own.reshape(-1)[unequal].astype(np.float64), theirs[unequal].astype(np.float64)
            ulps = max(ulps, int(np.abs(ordered(a[unequal]) - ordered(b[unequal])).max()))
            off = np.abs(x - y)
            relative = max(relative, float(np.nanmax(off / np.maximum(np.abs(y), 1e-30), initial=0.0)))
            largest = float(np.nanmax(np.abs(theirs.astype(np.float64)), initial=1e-30))
            scaled = max(scaled, float(np.nanmax(off, initial=0.0)) / largest)
    opcodes = {i.opcode for i in job.program.steps if "approx" in i.modifiers or "full" in i.modifiers}
    floating = any(i.opcode in {"atom", "red"} and i.modifiers[-1].startswith("f") for i in job.program.steps)
    return {
        "different": different,
        "max_ulp": ulps,
        "max_relative": relative,
        "max_of_largest": scaled,
        "approximate": sorted(opcodes & APPROXIMATE),
        "float_atomics": floating,
        "matrix": any(i.opcode in {"mma", "wmma"} for i in job.program.steps),
    }


def is_wrong(result: Mapping[str, Any]) -> bool:
    """Whether outputs differ that should not: by a bit, or where the machine chooses the order of a sum, by TOLERANCE.

    The approximate functions are compared one by one, by emulator_numerics.py.
    """
    if not result["different"] or result["approximate"]:
        return False
    return not (result["matrix"] or result["float_atomics"]) or result["max_of_largest"] > TOLERANCE


def device_name() -> str:
    """The GPU and its driver."""
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def ordered(bits: Any) -> Any:
    """Floats' bits as whole numbers in the order of the floats."""
    wide = bits.astype(np.int64)
    return np.where(wide < 0, np.iinfo(bits.dtype).min - wide, wide)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/emulator_gpu.json")
    parser.add_argument("--emulate", action="store_true", help="run the emulator's half only, without a GPU")
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    ncu = find_ncu()
    if isinstance(ncu, Missing) and not options.emulate:
        print(ncu, file=sys.stderr)
        return 2
    kernels: list[dict[str, Any]] = []
    wrong = 0
    for path in files_of(options.files):
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
        outputs, executed = on_gpu(jobs, ncu)
        for job, after in zip(jobs, outputs, strict=True):
            result = compared_outputs(job, after)
            measured = measured_rows(executed[job.kernel.name])
            wrong += is_wrong(result)
            counts = line_counts(job, measured)
            kernels.append(
                {
                    "kernel": job.name,
                    "shape": dict(job.case.shape),
                    "outputs": digest({name: after[name] for name in job.result.outputs}),
                    "faults": [str(fault.kind) for fault in job.result.faults],
                    **result,
                    **counts,
                    "measured": measured,
                }
            )
            print(
                f"{job.name:40} {result['different']:8} differ, {result['max_ulp']:4} ulp; "
                f"lines {counts['lines_equal']} of {counts['lines']}"
            )
    if kernels:
        print(json.dumps(summary(kernels)))
        if options.write:
            about = {
                "command": "python benchmarks/emulator_gpu.py --write",
                "hardware": device_name(),
                "versions": {"warpwright": __version__, "python": platform.python_version(), "numpy": np.__version__},
            }
            write(about, kernels)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
