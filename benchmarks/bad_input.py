"""Seconds that analysis and rules take for text that nobody writes by hand: generated, tangled, doubling without end.

    python benchmarks/bad_input.py [NAME...] [--write]

The limit is one second for a text, and one for each 1,000 lines of it (a line counts as one for each 80 characters).
`--write` records the result, with hardware and versions, in benchmarks/results/bad_input.json.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import resource
import sys
import time
from importlib.metadata import version
from pathlib import Path

from warpwright.facts.analyze import analyze
from warpwright.facts.document import facts_text
from warpwright.rules.registry import all_rules, run_rules
from warpwright.syntax.source import Source

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "bad_input.json"
MOST_SECONDS = 60.0
LAUNCH = b"void run(int* p) { k<<<64, 256>>>(p, 7); }\n"


def kernel(body: bytes, before: bytes = b"") -> bytes:
    head = b"__global__ void k(int* p, int n) {\n  int t = threadIdx.x + blockIdx.x * blockDim.x;\n"
    return before + head + body + b"}\n" + LAUNCH


def each(pattern: bytes, count: int, start: int = 0) -> bytes:
    """The pattern so often, with @ for the number and $ for the one before."""
    return b"".join(
        pattern.replace(b"@", str(n).encode()).replace(b"$", str(n - 1).encode()) for n in range(start, count)
    )


GENERATED = (
    b"__global__ void k@(float* a, const float* b, int n) {\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    b"  __shared__ float s[256];\n  s[threadIdx.x] = b[i * 3];\n  __syncthreads();\n  for (int j = 0; j < 16; j++)\n"
    b"    a[i] += s[(threadIdx.x * 33 + j) % 256];\n}\nvoid r@(float* a, float* b) { k@<<<128, 256>>>(a, b, 1); }\n"
)
CASES: dict[str, bytes] = {
    "1 MB of generated kernels": each(GENERATED, 3100),
    "1,000 kernels": each(b"__global__ void k@(int* p, int n) {\n if (threadIdx.x < n)\n  p[t] = n;\n}\n", 1000)
    + b"void run(int* p) {\n" + each(b"  k@<<<64, 128>>>(p, 3);\n", 1000) + b"}\n",
    "1,000 launches": b"__global__ void k(int* p, int n) { p[threadIdx.x] = n; }\nvoid run(int* p) {\n"
    + each(b"  k<<<@, @>>>(p, @);\n", 1001, 1) + b"}\n",
    "a kernel of 5,000 lines": kernel(each(b"p[t * 3 + @] += p[t + @];\n", 5000)),
    "5,000 lines of loops": kernel(each(b"for (int i = 0; i < n; i++) {\n p[t * 2 + i] += p[t + i * @];\n}\n", 1700)),
    "a switch of 10,000 cases": kernel(b"switch (p[t]) {\n" + each(b"case @: p[t + @] = @; break;\n", 10000) + b"}\n"),
    "a sum of 10,000 terms": kernel(b"p[0] = 0\n" + each(b" + p[t + @]\n", 10000) + b";\n"),
    "3,000 nested ifs": kernel(b"if (p[t]) {\n" * 3000 + b"p[t] = 1;\n" + b"}\n" * 3000),
    "300 nested loops": kernel(each(b"for (int i@ = 0; i@ < n; i@++) {\n", 300) + b"p[t] = 1;\n" + b"}\n" * 300),
    "100 nested whiles": kernel(b"while (p[t]) {\n" * 100 + b"p[t] = 1;\n" + b"}\n" * 100),
    "2,000 breaks in a loop": kernel(
        b"for (;;) {\n" + each(b"if (p[t] == @) break; if (p[t] > @) continue;\n", 2000) + b"}\n"
    ),
    "macros that double": kernel(b"p[A39(t)] = 1;\n", each(b"#define A@(x) (A$(x) + A$(x))\n", 40)),
    "constants that double": each(b"const int c@ = c$ + c$;\n", 60) + kernel(b"p[c59] = 1;\n"),
    "host functions that double": each(b"int f@(int n) { return f$(n) + f$(n + 1); }\n", 40)
    + b"__global__ void k(int* p) { p[threadIdx.x] = 1; }\nvoid run(int* p) { k<<<f39(1), f39(2)>>>(p); }\n",
    "device functions that double": each(b"__device__ int f@(int n) { return f$(n) + f$(n + 1); }\n", 40)
    + kernel(b"p[f39(t)] = 1;\n"),
    "structures that double": b"struct S0 { int a; int b; };\n" + each(b"struct S@ { S$ a; S$ b; };\n", 300, 1)
    + b"__global__ void k(S25* p, S299* q) { S25 s = p[threadIdx.x]; p[0] = s; q->a.b = q->b.a; }\n",
    "template recursion": b"template <int N> __device__ int g(int x) { return g<N - 1>(x) + g<N - 2>(x); }\n"
    + kernel(b"p[t] = g<40>(t);\n"),
    "numbers that grow": kernel(b"long long x = 3;\nfor (;;) x = x * x * x + x << 63;\np[x] = 1;\n"),
    "a constant array of 100,000": b"__constant__ int tab[] = {" + each(b"@,\n", 100000) + b"0};\n"
    + kernel(b"p[t] = tab[t];\n"),
    "20,000 #elif": b"#if 0\n" + each(b"#elif X == @\nint a@;\n", 20000) + b"#endif\n" + kernel(b"p[t] = 1;\n"),
    "a line of 1 MB": kernel(b"p[t] = 1; " * 100_000),
    "1 MB of open parentheses": kernel(b"p[" + b"(" * 1_000_000),
    "1 MB of open braces": b"{" * 1_000_000,
    "1 MB of open launches": b"k<<<1," * 170_000,
    "1 MB of quotes": b"'\"`" * 333_333,
}  # fmt: skip


def limit(data: bytes) -> float:
    lines = sum(1 + len(line) // 80 for line in data.split(b"\n"))
    return max(1.0, lines / 1000)


def measure(data: bytes) -> tuple[float, int]:
    """Processor seconds, and the most memory of the process in MB."""
    start = time.process_time()
    program = analyze(Source("bad.cu", data))
    list(run_rules(program))
    facts_text(program)
    return time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    all_rules()
    rows: list[dict[str, object]] = []
    late = 0
    for name in options.names or CASES:
        data = CASES[name]
        with multiprocessing.Pool(1) as pool:
            try:
                seconds, megabytes = pool.apply_async(measure, (data,)).get(MOST_SECONDS)
            except multiprocessing.TimeoutError:
                seconds, megabytes = MOST_SECONDS, 0
        late += seconds > limit(data)
        row = {"text": name, "bytes": len(data), "lines": data.count(b"\n"), "seconds": round(seconds, 2)}
        rows.append({**row, "limit": round(limit(data), 1), "megabytes": megabytes})
        print(
            f"{'LATE' if seconds > limit(data) else 'ok  '} {name:32} {seconds:6.2f} s of {limit(data):5.1f}",
            flush=True,
        )
    result = {
        "what": "processor seconds of analysis, rules and the text of the facts; a limit of 60 s is where it was ended",
        "command": "python benchmarks/bad_input.py",
        "texts": rows,
        "over_their_limit": late,
        "hardware": f"{os.cpu_count()} threads",
        "versions": {
            "python": platform.python_version(),
            **{package: version(package) for package in ("warpwright", "tree-sitter", "tree-sitter-cuda")},
        },
    }
    if options.write:
        RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return int(late > 0)


if __name__ == "__main__":
    sys.exit(main())
