"""docs/emulator.md from what was measured on a GPU, and from the emulator as it is now: no GPU needed.

    python benchmarks/emulator_page.py

Needs nvcc and nvdisasm. Emulates every kernel again, compares its lines with those that emulator_gpu.json keeps of
Nsight Compute, and writes both the result and the page. `--page` makes the page alone, of the results as they are.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from emulator_jobs import ROOT, files_of, jobs_of, line_counts, summary
from emulator_lines import SENTENCES, Cause

RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "emulator.md"

FLUSHED = 1 << 23
"""From zero to the smallest normal f32, in units in the last place."""

HEAD = """# How far the emulator agrees with a GPU

Made by `python benchmarks/emulator_page.py`; do not edit by hand.

The emulator runs the compiler's PTX on the CPU, NumPy arrays for the lanes of many blocks at once. The kernels of
`csrc_samples` and `tests/emulator/kernels` below were launched once on a GPU ({hardware}) under Nsight Compute
(`{command}`), and in the emulator, with the same bytes, at the shape that
`warpwright profile` takes.

| | |
|---|---|
| kernels | {kernels} |
| outputs equal in every bit | {bit_equal} |
| lines with global, shared or local memory | {lines} |
| lines with equal sectors or wavefronts | {lines_equal} ({share:.1%}) |
| warpwright, NumPy, Python | {versions} |
"""

OUTPUTS = """
## Outputs

Integers and plain floats must be equal in every bit. The kernels below are not, and may not be:

- The approximate functions of the hardware (`ex2`, `lg2`, `sin`, `rsqrt`, ...) come from tables that
  NVIDIA does not publish. How far the emulator's are from them stands below, function by function.
- Float atomics: their order is the scheduler's, and a sum of floats depends on it.
- `mma`, `wmma`: the tensor cores add products in an order and with a precision of their own; the emulator in
  another. Integer ones are equal in every bit.

For the last two the tolerance is 1e-6 of the largest output of the kernel.

| kernel | differ | units in the last place | of the largest output | why |
|---|--:|--:|--:|---|
"""

LINES = """
## Lines

Compared are totals of the launch: sectors of global and local memory, wavefronts of shared memory. Nsight Compute lists
an instruction under every line of its chain of inlined calls, headers of the toolkit included, and so does this
comparison. Where the line table of the machine code names a header's line alone (often `atomicAdd`,
`__pipeline_memcpy_async`, wmma), the line is compared there. Accesses that ptxas merged count as the one that it made
of them, from the widths in the machine code. Instruction counts are PTX's, and are not compared.

| cause of a difference | lines | |
|---|--:|---|
"""


def page(result: Mapping[str, Any], others: Mapping[str, Mapping[str, Any]]) -> str:
    """The text of docs/emulator.md. `others` are the results of other benchmarks of the emulator, by file name."""
    kernels = result["results"]
    versions = ", ".join(result["versions"][name] for name in ("warpwright", "numpy", "python"))
    share = result["lines_equal"] / max(1, result["lines"])
    parts = [HEAD.format(**{**result, "versions": versions, "share": share})]
    parts.append(_outputs(kernels))
    parts.append(_lines(kernels))
    for name, section in (("emulator_numerics", _numerics), ("emulator_races", _races), ("emulator_speed", _speed)):
        if name in others:
            parts.append(section(others[name]))
    parts.append(LIMITS)
    parts.append(_kernels(kernels))
    return "".join(parts)


def _outputs(kernels: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        f"| `{k['kernel']}` | {k['different']} | {k['max_ulp']} | {k['max_of_largest']:.1e} | {_why(k)} |\n"
        for k in kernels
        if k["different"]
    ]
    return OUTPUTS + "".join(rows)


def _why(kernel: Mapping[str, Any]) -> str:
    reasons = ["`" + "`, `".join(kernel["approximate"]) + "`"] if kernel["approximate"] else []
    reasons += ["float atomics"] if kernel["float_atomics"] else []
    reasons += ["tensor cores"] if kernel["matrix"] else []
    return ", ".join(reasons) or "not explained"


def _lines(kernels: Sequence[Mapping[str, Any]]) -> str:
    differing = [(kernel["kernel"], line) for kernel in kernels for line in kernel["lines_that_differ"]]
    counts = Counter(Cause(line["cause"]) for _, line in differing)
    parts = [LINES]
    parts += [f"| {cause} | {count} | {SENTENCES[cause]} |\n" for cause, count in counts.most_common()]
    parts.append("\n| kernel | line | memory | emulated | measured | cause |\n|---|---|---|--:|--:|---|\n")
    for kernel, line in differing:
        where = f"{line['file']}:{line['line']}"
        parts.append(
            f"| `{kernel}` | {where} | {line['space']} | {line['emulated']} | {line['measured']} | {line['cause']} |\n"
        )
    return "".join(parts)


def _numerics(result: Mapping[str, Any]) -> str:
    """Of each instruction of its own, on special values, random bits and ordinary numbers."""
    rows = [i for i in result["instructions"] if i["bound"] != "bits"]
    exact = [i for i in result["instructions"] if i["bound"] == "bits"]
    wrong = [i for i in exact if i["bad"]]
    parts = [
        "\n## Instructions one by one\n\n"
        f"`{result['command']}` ran each instruction alone\n"
        f"on an {result['hardware']['name']}, on special values, random bits and ordinary numbers. "
        f"{len(exact) - len(wrong)} of {len(exact)} that must be equal\n"
        "in every bit are. The approximate ones:\n\n"
        "| instruction | may be off by | is off by at most | operands | beyond |\n|---|---|--:|--:|--:|\n"
    ]
    for row in rows:
        name = row["instruction"].partition(" ")[0]
        parts.append(f"| `{name}` | {row['bound']} | {_most_off(row)} | {row['lanes']} | {row['bad']} |\n")
    if any(row["bad"] and row["max_ulp"] == FLUSHED for row in rows):
        parts.append(
            f"\n{FLUSHED:,} units in the last place: one of the two flushed the result to zero (`.ftz`), the other\n"
            "left the smallest normal number.\n"
        )
    if wrong:
        names = ", ".join(f"`{row['instruction']}` ({row['bad']} of {row['lanes']})" for row in wrong)
        parts.append(f"\nNot equal: {names}.\n")
    return "".join(parts)


def _most_off(row: Mapping[str, Any]) -> str:
    """The largest difference in the unit of the bound: "ulp 2", "absolute 6.7e-07", "relative 0.00049".

    Of a bound in two units no one number says it; what is beyond is counted lane by lane.
    """
    match row["bound"].split():
        case ["ulp", _]:
            return f"{row['max_ulp']:,}"
        case ["absolute" | "relative" as unit, _]:
            return f"{row[f'max_{unit}']:.2e}"
        case _:
            return "beyond it" if row["bad"] else "within it"


def _races(result: Mapping[str, Any]) -> str:
    counts = result["summary"]
    found = f"Of {counts['deletions']} deletions the emulator reports {counts['found_by_the_emulator']}"
    if counts["found_by_racecheck"] is not None:
        found += f", racecheck {counts['found_by_racecheck']}, of which the emulator misses"
        found += f" {counts['missed_by_the_emulator']}"
    return (
        f"\n## Races\n\n`{result['command']}` ({result['device']}) deletes each barrier of the\n"
        "samples and of the emulator's own kernels in turn, and runs what is left in the emulator and under\n"
        f"compute-sanitizer's racecheck. {found}.\n"
        f"On the whole files the emulator reports {counts['reports_on_whole_files']} races.\n"
    )


def _speed(result: Mapping[str, Any]) -> str:
    parts = [
        f"\n## Speed\n\n`{result['command']}`, {result['hardware']}, all checks on. Lane-instructions are PTX "
        "instructions times the lanes that execute them.\n\n| kernel | million lane-instructions per second "
        "| seconds | time per work, against a quarter of it |\n|---|--:|--:|--:|\n"
    ]
    for row in result["results"]:
        parts.append(f"| {row['kernel']} | {row['million_per_s']:.0f} | {row['seconds']:.2f} | {row['growth']:.2f} |\n")
    slowest = max(result["profiles"], key=lambda row: row["seconds"])
    parts.append(
        f"\nA profile of a sample at its own shape takes at most {slowest['seconds']:.2f} s (`{slowest['kernel']}`), "
        "with the compiler's output at hand.\n"
    )
    return "".join(parts)


LIMITS = """
## What is covered

PTX as nvcc 12 and 13 emit it for sm_75 to sm_90: scalar integers and floats (f16, bf16, f32, f64), conversions,
predicates, vector loads and stores, local, shared, constant and global memory, shuffles, votes, `match`, `redux`,
barriers, atomics, `cp.async`, `ldmatrix`, `stmatrix`, `mma`, `wmma`, `wgmma`, device functions, `printf`, `assert`,
cooperative grids. Refused by name, before anything runs: TMA, mbarriers, thread block clusters, textures and surfaces,
programmatic dependent launch, recursion, the sparse and the 8-bit float forms of `mma` and `wgmma`.

## Limits

- One launch on made-up inputs: a branch that they do not take is not seen.
- No time: no caches, no latency, no occupancy. Sectors and wavefronts are those of the requests.
- One order of the threads among many: what depends on the order, such as a compare-and-swap loop, has other counts on
  a GPU, from run to run too.
- What ptxas removed, copied or merged over the iterations of a loop counts as PTX has it.
- The bits of a NaN that an operation makes are not compared where PTX leaves them open.
"""


def _kernels(kernels: Sequence[Mapping[str, Any]]) -> str:
    parts = ["\n## Kernels\n\n| kernel | shape | outputs | lines equal |\n|---|---|---|--:|\n"]
    for k in kernels:
        shape = ", ".join(f"{name}={size}" for name, size in k["shape"].items()) or "its own"
        outputs = f"{k['different']} differ, at most {k['max_ulp']} ulp" if k["different"] else "equal"
        parts.append(f"| `{k['kernel']}` | {shape} | {outputs} | {k['lines_equal']} of {k['lines']} |\n")
    return "".join(parts)


def write(about: Mapping[str, Any], kernels: Sequence[Mapping[str, Any]]) -> None:
    """Write the result, a line for each kernel, and the page made of it."""
    head = json.dumps({**about, **summary(kernels)}, indent=1).removesuffix("\n}")
    rows = ",\n".join(json.dumps(kernel) for kernel in kernels)
    (RESULTS / "emulator_gpu.json").write_text(f'{head},\n "results": [\n{rows}\n ]\n}}\n', encoding="utf-8")
    PAGE.write_text(page(read("emulator_gpu"), others()), encoding="utf-8")


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def others() -> dict[str, dict[str, Any]]:
    """The results of the emulator's other benchmarks that are there."""
    names = ("emulator_numerics", "emulator_races", "emulator_speed")
    return {name: read(name) for name in names if (RESULTS / f"{name}.json").is_file()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", action="store_true", help="make the page of the results as they are")
    options = parser.parse_args()
    result = read("emulator_gpu")
    if options.page:
        PAGE.write_text(page(result, others()), encoding="utf-8")
        return 0
    emulated = {job.name: job for path in files_of() for job in jobs_of(path) if not isinstance(job, str)}
    kernels = []
    for kernel in result["results"]:
        job = emulated.get(kernel["kernel"])
        if job is None or dict(job.case.shape) != kernel["shape"]:
            print(f"{kernel['kernel']} is not what was measured: run emulator_gpu.py on a GPU again.", file=sys.stderr)
            return 1
        measured = [tuple(row) for row in kernel["measured"]]
        faults = [str(fault.kind) for fault in job.result.faults]
        kernels.append({**kernel, "faults": faults, **line_counts(job, measured)})
    about = {name: result[name] for name in ("command", "hardware", "versions")}
    write(about, kernels)
    print(json.dumps(summary(kernels)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
