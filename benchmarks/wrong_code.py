"""Precision and recall of what is found wrong in small kernels, by class: from the text alone, and with a run.

    python benchmarks/wrong_code.py [--run] [--out FILE] [CLASS...]

The kernels are those of benchmarks/wrong_code, whose README says how they are labelled: each case is read as a file of
its own. A finding is an error or a warning of one of the class's rules. It is right in a case that is labelled with the
class, and a false alarm in any other. With `--run` each kernel is run in the emulator too, which needs nvcc.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpwright import __version__
from warpwright.editor.profile.store import placed
from warpwright.emulator.profiling import Wanted, emulated_profile
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Program
from warpwright.facts.profile import Profile
from warpwright.facts.profiled import with_profiles
from warpwright.progress import never_cancelled, silent
from warpwright.rules.base import Severity
from warpwright.rules.registry import run_rules
from warpwright.syntax.source import Source

FOLDER = Path(__file__).with_name("wrong_code")
CLASSES = {
    "races": ("shared-memory-race", "global-memory-race", "missing-syncwarp"),
    "barriers": ("barrier-in-divergent-branch", "deadlock"),
    "bounds": ("missing-bounds-check",),
    "memory": ("uninitialised-read", "use-after-free", "short-copy", "long-copy", "host-pointer"),
}
"""The rules that find the defects of each class."""
GRAVE = (Severity.ERROR, Severity.WARNING)
SECONDS = 60.0
_LABEL = re.compile(r"^// (?:wrong \((\w+)\)|right): (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """A kernel with the host code that launches it, as a file of its own whose lines are numbered as in `file`. `wrong`
    is the class of its defect; None of one that is right."""

    file: str
    line: int
    wrong: str | None
    about: str
    text: str


@dataclass(frozen=True)
class Result:
    """The rules that found something in a case, with the lines, by class, and the processor's seconds: in the text, or
    with a run, which `not_run` says why there was none of."""

    case: Case
    found: dict[str, list[str]]
    seconds: float
    not_run: str = ""


def cases(text: str, file: str) -> Iterator[Case]:
    """What stands before the first label is part of every case.

    >>> text = "#define N 4\\n// wrong (races): x\\na\\n// right: y\\nb\\n"
    >>> [(case.line, case.wrong, case.text.split("\\n")[3:]) for case in cases(text, "a.cu")]
    [(2, 'races', ['']), (4, None, ['// right: y', 'b', ''])]
    """
    labels = list(_LABEL.finditer(text))
    ends = [label.start() for label in labels[1:]] + [len(text)]
    for label, end in zip(labels, ends, strict=True):
        head = text[: labels[0].start()]
        gap = "\n" * text.count("\n", labels[0].start(), label.start())
        line = text.count("\n", 0, label.start()) + 1
        yield Case(file, line, label[1], label[2], head + gap + text[label.start() : end])


def looked_at(case: Case, run: bool) -> list[Result]:
    """By the text, and where it is asked for by a run."""
    start = _processor()
    program = analyze(Source(str(FOLDER / case.file), case.text.encode()))
    results = [Result(case, _found(program), _processor() - start)]
    if run:
        start = _processor()
        program, not_run = _ran(program)
        results.append(Result(case, _found(program), _processor() - start, not_run))
    return results


def _processor() -> float:
    """The seconds that this process and those that it waited for had a processor: others use the machine, too."""
    return sum(os.times()[:4])


def _found(program: Program) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for finding in run_rules(program):
        for name, rules in CLASSES.items():
            if finding.rule in rules and finding.severity in GRAVE:
                found.setdefault(name, []).append(f"{finding.span.line} {finding.rule}: {finding.message}")
    return found


def _ran(program: Program) -> tuple[Program, str]:
    """The same with what a run of each kernel shows, and why one was not run."""
    profiles, missing = [], ""
    for kernel in program.defined_kernels:
        wanted = Wanted(kernel.name, {}, program.assume, seconds=SECONDS)
        made = emulated_profile(program, wanted, silent, never_cancelled)
        if isinstance(made, Profile):
            profiles.append(placed(made, program) or made)
        else:
            missing = f"{kernel.name}: {made}"
    return with_profiles(program, profiles), missing


def summary(results: Sequence[Result]) -> dict[str, dict[str, Any]]:
    """By class: how many cases have its defect, of how many of them it is found, and in how many others."""
    out: dict[str, dict[str, Any]] = {}
    for name in CLASSES:
        wrong = [result for result in results if result.case.wrong == name]
        hits = sum(name in result.found for result in wrong)
        alarms = sum(name in result.found and result.case.wrong != name for result in results)
        out[name] = {
            "wrong": len(wrong),
            "found": hits,
            "false_alarms": alarms,
            "precision": round(hits / (hits + alarms), 3) if hits + alarms else None,
            "recall": round(hits / len(wrong), 3) if wrong else None,
        }
    return out


def _print(results: Sequence[Result]) -> None:
    for result in results:
        case = result.case
        place = f"{case.file}:{case.line}"
        for name, found in result.found.items():
            if case.wrong != name:
                print(f"{place} false alarm of {name} ({case.about}): {found[0]}")
        if case.wrong is not None and case.wrong not in result.found:
            print(f"{place} not found, {case.wrong}: {case.about}")
        if result.not_run:
            print(f"{place} not run: {result.not_run}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="CLASS", help="files of wrong_code by their names, such as bounds")
    parser.add_argument("--run", action="store_true", help="run each kernel in the emulator too")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where the results are written as JSON")
    options = parser.parse_args()
    paths = [path for path in sorted(FOLDER.glob("*.cu")) if not options.files or path.stem in options.files]
    looks = [looked_at(case, options.run) for path in paths for case in cases(path.read_text(), path.name)]
    total: dict[str, Any] = {"cases": len(looks), "right": sum(look[0].case.wrong is None for look in looks)}
    rows: list[dict[str, Any]] = [
        {"file": case.file, "line": case.line, "wrong": case.wrong, "about": case.about}
        for case in (look[0].case for look in looks)
    ]
    for which, results in zip(("text", "run"), zip(*looks, strict=True), strict=False):
        print(f"By the {which}:")
        _print(results)
        seconds = sorted(result.seconds for result in results)
        total[which] = {
            "classes": summary(results),
            "processor_seconds_median": round(statistics.median(seconds), 3),
            "processor_seconds_p95": round(seconds[int(0.95 * (len(seconds) - 1))], 3),
        }
        for row, result in zip(rows, results, strict=True):
            row[which] = {
                "found": result.found,
                "not_run": result.not_run,
                "processor_seconds": round(result.seconds, 2),
            }
    print(json.dumps(total, indent=1))
    if options.out:
        command = "python benchmarks/wrong_code.py" + (" --run" if options.run else "")
        versions = {"warpwright": __version__, "python": platform.python_version()}
        document = {"command": command, "versions": versions, "total": total, "rows": rows}
        options.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
