"""Processor seconds that analysis and rules take for real programs after a seed has damaged them.

    python benchmarks/mutated_files.py [ROOT...] [--count 3000] [--seed 1] [--keep DIR] [--write]

The texts are CUDA files of the samples, of the tests and of each ROOT, as many of each, with their includes. Each is
changed in one to three ways: nesting, duplication, cut-offs, tokens and lines that are deleted, doubled or exchanged,
operators that are repeated, brackets that are lost. The limit is three seconds for a text. `--keep` writes those that
were over it or failed; `--write` records the result in benchmarks/results/mutated_files.json.
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import os
import platform
import re
import resource
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

from warpwright.facts.analyze import analyze
from warpwright.rules.registry import all_rules, run_rules
from warpwright.syntax.source import Source, read_include

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "mutated_files.json"
FOLDERS = ("csrc_samples", "tests")
MOST_BYTES = 200_000
LIMIT = 3.0
ENDED = 30
"""Processor seconds after which the process of a text is ended."""
MOST_MEMORY = 4 << 30
_TOKEN = re.compile(rb"[A-Za-z_]\w*|\d[\w.]*|<<<|>>>|[-+*/%&|^<>=!]=?|\s+|.", re.DOTALL)
_OPERATORS = (
    b"-",
    b"+",
    b"!",
    b"~",
    b"*",
    b"&",
    b"--",
    b"++",
    b"(",
    b"[",
    b"{",
    b"<",
    b"<<<",
    b"?",
    b"::",
    b"(int)",
    b"#if 1\n",
)
_AROUND = (
    (b"(", b")"), (b"{", b"}"), (b"if (n) ", b""), (b"(int)", b""), (b"f(", b")"), (b"a[", b"]"), (b"A<", b">"),
    (b"-", b""),
    (b"[&] { return ", b"; }()"), (b"for (int q = 0; q < n; q++) ", b""), (b"x ? 1 : ", b""), (b"namespace z {", b"}"),
    (b"if (n) {", b"} else {}"), (b"while (n) {", b"}"), (b"switch (n) { case 1: ", b"}"), (b"#if A\n", b"\n#endif\n"),
)  # fmt: skip
Change = Callable[[bytes, Random], bytes]


def _place(data: bytes, random: Random) -> tuple[int, int]:
    """A stretch of whole tokens."""
    ends = [match.end() for match in _TOKEN.finditer(data)] or [0]
    first = random.randrange(len(ends))
    last = min(len(ends) - 1, first + random.choice((1, 3, 10, 100)))
    return ends[first], ends[last]


def nested(data: bytes, random: Random) -> bytes:
    start, end = _place(data, random)
    before, after = random.choice(_AROUND)
    depth = random.choice((2, 8, 30, 100, 400, 1500))
    return data[:start] + before * depth + data[start:end] + after * depth + data[end:]


def operators(data: bytes, random: Random) -> bytes:
    start, _ = _place(data, random)
    return data[:start] + random.choice(_OPERATORS) * random.choice((2, 9, 50, 300, 2000)) + data[start:]


def doubled(data: bytes, random: Random) -> bytes:
    start, end = _place(data, random)
    return data[:start] + data[start:end] * random.choice((2, 3, 10, 60)) + data[end:]


def doubled_lines(data: bytes, random: Random) -> bytes:
    lines = data.splitlines(keepends=True)
    first = random.randrange(len(lines))
    last = min(len(lines), first + random.choice((1, 5, 30, 200)))
    return b"".join(lines[:first] + lines[first:last] * random.choice((2, 5, 20)) + lines[last:])


def twice(data: bytes, random: Random) -> bytes:
    """The whole program again, its kernels under other names, so that all of them count."""
    names = sorted({match[1] for match in re.finditer(rb"__global__[^;{()]*?(\w+)\s*\(", data)})
    again = data
    for name in names:
        again = re.sub(rb"\b" + re.escape(name) + rb"\b", name + str(random.randrange(99)).encode(), again)
    return data + b"\n" + again


def cut(data: bytes, random: Random) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def cut_out(data: bytes, random: Random) -> bytes:
    start, end = _place(data, random)
    return data[:start] + data[end:]


def lost_lines(data: bytes, random: Random) -> bytes:
    share = random.choice((0.01, 0.1, 0.5))
    return b"".join(line for line in data.splitlines(keepends=True) if random.random() > share)


def exchanged(data: bytes, random: Random) -> bytes:
    lines = data.splitlines(keepends=True)
    random.shuffle(lines)
    return b"".join(lines)


def lost_brackets(data: bytes, random: Random) -> bytes:
    share = random.choice((0.01, 0.1))
    return bytes(c for c in data if c not in b"(){}[]<>;" or random.random() > share)


def one_line(data: bytes, _random: Random) -> bytes:
    return data if b"#" in data or b"//" in data else data.replace(b"\n", b" ")


CHANGES: tuple[Change, ...] = (
    nested, nested, operators, operators, doubled, doubled_lines, twice, cut, cut_out, lost_lines, exchanged,
    lost_brackets, one_line,
)  # fmt: skip


def mutated(data: bytes, random: Random) -> tuple[bytes, list[str]]:
    """The text after one to three changes, and their names."""
    said: list[str] = []
    for _ in range(random.choice((1, 1, 2, 3))):
        change = random.choice(CHANGES)
        out = change(data, random)
        if out and len(out) <= MOST_BYTES:
            data = out
            said.append(change.__name__)
    return data, said


def _measured(path: str, data: bytes, results: Connection) -> None:
    """The process of one text: it can be ended without harm to the others."""
    resource.setrlimit(resource.RLIMIT_CPU, (ENDED, ENDED))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    logging.disable(logging.WARNING)
    failures: list[str] = []
    rules = logging.getLogger("warpwright.rules.registry")  # a rule that fails is logged and costs its findings alone
    rules.addFilter(lambda record: failures.append(record.getMessage()) is not None)
    start = time.process_time()
    try:
        run_rules(analyze(Source(path, data), read_include))
    except BaseException as error:  # RecursionError and MemoryError too: none may come out
        failures.append(f"{type(error).__name__}: {error}")
    results.send((time.process_time() - start, failures[:1]))


def measured(path: str, data: bytes) -> tuple[float, str]:
    """Processor seconds of a text, and what failed."""
    here, there = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_measured, args=(path, data, there))
    process.start()
    there.close()
    try:
        seconds, failures = here.recv()
    except EOFError:
        seconds, failures = float(ENDED), ["ended"]
    process.join()
    here.close()
    return seconds, failures[0] if failures else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("roots", nargs="*", type=Path, metavar="ROOT", help="folders of other programs")
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where texts over the limit are written")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    folders = [*(ROOT / name for name in FOLDERS), *options.roots]
    found = [sorted(p for p in folder.rglob("*.cu") if 0 < p.stat().st_size <= MOST_BYTES) for folder in folders]
    all_rules()
    rows: list[tuple[float, str]] = []
    over: list[dict[str, object]] = []
    for number in range(options.count):
        random = Random(f"{options.seed}:{number}")
        path = random.choice(random.choice(found))
        data, changes = mutated(path.read_bytes(), random)
        seconds, failure = measured(str(path), data)
        rows.append((seconds, failure))
        if seconds > LIMIT or failure:
            over.append({"number": number, "changes": changes, "seconds": round(seconds, 2), "failure": failure})
            print(f"{number} {path.name} {changes} {seconds:.2f} s {failure}", flush=True)
            if options.keep:
                options.keep.mkdir(parents=True, exist_ok=True)
                (options.keep / f"{number}_{path.name}").write_bytes(data)
    seconds = sorted(row[0] for row in rows)
    roots = (
        f"{len(options.roots)} folder(s) of other programs, and the repository's"
        if options.roots
        else "the repository's"
    )
    result = {
        "what": "processor seconds of analysis and rules for real CUDA files that a seed damaged; the limit is 3 s",
        "command": f"python benchmarks/mutated_files.py{' ROOT' * len(options.roots)} "
        f"--count {options.count} --seed {options.seed}",
        "files": f"{sum(map(len, found))}: {roots}",
        "texts": len(rows),
        "seconds": {
            "median": round(seconds[len(seconds) // 2], 3),
            "p99": round(seconds[len(seconds) * 99 // 100], 3),
            "max": round(seconds[-1], 3),
        },
        "over_the_limit": sum(value > LIMIT for value in seconds),
        "failures": sum(bool(row[1]) for row in rows),
        "named": over,
        "hardware": f"{platform.machine()}, {os.cpu_count()} threads",
        "versions": {
            "python": platform.python_version(),
            **{package: version(package) for package in ("warpwright", "tree-sitter", "tree-sitter-cuda")},
        },
    }
    print(json.dumps(result, indent=1))
    if options.write:
        RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return int(bool(over))


if __name__ == "__main__":
    sys.exit(main())
