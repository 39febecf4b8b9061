"""Count memory traffic and branches of HeCBench's CUDA programs with Nsight Compute, instruction by instruction.

Needs an NVIDIA GPU, `nvcc`, `ncu`, `make` and warpwright (on PYTHONPATH is enough). Two steps, so that the second
one needs no GPU:

    python benchmarks/collect_counters.py profile HeCBench/src counters/ --choose 110
    python benchmarks/collect_counters.py convert HeCBench/src counters/ labels.json.gz

`profile` builds each program with its own Makefile (ARCH=sm_90, `-lineinfo` added, `-use_fast_math` dropped), runs it
under `ncu`, and leaves Nsight Compute's tables of the first launch of each kernel in the second folder. `convert` turns
the tables into the label files that `accuracy.py` measures against; labels/README.md describes their fields.

Programs are chosen by a rule, never by hand: those whose Makefile links no library beyond the C and CUDA run-times and
whose `run:` line names no file, in the order of the SHA-256 of their names. The last number of the `run:` line, in
HeCBench the count of repetitions, becomes 1; a program that then launches nothing is run with the line as it stands.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import gzip
import hashlib
import itertools
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from counter_labels import blocks, half, launches

HOW = shlex.split(
    "--section SourceCounters --section LaunchStats --section Occupancy --import-source on "
    "--kernel-id :::1 --clock-control none --cache-control none"
)
LIBRARY = re.compile(r"(?<![\w-])-l\s?([A-Za-z]\w*)")
PLAIN = {"m", "pthread", "cudart", "stdc", "rt", "dl", "gomp"}
NAMES_A_FILE = re.compile(r"/|\.[A-Za-z]|\b(data|input|output|result|benchmark)\b|[<>|;&$]")


def made(folder: Path, *target: str) -> str:
    """The commands that `make` would run for a target, one a line."""
    command = ["make", "-n", "-B", "--no-print-directory", *target, "ARCH=sm_90"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", check=False).stdout


def run_line(folder: Path) -> tuple[str, str] | None:
    """The program and the arguments of the first plain call that the Makefile's `run:` target makes."""
    found = re.search(r"^\s*\./(\S+)(.*)$", made(folder, "run"), re.MULTILINE)
    return (found[1], found[2].strip()) if found else None


def stands_alone(folder: Path) -> bool:
    """Whether a program needs nothing but its own folder: CUDA sources, no further library, no input file."""
    makefile = folder / "Makefile"
    if not makefile.exists() or not any(folder.rglob("*.cu")):
        return False
    if set(LIBRARY.findall(makefile.read_text(errors="replace"))) - PLAIN:
        return False
    call = run_line(folder)
    return call is not None and not NAMES_A_FILE.search(call[1]) and "/" not in call[0]


def choose(sources: Path, leave_out: set[str], count: int) -> list[str]:
    """The first `count` programs that need nothing but themselves, in the order of the SHA-256 of their names."""
    folders = sorted(sources.glob("*-cuda"), key=lambda f: hashlib.sha256(f.name.encode()).hexdigest())
    fitting = (f.name for f in folders if f.name not in leave_out and stands_alone(f))
    return list(itertools.islice(fitting, count))


def once(arguments: str) -> str:
    """Arguments with the last number made 1: `8192 8192 100` -> `8192 8192 1`; without a number they stay as they are.

    >>> once("8192 8192 100"), once("--n=20 -v"), once("")
    ('8192 8192 1', '--n=1 -v', '')
    """
    return re.sub(r"\b\d+(?!.*\d)", "1", arguments)


def build(folder: Path, seconds: float = 240) -> str:
    """Compile a program with its own Makefile's commands. Returns what went wrong in one line, or an empty string."""
    commands = re.sub(r"--?use_fast_math", "", made(folder))
    environment = os.environ | {"NVCC_APPEND_FLAGS": "-lineinfo -w"}
    return bounded(["sh", "-e", "-c", commands], folder, seconds, environment=environment)


def bounded(
    command: list[str],
    folder: Path,
    seconds: float,
    output: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Run a command and its children for at most `seconds`. Returns what went wrong in one line, or an empty string."""
    with Path(output or os.devnull).open("wb") as out:
        process = subprocess.Popen(
            command, cwd=folder, stdout=out, stderr=subprocess.PIPE, env=environment, start_new_session=True
        )
        try:
            _, error = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return f"took over {seconds:.0f} s"
    if process.returncode:
        return (error.decode(errors="replace").strip().splitlines() or [f"exit {process.returncode}"])[-1]
    return ""


def profile(folder: Path, out: Path, seconds: float) -> str:
    """Profile one built program and leave its tables under `out`. Returns what happened, in one line."""
    call = run_line(folder)
    if call is None:
        return "no run line"
    program, own = call
    happened = ""
    for given in dict.fromkeys([once(own), own]):
        report = out / f"{folder.name}.ncu-rep"
        report.unlink(missing_ok=True)
        command = ["ncu", "-f", "-o", str(report.with_suffix("")), *HOW]
        happened = bounded([*command, f"./{program}", *shlex.split(given)], folder, seconds)
        if not report.exists():
            continue
        shown = ["ncu", "--import", str(report), "--csv"]
        source = [*shown, "--page", "source", "--print-source", "cuda,sass"]
        failed = bounded(source, folder, 120, out / f"{folder.name}.source.csv")
        failed = failed or bounded([*shown, "--page", "details"], folder, 120, out / f"{folder.name}.details.csv")
        if failed:
            return f"export: {failed}"
        (out / f"{folder.name}.args").write_text(given)
        return f"ok [{given}] {happened}".strip()
    return f"nothing profiled: {happened}"


def names_in(labels: Iterable[Path]) -> list[str]:
    """The programs of some label files."""
    return [program["prog"] for path in labels for program in json.loads(gzip.decompress(path.read_bytes()))]


def profile_all(args: argparse.Namespace) -> int:
    """Build and profile the programs that the arguments name or choose."""
    missing = [tool for tool in ("make", "nvcc", "ncu") if shutil.which(tool) is None]
    if missing:
        print(f"collect_counters: {', '.join(missing)} not on PATH; install the CUDA toolkit.", file=sys.stderr)
        return 2
    start = time.monotonic()
    out: Path = args.counters.resolve()
    out.mkdir(parents=True, exist_ok=True)
    again = names_in(args.again)
    names = [*again, *choose(args.sources, {*again, *names_in(args.without)}, args.choose), *args.program]
    folders = [args.sources.resolve() / name for name in names]
    print(len(folders), "programs", flush=True)
    with (
        concurrent.futures.ThreadPoolExecutor(args.jobs) as makers,
        concurrent.futures.ThreadPoolExecutor(args.profilers) as profilers,
    ):

        def one(folder: Path, built: concurrent.futures.Future[str]) -> tuple[str, str]:
            if error := built.result():
                return folder.name, f"not built: {error}"
            if time.monotonic() - start > args.budget:
                return folder.name, "left out: no time"
            try:
                return folder.name, profile(folder, out, args.seconds)
            except OSError as problem:
                return folder.name, f"not profiled: {problem}"

        built = [makers.submit(build, folder) for folder in folders]
        running = [profilers.submit(one, f, b) for f, b in zip(folders, built, strict=True)]
        for done in concurrent.futures.as_completed(running):
            name, happened = done.result()
            print(f"{time.monotonic() - start:6.1f} s  {name}: {happened}", flush=True)
    return 0


def convert_all(args: argparse.Namespace) -> int:
    """Turn a folder of tables into a label file."""
    programs = []
    for report in sorted(args.counters.glob("*.source.csv")):
        name = report.name.removesuffix(".source.csv")
        stem = args.counters / name
        program = {
            "prog": name,
            "args": stem.with_suffix(".args").read_text(),
            "launches": launches(stem.with_suffix(".details.csv")),
            "blocks": blocks(report, args.sources / name),
        }
        if program["blocks"] and args.only in (None, half(name)):
            programs.append(program)
    text = json.dumps(programs, separators=(",", ":")).encode()
    args.labels.write_bytes(gzip.compress(text, compresslevel=9, mtime=0))
    instructions = sum(len(block["rows"]) for program in programs for block in program["blocks"])
    print(f"{len(programs)} programs, {instructions} instructions: {args.labels}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = parser.add_subparsers(required=True)
    step = steps.add_parser("profile", help="build and run the programs under ncu")
    step.add_argument("sources", type=Path, help="HeCBench's src folder")
    step.add_argument("counters", type=Path, help="folder for Nsight Compute's tables")
    step.add_argument("--choose", type=int, default=0, metavar="N", help="take N programs by the rule")
    step.add_argument("--program", action="append", default=[], help="take this program too (repeatable)")
    step.add_argument(
        "--again", type=Path, action="append", default=[], metavar="LABELS", help="take the programs of this label file"
    )
    step.add_argument(
        "--without",
        type=Path,
        action="append",
        default=[],
        metavar="LABELS",
        help="choose no program of this label file (repeatable)",
    )
    step.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="compilers at once")
    step.add_argument("--profilers", type=int, default=4, help="programs under ncu at once")
    step.add_argument("--seconds", type=float, default=60, help="longest run of one program")
    step.add_argument("--budget", type=float, default=3600, help="start no program after so many seconds")
    step.set_defaults(do=profile_all)
    step = steps.add_parser("convert", help="turn Nsight Compute's tables into a label file")
    step.add_argument("sources", type=Path, help="HeCBench's src folder")
    step.add_argument("counters", type=Path, help="folder that `profile` filled")
    step.add_argument("labels", type=Path, help="file to write")
    step.add_argument("--only", choices=("look", "blind"), help="only this half of the programs")
    step.set_defaults(do=convert_all)
    args = parser.parse_args()
    code: int = args.do(args)
    return code


if __name__ == "__main__":
    sys.exit(main())
