"""Theoretical occupancy from the compiler's numbers against what Nsight Compute says of the same launches.

    git clone https://github.com/zjin-lcf/HeCBench && git -C HeCBench checkout f27000a51
    python benchmarks/occupancy.py HeCBench/src [LABELS ...]

Each program is compiled here for sm_90 with the flags of its Makefile. Registers and static shared memory come from
that compile, the block and the dynamic shared memory from the label: they are the run's. Nsight Compute prints sizes
with three digits; where a size's digits leave several occupancies, that is a mismatch.

Nsight Compute's "Block Limit Shared Mem" is for the part of the L1 cache that the driver made shared memory for that
launch. It has to be what one of the sizes that the driver can choose holds, and that size no smaller than the occupancy
needs.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import re
import shlex
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hardware import processor
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from warpwright.facts.carveout import EVERY_KERNEL, carveouts
from warpwright.facts.occupancy import ARCHITECTURES, occupancy
from warpwright.facts.resources import KernelResources
from warpwright.syntax.names import template_arguments, unqualified
from warpwright.syntax.source import read_source
from warpwright.toolchain.compile import compile_cubin

HERE = Path(__file__).parent
LABELS = HERE / "labels"
RESULT = HERE / "results" / "occupancy.json"
ARCH, NUMBER = "sm_90", 90
COMMIT = "f27000a51"
SHARED_KIB = (0, 8, 16, 32, 64, 100, 132, 164, 196, 228)
"""The sizes of shared memory that a multiprocessor of compute capability 9.0 can be set to (CUDA Programming Guide)."""
FEWEST_REGISTERS = 16
"""What Nsight Compute gives for a kernel that the compiler reports with fewer."""
UNITS = {"byte/block": 1, "Kbyte/block": 1000, "Mbyte/block": 1000_000}
FLAGS = re.compile(r"-[DUI]|-std=|--maxrregcount|-maxrregcount|--expt|--?extended|-O\d|-rdc|-dc")
MAKE = {"hellinger-cuda": ("FP64=yes",)}
"""Options that a program was built with for the labels (labels/README.md)."""
TWO_WORDS = ("-D", "-I", "-U", "-include", "-isystem", "-maxrregcount")


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch as Nsight Compute saw it; sizes as the lowest and highest number of bytes that its digits leave."""

    program: str
    kernel: str
    threads: int
    registers: int
    static: tuple[int, int]
    dynamic: tuple[int, int]
    limits: tuple[int, int]  # by registers, by shared memory
    percent: float


def launches(labels: Path) -> list[Launch]:
    return [
        _launch(program["prog"], launch)
        for program in json.loads(gzip.decompress(labels.read_bytes()))
        for launch in program["launches"]
        if "Theoretical Occupancy" in launch
    ]


def _launch(program: str, row: dict[str, Any]) -> Launch:
    x, y, z = (int(n) for n in re.findall(r"\d+", row["block"]))
    return Launch(
        program,
        row["kernel"],
        x * y * z,
        int(row["Registers Per Thread"].split()[0]),
        _bytes(row["Static Shared Memory Per Block"]),
        _bytes(row["Dynamic Shared Memory Per Block"]),
        (int(row["Block Limit Registers"].split()[0]), int(row["Block Limit Shared Mem"].split()[0])),
        float(row["Theoretical Occupancy"].split()[0]),
    )


def _bytes(text: str) -> tuple[int, int]:
    """
    >>> _bytes("516 byte/block"), _bytes("2.05 Kbyte/block")
    ((516, 516), (2045, 2055))
    """
    number, unit = text.split()
    scale = UNITS[unit]
    decimals = len(number.partition(".")[2])
    half = scale * 10**-decimals / 2 if scale > 1 else 0
    return -int(half - float(number) * scale), int(float(number) * scale + half)


def commands(folder: Path) -> list[tuple[Path, tuple[str, ...]]]:
    """The files that a program's Makefile compiles, and the flags that change code."""
    made = subprocess.run(
        ["make", "-n", "-B", f"ARCH={ARCH}", *MAKE.get(folder.name, ())],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    found = []
    for line in made.stdout.replace("\\\n", " ").splitlines():
        words = shlex.split(line) if line.startswith("nvcc") else []
        files = [word for word in words if word.endswith((".cu", ".cpp"))]
        flags: list[str] = []
        for at, word in enumerate(words):
            if word in TWO_WORDS:
                flags += [word, words[at + 1]]
            elif FLAGS.match(word):
                flags.append(word)
        found += [(folder / file, tuple(_absolute(folder, flag) for flag in flags)) for file in files]
    return [(path, flags) for path, flags in found if path.suffix == ".cu"]


def _absolute(folder: Path, flag: str) -> str:
    return f"-I{(folder / flag[2:]).resolve()}" if flag.startswith("-I") and len(flag) > 2 else flag


@dataclass(slots=True)
class Build:
    """What the kernels of a program take, by mangled name; what its host code asks of the L1 cache; and why files did
    not compile."""

    kernels: dict[str, KernelResources] = field(default_factory=dict)
    carveouts: dict[str, int | None] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)


def build(folder: Path) -> Build:
    built = Build()
    for path, flags in commands(folder):
        source = read_source(path)
        made = compile_cubin(source, arch=ARCH, flags=flags, timeout=300)
        if not made.ok:
            built.failed.append(f"{path.name}: {made.reason}")
        built.kernels |= {each.mangled_name: each for each in made.kernels.values()}
        built.carveouts |= carveouts([source])
    return built


def match(launch: Launch, kernels: dict[str, KernelResources]) -> KernelResources | None:
    """The compiled instance of a launch: by name, then by template arguments, then by the parameters' types."""
    name, arguments, parameters = _signature(launch.kernel)
    spelled = {each: _signature(name) for each, name in zip(kernels.values(), _demangled(tuple(kernels)), strict=True)}
    named = [each for each in kernels.values() if unqualified(spelled[each][0]) == unqualified(name)]
    same = [each for each in named if spelled[each][1] == arguments]
    whole = [each for each in same or named if spelled[each][2] == parameters]
    return next((found[0] for found in (named, same, whole) if len(found) == 1), None)


def _signature(text: str) -> tuple[str, list[str], str]:
    """Name, template arguments and parameters of `ns::k<float, 3>(T1 *, int)`."""
    depth, cut = 0, len(text)
    for at, character in enumerate(text):
        depth += (character == "<") - (character == ">")
        if character == "(" and depth == 0 and not text[at:].startswith("(anonymous"):
            cut = at
            break
    head = re.sub(r"^void ", "", text[:cut])
    return head.split("<")[0], [_plain(a) for a in template_arguments(head)], _plain(text[cut:])


def _plain(text: str) -> str:
    """
    >>> _plain("(ns::Mode)1"), _plain("true"), _plain("16u"), _plain("const cub::Tile *")
    ('1', '1', '16', 'Tile*')
    """
    text = re.sub(r"\([\w: ]+\)(?=-?\d)", "", text).replace("true", "1").replace("false", "0")
    # Nsight Compute leaves some namespaces out, and puts const elsewhere.
    text = re.sub(r"(?:\(anonymous namespace\)|\w+)::|\bconst\b", "", text)
    return re.sub(r"\b(\d+)[ul]+\b", r"\1", "".join(text.split()))


@cache
def _demangled(names: tuple[str, ...]) -> list[str]:
    said = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True)
    return said.stdout.splitlines()


def judge(launch: Launch, built: Build) -> dict[str, Any]:
    """One launch's row: our numbers, theirs, and the cause where the occupancy differs."""
    row: dict[str, Any] = {"program": launch.program, "kernel": launch.kernel, "threads": launch.threads}
    resources = match(launch, built.kernels)
    if resources is None:
        cause = "not compiled" if built.failed else "which compiled instance it is was not found"
        return row | {"cause": cause, "failed": built.failed}
    carveout = built.carveouts.get(unqualified(resources.name), built.carveouts.get(EVERY_KERNEL, 100))
    if carveout is None:
        return row | {"cause": "the host's preference for shared memory is not known"}
    dynamic = sorted({*launch.dynamic, *range(launch.dynamic[0], launch.dynamic[1] + 1)})
    found = [
        occupancy(
            ARCH, resources.registers, resources.shared_bytes + size, launch.threads, resources.barriers, carveout
        )
        for size in dynamic
    ]
    percents = sorted({round(100 * each.fraction, 2) for each in found})
    same = percents == [launch.percent]
    registers = max(resources.registers, FEWEST_REGISTERS)
    by_registers = occupancy(ARCH, registers, 0, launch.threads).limits.registers
    return row | {
        "ours": {
            "occupancy": percents[0] if len(percents) == 1 else percents,
            "limiters": list(found[0].limiters),
            "registers": resources.registers,
            "shared_bytes": resources.shared_bytes,
            "block_limit_registers": by_registers,
        },
        "nsight_compute": {
            "occupancy": launch.percent,
            "registers": launch.registers,
            "block_limit_registers": launch.limits[0],
            "block_limit_shared_memory": launch.limits[1],
        },
        "same_occupancy": same,
        "same_registers": registers == launch.registers,
        "same_static_shared_memory": launch.static[0] <= resources.shared_bytes <= launch.static[1],
        "same_block_limit_registers": by_registers == launch.limits[0],
        "shared_memory_limit_explained": any(
            _explains(launch, resources.shared_bytes + size, each.blocks)
            for size, each in zip(dynamic, found, strict=True)
        ),
        "cause": "" if same else _cause(launch, resources, percents),
    }


def _explains(launch: Launch, shared: int, blocks: int) -> bool:
    """Whether some size that the driver can choose holds the label's number of blocks, and enough for the occupancy."""
    limits = ARCHITECTURES[NUMBER]
    granule = limits.shared_granule
    allocated = -(-(shared + limits.reserved_shared_bytes) // granule) * granule
    return launch.limits[1] >= blocks and any(kib * 1024 // allocated == launch.limits[1] for kib in SHARED_KIB)


def _cause(launch: Launch, resources: KernelResources, percents: list[float]) -> str:
    if len(percents) > 1:
        return "the label's digits leave several occupancies"
    if max(resources.registers, FEWEST_REGISTERS) != launch.registers:
        return "the register count differs"
    if not launch.static[0] <= resources.shared_bytes <= launch.static[1]:
        return "the static shared memory differs"
    return "the formula differs"


def measure(labels: Path, sources: Path, progress: Progress) -> dict[str, Any]:
    found = launches(labels)
    programs = list(dict.fromkeys(launch.program for launch in found))
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        builds = pool.map(lambda name: build(sources / name), programs)
        built = dict(zip(programs, progress.track(builds, total=len(programs), description=labels.name), strict=True))
    rows = [judge(launch, built[launch.program]) for launch in found]
    count = partial(_count, rows)
    return {
        "programs": len(programs),
        "launches": len(rows),
        "compiled": sum("ours" in row for row in rows),
        "same_occupancy": count("same_occupancy"),
        "same_registers": count("same_registers"),
        "same_static_shared_memory": count("same_static_shared_memory"),
        "same_block_limit_registers": count("same_block_limit_registers"),
        "shared_memory_limit_explained": count("shared_memory_limit_explained"),
        "mismatches": dict(Counter(row["cause"] for row in rows if row["cause"])),
        "rows": [] if "blind" in labels.name else rows,
    }


def _count(rows: list[dict[str, Any]], name: str) -> int:
    return sum(bool(row.get(name)) for row in rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=Path, metavar="SOURCES", help=f"HeCBench's src folder at commit {COMMIT}")
    parser.add_argument("labels", type=Path, nargs="*", help="label files (default: those of benchmarks/labels)")
    parser.add_argument("--out", type=Path, default=RESULT, metavar="FILE")
    arguments = parser.parse_args()
    labels = arguments.labels or sorted(LABELS.glob("*.json.gz"))
    with Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()) as progress:
        sets = {path.name.removesuffix(".json.gz"): measure(path, arguments.sources, progress) for path in labels}
    result = {
        "command": " ".join(["python benchmarks/occupancy.py HeCBench/src", *map(str, arguments.labels)]),
        "sources": f"github.com/zjin-lcf/HeCBench at {COMMIT}",
        "labels": "Nsight Compute 2025.3 on an NVIDIA H200, CUDA 13.0",
        "registers": f"those of a kernel that the compiler reports with fewer than {FEWEST_REGISTERS} count as so many",
        "hardware": processor(),
        "versions": {"warpwright": version("warpwright"), "python": platform.python_version(), "nvcc": _nvcc()},
        "sets": sets,
    }
    arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    for name, one in sets.items():
        print(name, json.dumps({key: value for key, value in one.items() if key != "rows"}, indent=1))
        for row in one["rows"]:
            if row["cause"] or not (row["same_registers"] and row["shared_memory_limit_explained"]):
                print(json.dumps(row))
    return 0 if all(one["same_occupancy"] == one["launches"] for one in sets.values()) else 1


def _nvcc() -> str:
    said = subprocess.run(["nvcc", "--version"], capture_output=True, text=True, check=True).stdout
    return re.search(r"V([\d.]+)", said)[1]  # type: ignore[index]


if __name__ == "__main__":
    sys.exit(main())
