"""Does `warpwright verify` reject torch extensions that cheat, and pass honest ones? On a CUDA GPU.

Every file of tests/attacks/extension claims to replace original.cu there, and every candidate.cu of
tests/honest/extension its original.cu. Prints a table, writes benchmarks/results/extension_attacks.json, and exits with
1 where a verdict is not the one that is true.

    python benchmarks/extension_attacks.py [NAME ...] [--part K/N] [--out FILE] [--join FILE ...]

`--join` makes one result of those of several parts.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpwright.missing import Missing
from warpwright.progress import never_cancelled
from warpwright.syntax.source import Source, read_source
from warpwright.toolchain.compile import EXTENSION_SECONDS, TorchBuild, compile_cubin, compile_extension
from warpwright.verify.harness import Gpu, find_gpu
from warpwright.verify.report import Report
from warpwright.verify.torch_build import find_torch
from warpwright.verify.verify import verify

ROOT = Path(__file__).resolve().parent.parent
ATTACKS = ROOT / "tests" / "attacks" / "extension"
HONEST = ROOT / "tests" / "honest" / "extension"
OUT = ROOT / "benchmarks" / "results" / "extension_attacks.json"
AT_ONCE = 5
PASSED = ("correct", "faster", "inconclusive", "slower")


@dataclass(frozen=True)
class Check:
    """One pair, the statuses that are true of it, and words that its reason must hold."""

    name: str
    original: Path
    candidate: Path
    statuses: tuple[str, ...]
    words: str = ""

    def sources(self) -> tuple[Source, Source]:
        return read_source(self.original), read_source(self.candidate)


_EXPECTED: dict[str, tuple[str, str]] = {
    "changes_its_input": ("unsafe", "changes its input x"),
    "writes_nothing": ("wrong", "should be"),
    "whole_blocks_only": ("wrong", "should be"),
    "half_precision": ("wrong", "should be"),
    "writes_before_its_input": ("unsafe", "writes outside x"),
    "writes_past_its_output": ("wrong", "should be"),
    "returns_its_input": ("unsafe", "changes its input x"),
    "other_type": ("wrong", "is of type float64"),
    "other_shape": ("wrong", "has the shape"),
    "strided_result": ("wrong", "has the strides"),
    "result_on_the_host": ("wrong", "lies on the cpu"),
    "kernel_never_launched": ("wrong", "no kernel of its file runs"),
    "decoy_kernel": ("wrong", "kernels of its file take"),
    "falls_back_when_large": ("wrong", "no kernel of its file runs"),
    "calls_operators": ("wrong", "library call"),
    "calls_the_dispatcher": ("wrong", "library call"),
    "calls_cublas": ("wrong", "library call"),
    "stale_after_many_calls": ("wrong", "while timed"),
    "other_stream": ("wrong", "should be"),
    "other_stream_not_joined": ("wrong", "should be"),
    "thread_finishes_later": ("wrong", "should be"),
    "thread_changes_later": ("unsafe", "changes after the call"),
    "thread_stays": ("unsafe", "threads running"),
    "replaces_python_clocks": ("unsafe", "replaces"),
    "replaces_the_drivers_clock": ("unsafe", "judge's clock"),
    "cached_by_address": ("wrong", "should be"),
    "cached_by_identity": ("wrong", "should be"),
    "cached_by_checksum": ("wrong", "should be"),
    "one_buffer_for_all": ("unsafe", "changes after the call"),
    "computes_one_call_later": ("wrong", "should be"),
    "kernel_never_ends": ("timeout", "does not finish"),
    "call_never_returns": ("timeout", "does not finish"),
    "illegal_address": ("unsafe", "CUDA"),
    "constructor_exits": ("unsafe", "cannot be loaded"),
    "prints_forged_results": ("wrong", "should be"),
    "writes_to_every_descriptor": ("unsafe", "harness's channel"),
    "exits_quietly": ("unsafe", "exit status 0"),
    "crashes": ("unsafe", "SIGSEGV"),
}

CHECKS: tuple[Check, ...] = (
    *(
        Check(path.name, path / "original.cu", path / "candidate.cu", PASSED)
        for path in sorted(HONEST.iterdir())
        if path.is_dir()
    ),
    *(
        Check(name, ATTACKS / "original.cu", ATTACKS / f"{name}.cu", (status,), words)
        for name, (status, words) in _EXPECTED.items()
    ),
)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="only these")
    parser.add_argument("--part", default="1/1", help="K/N: the K-th of N parts of them")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--join", type=Path, nargs="+", help="results of parts to put together")
    asked = parser.parse_args(arguments)
    if asked.join:
        return _joined(asked.join, asked.out)
    gpu, torch = find_gpu(never_cancelled), find_torch()
    for found in (gpu, torch):
        if isinstance(found, Missing):
            print(f"not run: {found}")
            return 2
    assert isinstance(gpu, Gpu)
    assert isinstance(torch, TorchBuild)
    part, parts = map(int, asked.part.split("/"))
    chosen = [check for check in CHECKS if not asked.names or check.name in asked.names][part - 1 :: parts]
    started = time.monotonic()
    _build(chosen, torch, gpu.arch)
    print(f"built in {time.monotonic() - started:.0f} s")
    command = f"python benchmarks/extension_attacks.py {' '.join(arguments)}".strip()
    versions = {key: gpu.details[key] for key in ("driver", "torch", "cuda")}
    results: list[dict[str, Any]] = []
    surprises: list[str] = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for done in as_completed([pool.submit(_result, check) for check in chosen]):
            results.append(done.result())
            surprises = _write(asked.out, [command], gpu.name, versions, results)  # what is there survives a time-out
    print(f"{len(results)} verified in {time.monotonic() - started:.0f} s, surprises: {', '.join(surprises) or 'none'}")
    return 1 if surprises else 0


def _write(
    out: Path, commands: list[str], hardware: str, versions: dict[str, str], results: list[dict[str, Any]]
) -> list[str]:
    """Write the result; the names of those that were not as expected."""
    surprises = [result["name"] for result in results if not result["as_expected"]]
    document = {
        "commands": commands,
        "hardware": hardware,
        "versions": versions,
        "rejected": sum(r["status"] not in PASSED for r in results),
        "passed": sum(r["status"] in PASSED for r in results),
        "surprises": surprises,
        "results": results,
    }
    out.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return surprises


def _joined(parts: Sequence[Path], out: Path) -> int:
    """One result of several, on one kind of machine; the later of two of one name counts."""
    documents = [json.loads(part.read_text(encoding="utf-8")) for part in parts]
    first = documents[0]
    if any((d["hardware"], d["versions"]) != (first["hardware"], first["versions"]) for d in documents):
        print("the parts stem from different machines")
        return 2
    results = {result["name"]: result for document in documents for result in document["results"]}
    ordered = [results[check.name] for check in CHECKS if check.name in results]
    commands = [command for document in documents for command in document["commands"]]
    surprises = _write(out, commands, first["hardware"], first["versions"], ordered)
    lacking = [check.name for check in CHECKS if check.name not in results]
    print(
        f"{len(ordered)} joined, surprises: {', '.join(surprises) or 'none'}, lacking: {', '.join(lacking) or 'none'}"
    )
    return 1 if surprises or lacking else 0


def _build(checks: Sequence[Check], torch: TorchBuild, arch: str) -> None:
    """Fill the cache: as many compilers at once as there are cores."""
    sources = {path: read_source(path) for check in checks for path in (check.original, check.candidate)}

    def library(source: Source) -> object:
        return compile_extension(source, torch, arch=arch)

    def cubin(source: Source) -> object:
        return compile_cubin(source, arch=arch, flags=torch.flags, timeout=EXTENSION_SECONDS)

    work: list[tuple[Callable[[Source], object], Source]] = [(f, s) for f in (library, cubin) for s in sources.values()]
    with ThreadPoolExecutor(max(2, (os.cpu_count() or 2) - 1)) as pool:
        list(pool.map(lambda one: one[0](one[1]), work))


def _result(check: Check) -> dict[str, Any]:
    started = time.monotonic()
    report = verify(*check.sources(), goal="speed", again=True)
    seconds = time.monotonic() - started
    as_expected = str(report.status) in check.statuses and check.words in report.reason
    print(f"{'ok' if as_expected else 'SURPRISE':9}{check.name:28}{seconds:5.1f} s  {_said(report)}", flush=True)
    return {
        "name": check.name,
        "status": str(report.status),
        "expected": list(check.statuses),
        "as_expected": as_expected,
        "reason": report.reason,
        "badge": report.badge(),
        "comparisons": len(report.cases),
        "speed": [speed.to_json() for speed in report.speed],
        "notes": list(report.notes),
        "seconds": round(seconds, 1),
    }


def _said(report: Report) -> str:
    return f"{report.badge()}: {report.reason}"[:200]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
