"""Does `warpwright profile` read the truth off a GPU? Kernels whose counts follow from their text, in Nsight Compute.

    PYTHONPATH=server python3 benchmarks/gpu_profile.py --out benchmarks/results

Needs a CUDA GPU, nvcc, ncu, and a Python with torch, tree-sitter, tree-sitter-cuda and platformdirs. Writes
gpu_profile.json with the hardware, the versions and every profile, prints a table, and exits 1 where a count is wrong.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpwright.facts.analyze import analyze
from warpwright.facts.model import Program
from warpwright.facts.profile import Line, Profile
from warpwright.facts.profile_document import profile_json
from warpwright.missing import Missing
from warpwright.progress import never_cancelled, silent
from warpwright.syntax.source import read_include, read_source
from warpwright.toolchain.find import Toolchain, find_toolchain
from warpwright.toolchain.ncu import COLLECT, exported, find_ncu
from warpwright.toolchain.ncu_profile import profiles_of
from warpwright.toolchain.ncu_tables import NcuError
from warpwright.verify.harness import Gpu, find_gpu
from warpwright.verify.profile import measured_profile

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "csrc_samples"

SEVERAL = """\
__global__ void spread(float* a, int step) {
    a[(blockIdx.x * blockDim.x + threadIdx.x) * step] = 1.0f;
}
template <int N> __global__ void turn(float* a) {
    __shared__ float tile[N][N];
    tile[threadIdx.y][threadIdx.x] = a[threadIdx.y * N + threadIdx.x];
    __syncthreads();
    a[threadIdx.y * N + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
int main() {
    float* a;
    cudaMalloc(&a, 1 << 20);
    spread<<<64, 32>>>(a, 1);
    spread<<<32, 32>>>(a, 8);
    turn<16><<<1, dim3(16, 16)>>>(a);
    turn<32><<<1, dim3(32, 32)>>>(a);
    spread<<<16, 32>>>(a, 4);
    return cudaDeviceSynchronize() != cudaSuccess;
}
"""


@dataclass(frozen=True)
class Check:
    """`expected` reads something off the line of a kernel that holds `words`, and says what it must be."""

    sample: str
    kernel: str
    sizes: dict[str, int]
    words: str
    expected: Callable[[Line], tuple[Any, Any]]


CHECKS = (
    Check(
        "elementwise/saxpy", "saxpy", {"n": 1000}, "a * x[i] + y[i]",
        lambda line: ((line.sectors, line.ideal_sectors), (375, 375)),
    ),
    Check(
        "elementwise/saxpy", "saxpy", {"n": 1000}, "a * x[i] + y[i]",
        lambda line: (sum(each.lanes for each in line.traffic), 3000),
    ),
    Check(
        "memory/transpose_tiled", "transpose", {"width": 1024, "height": 1024}, "= tile[threadIdx.x]",
        lambda line: ((line.wavefronts, line.ideal_wavefronts), (1024 * 1024, 1024 * 32)),
    ),
    Check(
        "memory/copy_column", "copy_matrix", {"width": 1024, "height": 1024}, "out[row * width + column]",
        lambda line: ((line.sectors, line.ideal_sectors), (2 * 1024 * 1024, 2 * 1024 * 1024 // 8)),
    ),
)  # fmt: skip


def program(path: Path) -> Program:
    return analyze(read_source(path), read_include)


def line_of(profile: Profile, of: Program, words: str) -> Line:
    number = next(i for i, text in enumerate(of.source.text().splitlines(), 1) if words in text)
    found = profile.line(of.source.path, number)
    return found or Line(of.source.path, number, profile.lines[0].instruction_set, 0, 0)


def of_samples(profiles: list[Profile]) -> Iterator[tuple[str, Any, Any]]:
    """(what, found, expected) of each check; the profiles are kept in the list."""
    for check in CHECKS:
        of = program(SAMPLES / check.sample / "kernel.cu")
        found = measured_profile(of, check.kernel, check.sizes, (), silent, never_cancelled)
        if isinstance(found, Missing):
            yield check.sample, str(found), "a profile"
            continue
        profiles.append(found)
        yield f"{check.sample}: {check.words}", *check.expected(line_of(found, of, check.words))
        yield f"{check.sample}: of this text", bool(found.texts), True


def of_a_report(profiles: list[Profile]) -> Iterator[tuple[str, Any, Any]]:
    """The same of a report of a whole program, which launches one kernel three times and two instances of another."""
    ncu, compiler = find_ncu(), find_toolchain()
    if isinstance(ncu, Missing) or not isinstance(compiler, Toolchain):
        yield "report", f"{ncu} {compiler}", "a report"
        return
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "several.cu"
        source.write_text(SEVERAL, encoding="utf-8")
        for command in (
            [compiler.nvcc, "-lineinfo", "-arch=native", "-o", "several", source],
            [ncu, "-f", "-o", "report", *COLLECT, "./several"],
        ):
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode:
                yield "report", (done.stdout + done.stderr).strip()[-300:], "a report"
                return
        of = program(source)
        texts = {path: each.data for path, each in of.sources.items()}
        try:
            with exported(ncu, Path(folder) / "report.ncu-rep", never_cancelled) as (table, launches):
                yield "launches", [(each.kernel, each.grid) for each in launches], "five"
                found = profiles_of(table, texts, ["spread", "turn"], launches, "report.ncu-rep")
        except NcuError as error:
            yield "report", str(error), "profiles"
            return
        profiles += found
        by_name = {each.function: each for each in found}
        yield (
            "functions",
            sorted(by_name),
            sorted(["spread(float *, int)", "void turn<(int)16>(float *)", "void turn<(int)32>(float *)"]),
        )
        spread = next(each for each in found if each.kernel == "spread")
        yield "first of three launches", line_of(spread, of, "= 1.0f").sectors, 256
        yield "its grid", spread.launch.grid, (64, 1, 1)
        wide = next((each for each in found if "32" in each.function), spread)
        yield "turn<32>", line_of(wide, of, "= tile[threadIdx.x]").wavefronts, 1024
        yield "its block", wide.launch.block, (32, 32, 1)


def kept(profile: Profile) -> Any:
    """A profile as JSON, its files by their path in the repository, or by their name."""
    text = json.dumps(profile_json(profile))
    for file in {*profile.texts, *(line.file for line in profile.lines)}:
        path = Path(file)
        short = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
        text = text.replace(json.dumps(file), json.dumps(short))
    return json.loads(text)


def failures(profiles: list[Profile]) -> list[str]:
    """One line for each count that is wrong; a table of all goes to stdout."""
    wrong = []
    for what, found, expected in (*of_samples(profiles), *of_a_report(profiles)):
        right = found == expected or (expected == "five" and len(found) == 5)
        print(f"{'right' if right else 'WRONG'}  {what}: {found}" + ("" if right else f" (expected {expected})"))
        if not right:
            wrong.append(f"{what}: {found}, not {expected}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for gpu_profile.json")
    arguments = parser.parse_args()
    gpu = find_gpu(never_cancelled)
    profiles: list[Profile] = []
    wrong = failures(profiles)
    document = {
        "command": "PYTHONPATH=server python3 benchmarks/gpu_profile.py --out benchmarks/results",
        "gpu": dict(gpu.details) if isinstance(gpu, Gpu) else str(gpu),
        "wrong": wrong,
        "profiles": [kept(profile) for profile in profiles],
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "gpu_profile.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
