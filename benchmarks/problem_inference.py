"""For what share of the kernels under a folder does `warpwright problem` know how to run them, and why not the others?

    python benchmarks/problem_inference.py HeCBench/src --glob '*-cuda' --out benchmarks/results

A kernel counts once for each .cu file that it is seen from, as a user would ask for it. HeCBench is
github.com/zjin-lcf/HeCBench; the committed result is for commit f27000a51.
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
from pathlib import Path

from warpwright import __version__
from warpwright.facts.analyze import analyze
from warpwright.missing import Missing
from warpwright.problems.infer import find_problem
from warpwright.syntax.source import read_include, read_source

EXAMPLES = 5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path)
    parser.add_argument("--glob", default="*", help="which folders of ROOT")
    parser.add_argument("--list", type=Path, metavar="FILE", help="write every kernel's outcome, one a line")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where problem_inference.json is written")
    arguments = parser.parse_args()
    files = sorted(path for folder in arguments.root.glob(arguments.glob) for path in folder.rglob("*.cu"))
    if not files:
        print(f"problem_inference: no .cu file under {arguments.root}/{arguments.glob}", file=sys.stderr)
        return 2
    started = time.perf_counter()
    inferred, noted, runnable, crashes = 0, 0, 0, 0
    reasons: Counter[str] = Counter()
    examples: defaultdict[str, list[str]] = defaultdict(list)
    lines: list[str] = []
    for path in files:
        program = analyze(read_source(path), read_include)
        for kernel in program.defined_kernels:
            where = f"{path.relative_to(arguments.root)} {kernel.name}"
            try:
                problem = find_problem(program, kernel)
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
                noted += bool(problem.notes)
                runnable += bool(problem.check)
                lines.append(f"YES {where}: {'; '.join(problem.notes)}")
    kernels = inferred + reasons.total() + crashes
    result = {
        "command": f"python benchmarks/problem_inference.py HeCBench/src --glob '{arguments.glob}'",
        "versions": {"warpwright": __version__, "python": platform.python_version()},
        "hardware": {"machine": platform.machine(), "processors": os.cpu_count()},
        "files": len(files),
        "kernels": kernels,
        "inferred": inferred,
        "inferred_share": round(inferred / kernels, 3) if kernels else None,
        "inferred_with_an_assumption": noted,
        "with_a_shape_to_try": runnable,
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


def general(reason: str) -> str:
    """A refusal's reason without the names in it, so that those of one cause are counted together."""
    without_kernel = re.sub(r"^How to run .*? is not known: ", "", reason)
    return re.sub(r"`[^`]*`", "`...`", without_kernel)


if __name__ == "__main__":
    sys.exit(main())
