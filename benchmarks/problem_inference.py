"""For what share of the kernels under a folder does `warpwright problem` know how to run them, and why not the others?

    python benchmarks/problem_inference.py HeCBench/src --glob '*-cuda' --out benchmarks/results

A kernel counts once for each .cu file that it is seen from, and is read as `warpwright problem` reads it: a file that
another includes as a part of that, a kernel that its program does not launch with the file of the project that does.
HeCBench is github.com/zjin-lcf/HeCBench; the committed result is for commit f27000a51. With `--share 3` every third
file is read, chosen by the hash of its name.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
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

EXAMPLES = 5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path)
    parser.add_argument("--glob", default="*", help="which folders of ROOT")
    parser.add_argument("--share", type=int, default=1, metavar="N", help="read one file in N")
    parser.add_argument("--list", type=Path, metavar="FILE", help="write every kernel's outcome, one a line")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where problem_inference.json is written")
    arguments = parser.parse_args()
    files = sorted(path for folder in arguments.root.glob(arguments.glob) for path in folder.rglob("*.cu"))
    names = {path: str(path.relative_to(arguments.root)) for path in files}
    files = [path for path in files if crc32(names[path].encode()) % arguments.share == 0]
    if not files:
        print(f"problem_inference: no .cu file under {arguments.root}/{arguments.glob}", file=sys.stderr)
        return 2
    started = time.perf_counter()
    inferred, noted, runnable, crashes, launched, known = 0, 0, 0, 0, 0, 0
    reasons: Counter[str] = Counter()
    examples: defaultdict[str, list[str]] = defaultdict(list)
    lines: list[str] = []
    for path in files:
        source = read_source(path)
        whole = Compiled().unit(source)
        for program, kernel in kernels_of(analyze(source, read_include), whole):
            where = f"{names[path]} {kernel.name}"
            try:
                problem = project_problem(program, kernel)
            except Exception as error:  # a crash is what this looks for
                crashes += 1
                lines.append(f"CRASH {where}: {error!r}")
                continue
            if isinstance(problem, Missing):
                reason = general(problem.reason)
                reasons[reason] += 1
                examples[reason].append(where)
                lines.append(f"NO {where}: {problem.reason}")
            else:
                inferred += 1
                from_text = problem.launch_origin == "launch"
                known += from_text
                launched += from_text or is_launched(program, kernel)
                noted += bool(problem.notes)
                runnable += bool(problem.check)
                lines.append(f"YES {where}: {'; '.join(problem.notes)}")
    kernels = inferred + reasons.total() + crashes
    result = {
        "command": f"python benchmarks/problem_inference.py HeCBench/src --glob '{arguments.glob}'"
        + (f" --share {arguments.share}" if arguments.share > 1 else ""),
        "versions": {"warpwright": __version__, "python": platform.python_version()},
        "hardware": {"machine": platform.machine(), "processors": os.cpu_count()},
        "files": len(files),
        "kernels": kernels,
        "inferred": inferred,
        "inferred_share": round(inferred / kernels, 3) if kernels else None,
        "inferred_with_an_assumption": noted,
        "with_a_shape_to_try": runnable,
        "inferred_and_launched": launched,
        "inferred_as_launched": known,
        "crashes": crashes,
        "seconds": round(time.perf_counter() - started, 1),
        "refused": [
            {"kernels": count, "reason": reason, "examples": examples[reason][:EXAMPLES]}
            for reason, count in reasons.most_common()
        ],
    }
    print(json.dumps(result, indent=1))
    if arguments.list:
        arguments.list.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if arguments.out:
        (arguments.out / "problem_inference.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 1 if crashes else 0


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
