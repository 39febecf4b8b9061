"""Does `warpwright verify` reject torch extensions that cheat, and pass honest ones? On a CUDA GPU.

Every attack of tests/attacks/extension/attacks.md claims to replace original.cu there, and every candidate.cu of
tests/honest/extension/extensions.md its original.cu. The honest ones come first, one at a time; all of a kind are built
before any is verified. Prints a table, keeps benchmarks/results/extension_attacks.json up to date with each verdict,
and exits with 1 where a verdict is not the one that is true, or a pair was not run.

    PYTHONPATH=tests python benchmarks/extension_attacks.py [NAME ...] [--seconds S] [--out FILE] [--reports DIR]

With names, or where the time did not suffice, what the file holds of other pairs is kept, if it is of the same GPU and
software: they can be run one after the other.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import math
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.pairs import what_and_fields
from support.texts import read_texts, write_texts
from warpwright.missing import Missing
from warpwright.progress import CancelledError, never_cancelled
from warpwright.syntax.source import Source, read_source
from warpwright.toolchain.compilation import TorchBuild
from warpwright.toolchain.compile import EXTENSION_SECONDS, compile_cubin, compile_extension
from warpwright.verify.harness import Gpu, find_gpu, forget_gpu
from warpwright.verify.report import Report
from warpwright.verify.torch_build import find_torch
from warpwright.verify.verify import verify

ROOT = Path(__file__).resolve().parent.parent
ATTACKS = ROOT / "tests" / "attacks" / "extension"
HONEST = ROOT / "tests" / "honest" / "extension" / "extensions.md"
OUT = ROOT / "benchmarks" / "results" / "extension_attacks.json"
HONEST_AT_ONCE, ATTACKS_AT_ONCE = 1, 5
"""Verifications at once: a cheat is to be seen beside others, and how long an honest one takes without them."""
GRACE_SECONDS = 25.0
"""After the time that was given: what has not ended then never will, and where it hangs is printed."""
PASSED = ("correct", "faster", "inconclusive", "slower")


@dataclass(frozen=True)
class Check:
    """One pair, the statuses that are true of it, and words that its reason must hold."""

    name: str
    original: Source
    candidate: Source
    statuses: tuple[str, ...]
    words: str = ""

    @property
    def is_honest(self) -> bool:
        return self.statuses == PASSED


def checks() -> Iterator[Check]:
    for path in write_texts(HONEST, Path(_written.name)):
        yield Check(path.name, read_source(path / "original.cu"), read_source(path / "candidate.cu"), PASSED)
    original = read_source(ATTACKS / "original.cu")
    for attack in read_texts(ATTACKS / "attacks.md"):
        _, fields = what_and_fields(attack)
        candidate = Source(str(ATTACKS / f"{attack.name}.cu"), attack.text.encode())
        yield Check(attack.name, original, candidate, tuple(fields["cuda"].split()), fields["words"])


_written = tempfile.TemporaryDirectory()
"""The honest ones, with what is said of them, as files: until this process ends."""
CHECKS = (*checks(),)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="only these")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after so many, and say what was not run")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--reports", type=Path, metavar="DIR", help="keep the whole report of each pair here")
    asked = parser.parse_args(arguments)
    gpu, torch = find_gpu(never_cancelled), find_torch()
    for found in (gpu, torch):
        if isinstance(found, Missing):
            print(f"not run: {found}")
            return 2
    assert isinstance(gpu, Gpu)
    assert isinstance(torch, TorchBuild)
    chosen = [check for check in CHECKS if not asked.names or check.name in asked.names]
    limit = [f"--seconds {asked.seconds:g}"] if asked.seconds < math.inf else []
    if limit:
        faulthandler.dump_traceback_later(asked.seconds + GRACE_SECONDS, exit=True)
    command = " ".join(["PYTHONPATH=tests python benchmarks/extension_attacks.py", *asked.names, *limit])
    run = Run(chosen, command, gpu, asked.out, asked.reports, asked.seconds)
    for checks, at_once in (
        ([check for check in chosen if check.is_honest], HONEST_AT_ONCE),
        ([check for check in chosen if not check.is_honest], ATTACKS_AT_ONCE),
    ):
        run.build(checks, torch)
        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(run.verify, checks))
    surprises, lacking = run.surprises(), run.not_run()
    print(
        f"{len(run.results)} verified in {run.seconds():.0f} s, surprises: {', '.join(surprises) or 'none'}, "
        f"not run: {', '.join(lacking) or 'none'}"
    )
    return 1 if surprises or lacking else 0


class Run:
    """What has come of the checks so far; its file is up to date after each."""

    def __init__(
        self, checks: Sequence[Check], command: str, gpu: Gpu, out: Path, reports: Path | None, most_seconds: float
    ) -> None:
        self.checks, self.command, self.gpu, self.out, self.reports = checks, command, gpu, out, reports
        self.started, self.most_seconds = time.monotonic(), most_seconds
        self.known = _known(out, self.hardware)
        self.results: dict[str, dict[str, Any]] = {}
        self.build_seconds = 0.0
        self._writing = threading.Lock()

    def seconds(self) -> float:
        return time.monotonic() - self.started

    def is_over(self) -> bool:
        return self.seconds() > self.most_seconds

    def surprises(self) -> list[str]:
        return [result["name"] for result in self.results.values() if not result["as_expected"]]

    def not_run(self) -> list[str]:
        return [check.name for check in self.checks if check.name not in self.results]

    def build(self, checks: Sequence[Check], torch: TorchBuild) -> None:
        """Fill the cache: as many compilers at once as there are cores. What fails is told by the verification."""
        sources = {each.path: each for check in checks for each in (check.original, check.candidate)}
        arch, started = self.gpu.arch, self.seconds()

        def library(source: Source) -> object:
            return compile_extension(source, torch, arch=arch, is_cancelled=self.is_over)

        def cubin(source: Source) -> object:
            return compile_cubin(
                source, arch=arch, flags=torch.flags, timeout=EXTENSION_SECONDS, is_cancelled=self.is_over
            )

        def built(one: tuple[Callable[[Source], object], Source]) -> None:
            with suppress(CancelledError):
                one[0](one[1])

        with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
            list(pool.map(built, [(make, source) for make in (library, cubin) for source in sources.values()]))
        took = self.seconds() - started
        self.build_seconds += took
        print(f"{len(sources)} files built in {took:.0f} s", flush=True)

    def verify(self, check: Check) -> None:
        """One check, by a harness that is ready, unless the time is up before its verdict is there."""
        if self.is_over():
            return
        try:
            forget_gpu()
            find_gpu(self.is_over)
            started = time.monotonic()
            report = verify(check.original, check.candidate, goal="speed", again=True, is_cancelled=self.is_over)
        except CancelledError:
            return
        seconds = time.monotonic() - started
        with self._writing:
            self.results[check.name] = _result(check, report, seconds)
            self._write()
            if self.reports is not None:
                self.reports.mkdir(parents=True, exist_ok=True)
                text = json.dumps(report.to_json(), indent=1)
                (self.reports / f"{check.name}.json").write_text(text, encoding="utf-8")

    @property
    def hardware(self) -> dict[str, Any]:
        versions = {key: self.gpu.details[key] for key in ("driver", "torch", "cuda")}
        return {"hardware": self.gpu.name, "versions": versions}

    def _write(self) -> None:
        rows = self.known | self.results
        results = [rows[check.name] for check in CHECKS if check.name in rows]
        document = {
            "command": self.command,
            **self.hardware,
            "seconds": {"all": round(self.seconds()), "builds": round(self.build_seconds)},
            "rejected": sum(r["status"] not in PASSED for r in results),
            "passed": sum(r["status"] in PASSED for r in results),
            "surprises": [r["name"] for r in results if not r["as_expected"]],
            "not_run": [check.name for check in CHECKS if check.name not in rows],
            "results": results,
        }
        self.out.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _known(out: Path, hardware: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The rows that a file has from before, by name; none where they are of another GPU or other software."""
    document = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
    if any(document.get(key) != value for key, value in hardware.items()):
        return {}
    return {row["name"]: row for row in document["results"]}


def _result(check: Check, report: Report, seconds: float) -> dict[str, Any]:
    """The row of a check; prints it, too."""
    as_expected = str(report.status) in check.statuses and check.words in report.reason
    stages = dict(report.environment.get("seconds", {}))
    stages["else"] = round(seconds - sum(stages.values()), 2)
    longest = sorted(stages.items(), key=lambda one: -one[1])
    print(
        f"{'ok' if as_expected else 'SURPRISE':9}{check.name:28}{seconds:5.1f} s  {report.badge()}: {report.reason}"[
            :240
        ]
    )
    print(f"{'':37}{', '.join(f'{name} {took:.1f}' for name, took in longest if took >= 0.1)}", flush=True)
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
        "stages": stages,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
