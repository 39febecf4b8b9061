"""What does `optimize` find for the kernels of real programs, which nobody wrote for this project?

    git clone https://github.com/zjin-lcf/HeCBench && git -C HeCBench checkout f27000a51
    python benchmarks/optimize_programs.py HeCBench/src --pack hec.tgz [--labels FILE... | --every K/N]
    mkdir sources && tar xzf hec.tgz -C sources
    PYTHONPATH=server:benchmarks python3 benchmarks/optimize_programs.py sources --out DIR [--seconds N] [--part K/N]

`--pack` puts the CUDA sources of the labelled programs (labels/README.md) into one file, with the list of their kernels
and the flags that their Makefiles compile them with; it needs `make`. With `--every K/N` it packs every N-th program,
by name, from the K-th, with those of their kernels that can be run and in which a rule finds a pitfall: with `2/2` the
half that nobody looks at who works on rewrites. No text of a program is in this repository.

The second command searches every kernel of that list for speed, with the rewrites in their fixed order and no language
model, on the GPU where there is one and in the emulator otherwise. Writes programs_cuda.json or programs_emulator.json
(with `--part`, `_K` more), again after each kernel: the command, the hardware and the versions, and for each kernel the
rules that found a pitfall (errors and warnings), why its problem cannot be inferred, the candidates with their
verdicts, measured and predicted speedups, the best, and why each other rewrite declines. Exits 1 where a candidate that
was offered was not correct.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import math
import platform
import re
import sys
import tarfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hardware import processor
from occupancy import COMMIT, commands
from optimize import verdict
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Assumptions, Kernel, Program
from warpwright.missing import Missing
from warpwright.optimize.optimize import optimize
from warpwright.problems.infer import find_problem
from warpwright.progress import never_cancelled
from warpwright.rules.base import Severity
from warpwright.rules.registry import run_rules
from warpwright.syntax.flags import parse_flags
from warpwright.syntax.names import unqualified
from warpwright.syntax.source import include_reader, read_source
from warpwright.toolchain.find import find_toolchain
from warpwright.verify.harness import find_gpu

LABELS = Path(__file__).parent / "labels" / "hecbench_dev.json.gz"
PITFALL = (Severity.ERROR, Severity.WARNING)
SOURCES = (".cu", ".cuh", ".h", ".hpp", ".hh", ".c", ".cpp", ".cc", ".inl", ".inc")
LIST = "kernels.json"
"""In a packed folder: [{program, kernel, files: [[path, flags], ...]}, ...]."""


def pack(sources: Path, labels: list[Path], out: Path) -> int:
    """Write the sources that the labelled programs need, and the list of kernels. Returns the number of kernels."""
    rows: list[dict[str, Any]] = []
    programs = [program for path in labels for program in json.loads(gzip.decompress(path.read_bytes()))]
    for program in programs:
        names = dict.fromkeys(kernel_name(launch["kernel"]) for launch in program["launches"])
        files = compiled_files(sources, program["prog"])
        rows += [{"program": program["prog"], "kernel": name, "files": files} for name in names]
    write_pack(sources, rows, out)
    return len(rows)


def pack_every(sources: Path, part: str, out: Path) -> int:
    """As `pack`, of every N-th program from the K-th, for the `part` "K/N": kernels with a pitfall and a problem."""
    first, step = (int(number) for number in part.split("/"))
    rows: list[dict[str, Any]] = []
    for folder in sorted(path for path in sources.iterdir() if path.name.endswith("-cuda"))[first - 1 :: step]:
        files = compiled_files(sources, folder.name)
        names: dict[str, None] = {}
        for file in files:
            program, _ = analysed(file, sources)
            troubled = {finding.kernel for finding in run_rules(program) if finding.severity in PITFALL}
            names |= dict.fromkeys(
                unqualified(kernel.name)
                for kernel in program.defined_kernels
                if kernel.name in troubled and not isinstance(find_problem(program, kernel), Missing)
            )
        rows += [{"program": folder.name, "kernel": name, "files": files} for name in names]
    write_pack(sources, rows, out)
    return len(rows)


def compiled_files(sources: Path, program: str) -> list[tuple[str, list[str]]]:
    """The files that a program's Makefile compiles and their flags, below `sources`."""
    here = f"-I{sources.resolve()}/"
    return [
        (path.relative_to(sources).as_posix(), [flag.replace(here, "-I") for flag in flags])
        for path, flags in commands(sources / program)
    ]


def write_pack(sources: Path, rows: list[dict[str, Any]], out: Path) -> None:
    """The list and the folders of its programs; what is no text of a program, such as its input, is left out."""
    folders = dict.fromkeys(row["program"] for row in rows)

    def is_source(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        return entry if entry.isdir() or Path(entry.name).suffix in SOURCES else None

    with tarfile.open(out, "w:gz") as tar:
        listed = json.dumps(rows, indent=1).encode()
        entry = tarfile.TarInfo(LIST)
        entry.size = len(listed)
        tar.addfile(entry, io.BytesIO(listed))
        for name in (*folders, "include"):
            tar.add(sources / name, name, filter=is_source)


def kernel_name(signature: str) -> str:
    """
    >>> kernel_name("void <unnamed>::fill<float, 2>(T1 *, int)"), kernel_name("saxpy(float, float *)")
    ('fill', 'saxpy')
    """
    plain = re.sub(r"<unnamed>::|\(anonymous namespace\)::", "", signature)
    return unqualified(re.split(r"[<(]", plain, maxsplit=1)[0].split()[-1])


def searched(row: dict[str, Any], sources: Path, seconds: float) -> dict[str, Any]:
    """One search: the row of the result."""
    started = time.monotonic()
    result: dict[str, Any] = {
        "kernel": f"{row['program']} {row['kernel']}",
        "file": "",
        "pitfalls": [],
        "problem": "",
        "best": None,
        "candidates": [],
        "declined": {},
    }
    found = chosen(row, sources)
    if found is None:
        return result | {"seconds": 0.0, "reason": f"{row['kernel']} is defined in no file that the program compiles."}
    program, kernel, flags = found
    severe = [
        finding.rule for finding in run_rules(program) if finding.kernel == kernel.name and finding.severity in PITFALL
    ]
    problem = find_problem(program, kernel)
    result |= {
        "file": Path(kernel.source.path).relative_to(sources).as_posix(),
        "pitfalls": sorted(set(severe)),
        "problem": problem.reason if isinstance(problem, Missing) else "",
    }
    if isinstance(problem, Missing):
        return result | {"seconds": round(time.monotonic() - started, 1), "reason": problem.reason}
    outcome = optimize(program, kernel, "speed", budget_seconds=seconds, flags=flags)
    return result | {
        "seconds": round(time.monotonic() - started, 1),
        "best": outcome.best,
        "reason": outcome.reason,
        "candidates": [{"rewrites": list(each.rewrites), **verdict(each.report)} for each in outcome.candidates],
        "declined": {declined.rewrite: declined.reason for declined in outcome.declined},
    }


def chosen(row: dict[str, Any], sources: Path) -> tuple[Program, Kernel, tuple[str, ...]] | None:
    """The file to look at a kernel from: the first from which its problem is known, else the first that has it."""
    seen: list[tuple[Program, Kernel, tuple[str, ...]]] = []
    for file in row["files"]:
        program, flags = analysed(file, sources)
        for kernel in program.defined_kernels:
            if unqualified(kernel.name) == row["kernel"]:
                seen.append((program, kernel, flags))
                break
    return next(
        (one for one in seen if not isinstance(find_problem(one[0], one[1]), Missing)), seen[0] if seen else None
    )


def analysed(file: tuple[str, list[str]], sources: Path) -> tuple[Program, tuple[str, ...]]:
    """One of the files that a program compiles, and its flags with folders below `sources`."""
    path = sources / file[0]
    flags = tuple(f"-I{sources / word[2:]}" if word.startswith("-I") else word for word in file[1])
    given = parse_flags(flags, path.parent)
    return analyze(read_source(path), include_reader({}, given.folders), Assumptions().compiled_with(given)), flags


def told(row: dict[str, Any]) -> str:
    best = row["candidates"][row["best"]] if row["best"] is not None else None
    found = (
        f"{gain_of(row):.2f}x {'' if best['speedups'] else 'predicted '}{' + '.join(best['rewrites'])}" if best else ""
    )
    return f"{row['kernel']:48} {row['seconds']:5.1f} s  {len(row['candidates'])} tried  {found or row['reason']}"


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Of kernels that have a pitfall and a problem: how many got at least so much faster, measured, or predicted."""
    judged = [row for row in rows if row["pitfalls"] and not row["problem"]]
    gains = [gain_of(row) for row in judged]
    return {
        "kernels": len(rows),
        "with_a_problem": sum(not row["problem"] for row in rows),
        "with_a_problem_and_a_pitfall": len(judged),
        "with_a_candidate": sum(bool(row["candidates"]) for row in judged),
        "at_least_1.2x": sum(gain >= 1.2 for gain in gains),
        "at_least_2x": sum(gain >= 2.0 for gain in gains),
        "geometric_mean": round(math.exp(sum(map(math.log, gains)) / len(gains)), 3) if gains else None,
    }


def gain_of(row: dict[str, Any]) -> float:
    """The speedup of the best candidate at the first shape, 1 without one."""
    if row["best"] is None:
        return 1.0
    best = row["candidates"][row["best"]]
    return float(best["speedups"][0] if best["speedups"] else best["predicted"] or 1.0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=Path, metavar="SOURCES", help="a packed folder; with --pack HeCBench's src")
    parser.add_argument("--pack", type=Path, metavar="FILE", help=f"write a packed folder; SOURCES is at {COMMIT}")
    parser.add_argument(
        "--labels", type=Path, nargs="+", default=[LABELS], metavar="FILE", help="whose programs to pack"
    )
    parser.add_argument(
        "--every", metavar="K/N", help="pack every N-th program from the K-th, and kernels with a pitfall"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the result is written")
    parser.add_argument("--only", nargs="+", default=[""], metavar="TEXT", help="kernels whose name holds one of these")
    parser.add_argument("--part", default="1/1", metavar="K/N", help="every N-th kernel, from the K-th")
    parser.add_argument("--kernel-seconds", type=float, default=60.0, help="how long one search may take (default 60)")
    parser.add_argument("--seconds", type=float, default=1e9, help="leave out what is not begun by then, and say so")
    arguments = parser.parse_args()
    if arguments.pack:
        if arguments.every:
            count = pack_every(arguments.sources, arguments.every, arguments.pack)
        else:
            count = pack(arguments.sources, arguments.labels, arguments.pack)
        print(f"{count} kernels in {arguments.pack}")
        return 0
    toolchain, gpu = find_toolchain(), find_gpu(never_cancelled)
    listed = arguments.sources / LIST
    if isinstance(toolchain, Missing) or arguments.out is None or not listed.exists():
        lacks = (
            toolchain if isinstance(toolchain, Missing) else f"needs --out DIR, and SOURCES as --pack wrote it ({LIST})"
        )
        print(f"optimize_programs: {lacks}", file=sys.stderr)
        return 2
    started = time.monotonic()
    first, step = (int(number) for number in arguments.part.split("/"))
    kind = "emulator" if isinstance(gpu, Missing) else "cuda"
    out = arguments.out / f"programs_{kind}{f'_{first}' if step > 1 else ''}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    command = "PYTHONPATH=server:benchmarks python3 benchmarks/optimize_programs.py SOURCES --out DIR"
    about = {
        "command": f"{command} --part {arguments.part} --kernel-seconds {arguments.kernel_seconds:g}",
        "sources": f"github.com/zjin-lcf/HeCBench at {COMMIT}",
        "hardware": {"cpu": processor()} if isinstance(gpu, Missing) else dict(gpu.details),
        "versions": {"python": platform.python_version(), "nvcc": toolchain.version, "numpy": version("numpy")},
    }
    rows: list[dict[str, Any]] = []
    left_out: list[str] = []
    for asked in json.loads(listed.read_text(encoding="utf-8"))[first - 1 :: step]:
        name = f"{asked['program']} {asked['kernel']}"
        if not any(text in name for text in arguments.only):
            continue
        if time.monotonic() - started > arguments.seconds:
            left_out.append(name)
        else:
            rows.append(searched(asked, arguments.sources.resolve(), arguments.kernel_seconds))
            print(told(rows[-1]), flush=True)
        result = {**about, "left_out": left_out, "summary": summary(rows), "kernels": rows}
        text = json.dumps(result, indent=1).replace(f"{arguments.sources.resolve()}/", "")
        out.write_text(text + "\n", encoding="utf-8")
    print(json.dumps(summary(rows)), f"left out: {len(left_out)}")
    offered = [row["candidates"][row["best"]] for row in rows if row["best"] is not None]
    return 1 if any(candidate["status"] == "wrong" for candidate in offered) else 0


if __name__ == "__main__":
    sys.exit(main())
