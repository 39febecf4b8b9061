"""For what share of the kernels under a folder does `warpwright problem` know how to run them, and why not the others?

    python benchmarks/problem_inference.py HeCBench/src --glob '*-cuda' --out benchmarks/results

A kernel counts once for each .cu file that it is seen from, and is read as `warpwright problem` reads it: a file that
another includes as a part of that, a kernel that its program does not launch with the file of the project that does.
HeCBench is github.com/zjin-lcf/HeCBench; the committed result is for commit f27000a51. With `--share 3` every third
file is read, chosen by the hash of its name; `--rows FILE` keeps what is found, and a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

from warpwright import __version__
from warpwright.cli.inputs import Compiled
from warpwright.cuda.project import files_that_launch
from warpwright.cuda.sites import launch_sites
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Kernel, Program
from warpwright.missing import Missing
from warpwright.problems.launches import project_problem
from warpwright.syntax.source import read_include, read_source

Outcome = dict[str, Any]
"""Of one kernel."""
EXAMPLES = 5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path)
    parser.add_argument("--glob", default="*", help="which folders of ROOT")
    parser.add_argument("--share", type=int, default=1, metavar="N", help="read one file in N")
    parser.add_argument("--rows", type=Path, metavar="FILE", help="add what becomes of each file; go on after those")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where problem_inference.json is written")
    arguments = parser.parse_args()
    files = sorted(path for folder in arguments.root.glob(arguments.glob) for path in folder.rglob("*.cu"))
    names = {path: str(path.relative_to(arguments.root)) for path in files}
    files = [path for path in files if crc32(names[path].encode()) % arguments.share == 0]
    if not files:
        print(f"problem_inference: no .cu file under {arguments.root}/{arguments.glob}", file=sys.stderr)
        return 2
    rows = kept(arguments.rows)
    for path in files:
        if names[path] not in rows:
            rows[names[path]] = [*outcomes(path)]
            if arguments.rows:
                with arguments.rows.open("a", encoding="utf-8") as sink:
                    print(json.dumps([names[path], rows[names[path]]]), file=sink)
    result = {
        "command": f"python benchmarks/problem_inference.py HeCBench/src --glob '{arguments.glob}'"
        + (f" --share {arguments.share}" if arguments.share > 1 else ""),
        "versions": {"warpwright": __version__, "python": platform.python_version()},
        "hardware": {"machine": platform.machine(), "processors": os.cpu_count()},
        "files": len(files),
        **summary({name: rows[name] for name in map(names.__getitem__, files)}),
    }
    print(json.dumps(result, indent=1))
    if arguments.out:
        (arguments.out / "problem_inference.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 1 if result["crashes"] else 0


def kept(path: Path | None) -> dict[str, list[Outcome]]:
    """What a run before found, by file."""
    if path is None or not path.exists():
        return {}
    return dict(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())


def outcomes(path: Path) -> Iterator[Outcome]:
    """What becomes of each kernel that is seen from a file."""
    source = read_source(path)
    for program, kernel in kernels_of(analyze(source, read_include), Compiled().unit(source)):
        outcome: Outcome = {"kernel": kernel.name, "crash": "", "refused": ""}
        try:
            problem = project_problem(program, kernel)
        except Exception as error:  # a crash is what this looks for
            yield {**outcome, "crash": repr(error)}
            continue
        if isinstance(problem, Missing):
            yield {**outcome, "refused": problem.reason}
            continue
        known = problem.launch_origin == "launch"
        yield {
            **outcome,
            "notes": list(problem.notes),
            "runnable": bool(problem.check),
            "known": known,
            "launched": known or is_launched(program, kernel),
        }


def summary(rows: Mapping[str, Sequence[Outcome]]) -> dict[str, Any]:
    every = [(f"{file} {each['kernel']}", each) for file, those in rows.items() for each in those]
    inferred = [each for _, each in every if not each["crash"] and not each["refused"]]
    refused: defaultdict[str, list[str]] = defaultdict(list)
    for where, each in every:
        if each["refused"]:
            refused[general(each["refused"])].append(where)
    return {
        "kernels": len(every),
        "inferred": len(inferred),
        "inferred_share": round(len(inferred) / len(every), 3) if every else None,
        "inferred_with_an_assumption": sum(bool(each["notes"]) for each in inferred),
        "with_a_shape_to_try": sum(each["runnable"] for each in inferred),
        "inferred_and_launched": sum(each["launched"] for each in inferred),
        "inferred_as_launched": sum(each["known"] for each in inferred),
        "crashes": sum(bool(each["crash"]) for _, each in every),
        "refused": [
            {"kernels": len(where), "reason": reason, "examples": where[:EXAMPLES]}
            for reason, where in sorted(refused.items(), key=lambda item: -len(item[1]))
        ],
    }


def kernels_of(alone: Program, whole: Program) -> Iterator[tuple[Program, Kernel]]:
    """The kernels that are seen from a file, each in the program of what includes the file where it is there too."""
    in_whole = {(kernel.span.path, kernel.span.start): kernel for kernel in whole.defined_kernels}
    for kernel in alone.defined_kernels:
        found = in_whole.get((kernel.span.path, kernel.span.start))
        yield (whole, found) if found is not None else (alone, kernel)


def is_launched(program: Program, kernel: Kernel) -> bool:
    """Whether a file of the program, or of its project, launches the kernel."""
    own = launch_sites([*program.sources.values()], kernel.name)
    return next(own, None) is not None or bool(files_that_launch(kernel.source.path, kernel.name))


def general(reason: str) -> str:
    """A refusal's reason without the names in it, so that those of one cause are counted together."""
    without_kernel = re.sub(r"^How to run .*? is not known: ", "", reason)
    return re.sub(r"`[^`]*`", "`...`", without_kernel)


if __name__ == "__main__":
    sys.exit(main())
