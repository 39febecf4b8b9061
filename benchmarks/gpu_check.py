"""Does verification on a GPU say the truth? Honest and broken rewrites of samples, each with the verdict it must get.

    PYTHONPATH=server python3 benchmarks/gpu_check.py --out benchmarks/results

Needs a CUDA GPU, nvcc, and a Python with torch, tree-sitter, tree-sitter-cuda and platformdirs. Writes gpu_check.json
with the command, the hardware and the versions, prints a table, and exits 1 where a verdict is not one of the expected.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpwright.missing import Missing
from warpwright.progress import never_cancelled
from warpwright.syntax.source import Source, read_source
from warpwright.toolchain.find import find_toolchain
from warpwright.verify.acceptable import acceptable
from warpwright.verify.harness import find_gpu
from warpwright.verify.report import Report
from warpwright.verify.verify import verify

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "csrc_samples"
Edits = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Check:
    """A candidate: the sample's text with `edits` made (and `before` made to the original first).

    `expected` are the statuses that are true of it, `words` stand in the reason.
    """

    name: str
    sample: str
    edits: Edits
    expected: tuple[str, ...]
    goal: str = "speed"
    before: Edits = ()
    words: str = ""

    def texts(self) -> tuple[Source, Source]:
        """The original and the candidate, at the sample's path."""
        source = read_source(SAMPLES / self.sample / "kernel.cu")
        original = edited(source.text(), self.before)
        candidate = edited(original, self.edits)
        return Source(source.path, original.encode()), Source(source.path, candidate.encode())


def edited(text: str, edits: Edits) -> str:
    for old, new in edits:
        if old not in text:
            raise SystemExit(f"the sample no longer holds `{old}`")
        text = text.replace(old, new)
    return text


TRANSPOSE, REDUCE = "memory/transpose_tiled", "reductions/reduce_interleaved"
PAD: Edits = (("float tile[TILE][TILE]", "float tile[TILE][TILE + 1]"),)
STORE = "out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];"
SYNC = "    __syncthreads();\n"
SWAP: Edits = (
    ("int row = blockIdx.x * blockDim.x + threadIdx.x;", "int row = blockIdx.y * blockDim.y + threadIdx.y;"),
    ("int column = blockIdx.y * blockDim.y + threadIdx.y;", "int column = blockIdx.x * blockDim.x + threadIdx.x;"),
)
SEQUENTIAL: Edits = (
    (
        "for (unsigned int stride = 1; stride < blockDim.x; stride *= 2)",
        "for (unsigned int stride = blockDim.x / 2; stride > 0; stride /= 2)",
    ),
    ("if (threadIdx.x % (2 * stride) == 0)", "if (threadIdx.x < stride)"),
)

CHECKS = (
    # Honest ones.
    Check("transpose: padded tile", TRANSPOSE, PAD, ("faster",)),
    Check("copy: coalesced, with its own grid", "memory/copy_column", (
        *SWAP, ("dim3 grid((height + block.x - 1) / block.x, (width + block.y - 1) / block.y);",
                "dim3 grid((width + block.x - 1) / block.x, (height + block.y - 1) / block.y);")), ("faster",)),
    Check("matmul: coalesced", "matrix/matmul_swapped", SWAP, ("faster",)),
    Check("reduce: sequential addressing", REDUCE, SEQUENTIAL, ("faster", "inconclusive")),
    Check("transpose: the same text twice", TRANSPOSE, (("int x = block", "int  x = block"),), ("inconclusive",)),
    Check("reduce: the same text twice", REDUCE, (("int i = blockIdx.x", "int  i = blockIdx.x"),), ("inconclusive",)),
    Check("transpose: padding taken away", TRANSPOSE, (("[TILE + 1]", "[TILE]"),), ("slower",), before=PAD),
    Check("scale: launch checked", "elementwise/scale_unchecked", (
        ("scale<<<(n + 255) / 256, 256>>>(d_data, 2.0f, n);",
         "scale<<<(n + 255) / 256, 256>>>(d_data, 2.0f, n);\n    if (cudaGetLastError() != cudaSuccess) return 1;"),),
        ("correct",), goal="fix"),
    # Broken ones.
    Check("transpose: row length of a square", TRANSPOSE, (("(y + j) * height + x]", "(y + j) * width + x]"),),
          ("wrong", "unsafe")),
    Check("transpose: last rows not written", TRANSPOSE,
          ((STORE, "if (j < TILE - ROWS) " + STORE),), ("wrong",), words="not written"),
    Check("transpose: not written at all", TRANSPOSE, ((STORE, ";"),), ("wrong",), words="not written"),
    Check("transpose: no guard", TRANSPOSE, (("if (x < height && y + j < width) {", "{"),), ("unsafe", "wrong")),
    Check("transpose: one element too far", TRANSPOSE,
          ((STORE, STORE + " if (x == 0 && y == 0) out[width * height] = 0.0f;"),), ("unsafe",), words="outside out"),
    Check("transpose: writes its input", TRANSPOSE,
          ((STORE, STORE + " if (x == 0 && y == 0) const_cast<float*>(in)[0] = 0;"),), ("unsafe",), words="input in"),
    Check("transpose: no barrier", TRANSPOSE, ((SYNC, ""),), ("wrong",)),
    Check("transpose: illegal address", TRANSPOSE,
          ((STORE, STORE + " if (x == 0) *reinterpret_cast<volatile float*>(8) = 1.0f;"),), ("unsafe",)),
    Check("transpose: never ends", TRANSPOSE,
          ((SYNC, SYNC + '    for (;;) { asm volatile(""); }\n'),), ("timeout",), words="does not finish"),
    Check("transpose: padded tile, after the hang", TRANSPOSE, PAD, ("faster",)),
    Check("transpose: works while checked, not while timed", TRANSPOSE, (
        ("__global__ void transpose", "__device__ unsigned int calls;\n__global__ void transpose"),
        ("    int x = blockIdx.x", "    if (calls > 100000) return;\n    int x = blockIdx.x"),
        (STORE, STORE + " if (x == 0 && y + j == 0) atomicAdd(&calls, 1u);")), ("wrong",), words="earlier launches"),
    Check("transpose: a block that cannot be", TRANSPOSE,
          (("dim3 block(TILE, ROWS)", "dim3 block(TILE, 64)"),), ("wrong",), words="1,024"),
    Check("transpose: more shared memory than there is", TRANSPOSE,
          (("transpose<<<grid, block>>>", "transpose<<<grid, block, 300000>>>"),), ("wrong",), words="more than the"),
    Check("reduce: zero", REDUCE, (("sums[blockIdx.x] = partial[0];", "sums[blockIdx.x] = 0.0f;"),), ("wrong",)),
    Check("reduce: in bfloat16", REDUCE, (
        ("i < n ? in[i] : 0.0f;", "i < n ? __int_as_float(__float_as_int(in[i]) & 0xffff0000) : 0.0f;"),), ("wrong",)),
    Check("reduce: in tf32", REDUCE, (
        ("i < n ? in[i] : 0.0f;", "i < n ? __int_as_float(__float_as_int(in[i]) & 0xffffe000) : 0.0f;"),), ("wrong",)),
    Check("reduce: only full blocks", REDUCE, (
        ("i < n ? in[i] : 0.0f;", "(blockIdx.x + 1) * blockDim.x <= n ? in[i] : 0.0f;"),), ("wrong",)),
    Check("saxpy: forgets y", "elementwise/saxpy", (("y[i] = a * x[i] + y[i];", "y[i] = a * x[i];"),), ("wrong",)),
    Check("saxpy: NaN becomes zero", "elementwise/saxpy", (
        ("y[i] = a * x[i] + y[i];", "float r = a * x[i] + y[i]; y[i] = r == r ? r : 0.0f;"),), ("wrong",), words="NaN"),
    Check("scale: skips infinity", "elementwise/scale_unchecked", (
        ("data[i] = factor * data[i];", "data[i] = fminf(factor * data[i], 1e30f);"),), ("wrong",)),
    Check("scale: does not compile", "elementwise/scale_unchecked", (
        ("data[i] = factor * data[i];", "data[i] = factors * data[i];"),), ("does-not-compile",), words="factors"),
)  # fmt: skip


def run(checks: Sequence[Check]) -> tuple[list[dict[str, Any]], bool]:
    """Verify each; returns the rows of the result and whether every verdict was one of those expected."""
    rows: list[dict[str, Any]] = []
    for check in checks:
        original, candidate = check.texts()
        started = time.monotonic()
        report = verify(original, candidate, goal=check.goal, again=True)
        row = judged(check, report, time.monotonic() - started)
        rows.append(row)
        print(f"{'ok  ' if row['as_expected'] else 'FAIL'} {check.name:<48} {row['badge']:<58} {row['seconds']:5.1f} s")
        if not row["as_expected"]:
            print(f"     expected {' or '.join(check.expected)} {check.words!r}; {report.reason} {list(report.notes)}")
        sys.stdout.flush()
    return rows, all(row["as_expected"] for row in rows)


def judged(check: Check, report: Report, seconds: float) -> dict[str, Any]:
    offered = acceptable(report, check.goal)
    must_not = {"wrong", "unsafe", "timeout", "does-not-compile", "slower"}
    right = str(report.status) in check.expected and check.words in report.reason
    return {
        "name": check.name,
        "sample": check.sample,
        "goal": check.goal,
        "expected": list(check.expected),
        "status": str(report.status),
        "badge": report.badge(),
        "reason": report.reason,
        "offered": offered,
        "as_expected": right and not (offered and str(report.status) in must_not),
        "seconds": round(seconds, 2),
        "report": report.to_json(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where gpu_check.json is written")
    parser.add_argument("--only", default="", metavar="TEXT", help="run the checks whose name holds TEXT")
    arguments = parser.parse_args()
    gpu, toolchain = find_gpu(never_cancelled), find_toolchain()
    for part in (gpu, toolchain):
        if isinstance(part, Missing):
            print(f"gpu_check: {part}", file=sys.stderr)
            return 2
    assert not isinstance(gpu, Missing) and not isinstance(toolchain, Missing)
    details = gpu.details
    print(f"{gpu.name}, CUDA {details['driver']}, torch {details['torch']}, nvcc {toolchain.version}")
    rows, as_expected = run([c for c in CHECKS if arguments.only in c.name])
    arguments.out.mkdir(parents=True, exist_ok=True)
    result = {
        "command": "PYTHONPATH=server python3 benchmarks/gpu_check.py --out DIR",
        "hardware": dict(gpu.details),
        "versions": {"nvcc": toolchain.version, "python": platform.python_version(), "system": platform.system()},
        "as_expected": sum(row["as_expected"] for row in rows),
        "checks": rows,
    }
    text = json.dumps(result, indent=1).replace(f"{ROOT}/", "")  # paths as from the repository's root
    (arguments.out / "gpu_check.json").write_text(text + "\n", encoding="utf-8")
    print(f"{result['as_expected']} of {len(rows)} verdicts are as expected")
    return 0 if as_expected else 1


if __name__ == "__main__":
    sys.exit(main())
