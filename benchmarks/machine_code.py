"""How whole the reading of machine code is: of real programs, on every architecture that nvcc compiles for.

    git clone https://github.com/zjin-lcf/HeCBench && git -C HeCBench checkout f27000a51
    python benchmarks/machine_code.py HeCBench/src --write

Compiles the samples and the emulator's kernels for each architecture, and the CUDA files of the programs in
labels/hecbench_dev.json.gz for three of them, for one once more with few registers, to have much spilled. Counted are
instructions with an opcode that the table does not have, instructions of a kernel's own code without a line, kernels
that spill, those whose spills the cubin's marks or the sums tell from arrays, and those where both tell the same.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hardware import processor
from warpwright import __version__
from warpwright.facts.model import AccessKind
from warpwright.facts.resources import KernelResources
from warpwright.missing import Missing
from warpwright.syntax.source import read_source
from warpwright.toolchain.compilation import Compiled
from warpwright.toolchain.compile import compile_cubin
from warpwright.toolchain.cubin_info import KernelInfo, kernel_info
from warpwright.toolchain.find import Toolchain, find_toolchain
from warpwright.toolchain.local_traffic import LocalAccess, LocalPurpose, local_traffic
from warpwright.toolchain.machine_code import MachineInstruction, machine_code
from warpwright.toolchain.opcodes import Family, family_of

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
RESULT = HERE / "results" / "machine_code.json"
LABELS = HERE / "labels" / "hecbench_dev.json.gz"
THREE = ("sm_75", "sm_90", "sm_120")
FEW = "-maxrregcount=24"
SECONDS = 600.0

Json = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hecbench", type=Path, metavar="HeCBench/src")
    parser.add_argument("--jobs", type=int, default=2, help="compilers at a time")
    parser.add_argument("--write", action="store_true", help=f"keep the result in {RESULT.relative_to(ROOT)}")
    arguments = parser.parse_args()
    toolchain = find_toolchain()
    if isinstance(toolchain, Missing):
        print(f"machine_code: {toolchain}", file=sys.stderr)
        return 2
    own = sorted((ROOT / "csrc_samples").rglob("*.cu")) + sorted((ROOT / "tests/emulator/kernels").glob("*.cu"))
    names = [program["prog"] for program in json.loads(gzip.decompress(LABELS.read_bytes()))]
    programs = sorted(path for name in names for path in (arguments.hecbench / name).rglob("*.cu"))
    if not programs:
        print(f"machine_code: {arguments.hecbench} has none of the programs of {LABELS.name}", file=sys.stderr)
        return 2
    rows = [row("samples and kernels", own, arch, (), arguments.jobs) for arch in architectures(toolchain)]
    rows += [row("HeCBench", programs, arch, (), arguments.jobs) for arch in THREE]
    rows.append(row("HeCBench", programs, "sm_90", (FEW,), arguments.jobs))
    result = {
        "command": "python benchmarks/machine_code.py HeCBench/src --write",
        "hardware": processor(),
        "versions": {"warpwright": __version__, "nvcc": toolchain.version, "nvdisasm": version_of(toolchain.nvdisasm)},
        "programs": f"{len(names)} of HeCBench at f27000a51, {len(programs)} files",
        "measured": rows,
        "total": {key: sum(each[key] for each in rows) for key in rows[0] if isinstance(rows[0][key], int)},
    }
    print(json.dumps(result["total"], indent=1))
    if arguments.write:
        RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


def architectures(toolchain: Toolchain) -> list[str]:
    command = [str(toolchain.nvcc), "--list-gpu-code"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    return sorted(listed.stdout.split(), key=lambda arch: int(arch.removeprefix("sm_")))


def version_of(nvdisasm: Path | None) -> str:
    """nvdisasm's own, "" where there is none."""
    if nvdisasm is None:
        return ""
    said = subprocess.run([str(nvdisasm), "--version"], capture_output=True, text=True, check=True).stdout
    return next((word.lstrip("V") for word in said.split() if word.startswith("V")), "")


def row(what: str, files: list[Path], arch: str, flags: tuple[str, ...], jobs: int) -> Json:
    """The sums over some files for one architecture."""

    def build(path: Path) -> Compiled:
        # Some files compile for a newer architecture alone, some only as a part of another one.
        return compile_cubin(read_source(path), arch=arch, flags=("-std=c++17", "-w", *flags), timeout=SECONDS)

    with ThreadPoolExecutor(jobs) as pool:
        compiled = [each for each in pool.map(build, files) if each.cubin is not None]
    counts: Counter[str] = Counter()
    other: Counter[str] = Counter()
    for each in compiled:
        assert each.cubin is not None
        code = machine_code(each.cubin)
        assert not isinstance(code, Missing), str(code)
        info = kernel_info(each.cubin.read_bytes())
        for resources in each.kernels.values():
            marked = info.get(resources.mangled_name, KernelInfo()).spills
            add(counts, other, code[resources.mangled_name], resources, marked)
    print(
        f"{what}, {arch} {' '.join(flags)}: {counts['instructions']:,} instructions, {other.total()} other", flush=True
    )
    return {
        "what": what, "arch": arch, "flags": " ".join(flags), "files": len(compiled),
        "files that do not compile alone": len(files) - len(compiled), "kernels": counts["kernels"],
        "instructions": counts["instructions"], "of an unknown opcode": other.total(),
        "of the kernel's own without a line": counts["no line"], "kernels that spill": counts["spilling"],
        "of them told by marks": counts["by marks"], "of them told by sums": counts["by sums"],
        "of them told alike by both": counts["alike"], "local accesses": counts["local"],
        "of them of unknown use": counts["unknown"], "unknown opcodes": sorted(other),
    }  # fmt: skip


def add(
    counts: Counter[str],
    other: Counter[str],
    code: tuple[MachineInstruction, ...],
    resources: KernelResources,
    marked: frozenset[int],
) -> None:
    """Count one kernel."""
    counts["kernels"] += 1
    counts["instructions"] += len(code)
    counts["no line"] += sum(not each.places and not each.function for each in code)
    other.update(each.opcode for each in code if family_of(each.opcode, each.operands) is Family.OTHER)
    local = local_traffic(code, resources, marked)
    counts["local"] += len(local)
    counts["unknown"] += sum(access.use is LocalPurpose.UNKNOWN for access in local)
    if resources.spill_bytes:
        counts["spilling"] += 1
        by_marks = _whole([access for access in local if access.instruction.offset in marked], resources)
        alone = local_traffic(code, resources)
        by_sums = _whole([access for access in alone if access.use is LocalPurpose.SPILL], resources)
        counts["by marks"] += by_marks is not None
        counts["by sums"] += by_sums is not None
        counts["alike"] += by_marks is not None and by_marks == by_sums


def _whole(spills: list[LocalAccess], resources: KernelResources) -> set[int] | None:
    """The offsets of the instructions where they add up to the bytes that ptxas gives, else None."""
    sums = [sum(each.width for each in spills if each.kind is kind) for kind in (AccessKind.STORE, AccessKind.LOAD)]
    is_whole = sums == [resources.spill_store_bytes, resources.spill_load_bytes]
    return {each.instruction.offset for each in spills} if is_whole else None


if __name__ == "__main__":
    sys.exit(main())
