"""What `warpwright check` says of kernels that experts left as they are, and of the first steps they started from.

    python benchmarks/clean_kernels.py CHECKOUTS --out benchmarks/results

CHECKOUTS holds a checkout of each repository of clean_kernels.toml at its commit, in OWNER/NAME. Of the last steps of
optimisation ladders there should be at most one warning in ten; the first steps must be found, nine of ten.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from warpwright import __version__
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Space
from warpwright.syntax.source import read_include, read_source

LIST = Path(__file__).with_name("clean_kernels.toml")
GRAVE = ("error", "warning")
SAID = (*GRAVE, "information")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("--out", type=Path, metavar="DIR", help="where clean_kernels.json is written")
    arguments = parser.parse_args()
    repositories = tomllib.loads(LIST.read_text(encoding="utf-8"))["repository"]
    missing = [line for repository in repositories for line in _missing(arguments.checkouts, repository)]
    if missing:
        print("clean_kernels: some checkouts are not there. To get them:", *missing, sep="\n  ", file=sys.stderr)
        return 2
    results = [_repository(arguments.checkouts / repository["name"], repository) for repository in repositories]
    kernels, warnings = (sum(result[name] for result in results) for name in ("kernels", "warned_kernels"))
    first = [step for result in results for step in result["first_steps"]]
    total = {
        "kernels": kernels,
        "kernels_with_a_warning": warnings,
        "warnings": sum(len(result["warnings"]) for result in results),
        "warnings_per_ten_kernels": round(10 * sum(len(result["warnings"]) for result in results) / kernels, 2),
        "accesses": dict(sorted(sum((Counter(result["accesses"]) for result in results), Counter[str]()).items())),
        "first_steps": len(first),
        "first_steps_found": sum(step["found"] for step in first),
    }
    result = {
        "command": "python benchmarks/clean_kernels.py CHECKOUTS",
        "versions": {"warpwright": __version__, "python": platform.python_version()},
        "total": total,
        "repositories": results,
    }
    for one in results:
        _print(one)
    print(json.dumps(total, indent=1))
    if arguments.out:
        (arguments.out / "clean_kernels.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0 if total["warnings_per_ten_kernels"] <= 1 and total["first_steps_found"] >= 0.9 * len(first) else 1


def _missing(checkouts: Path, repository: dict[str, Any]) -> list[str]:
    """The commands that bring the files that are not there."""
    name, commit, folder = repository["name"], repository["commit"], checkouts / repository["name"]
    if all((folder / program).is_file() for program in _programs(repository)):
        return []
    return [f"git clone https://github.com/{name} {folder} && git -C {folder} checkout {commit}"]


def _programs(repository: dict[str, Any]) -> list[str]:
    listed = [entry["program"] for entry in repository.get("clean", []) + repository.get("first", [])]
    return list(dict.fromkeys(listed))


def _repository(folder: Path, repository: dict[str, Any]) -> dict[str, Any]:
    programs = _programs(repository)
    rows = _check([folder / program for program in programs])
    there = {program: _kernels(folder / program) for program in programs}
    clean = [(entry["program"], kernel) for entry in repository.get("clean", []) for kernel in entry["kernels"]]
    first = [(entry["program"], entry["kernel"]) for entry in repository.get("first", [])]
    absent = [f"{program}: {kernel}" for program, kernel in clean + first if kernel not in there[program]]
    if absent:
        raise SystemExit(f"clean_kernels: {repository['name']}: no such kernel was read: {', '.join(absent)}")
    findings = {(program, kernel): _findings(rows, folder / program, kernel) for program, kernel in clean + first}
    warnings = [
        {
            "program": program, "kernel": kernel, "line": row["line"], "file": _short(folder, row["file"]),
            "rule": row["rule"], "severity": row["severity"], "message": row["message"],
        }
        for program, kernel in clean
        for row in findings[program, kernel]
        if row["severity"] in GRAVE
    ]  # fmt: skip
    bases = sum((there[program][kernel] for program, kernel in clean), Counter[str]())
    counts = Counter(f"{row['rule']} {row['severity']}" for place in clean for row in findings[place])
    return {
        "name": repository["name"],
        "commit": repository["commit"],
        "kernels": len(clean),
        "warned_kernels": len({(row["program"], row["kernel"]) for row in warnings}),
        "accesses": dict(sorted(bases.items())),
        "findings": dict(sorted(counts.items())),
        "warnings": warnings,
        "first_steps": [
            {
                "program": entry["program"],
                "kernel": entry["kernel"],
                "rules": entry["rules"],
                "found": any(
                    row["rule"] in entry["rules"] and row["severity"] in SAID
                    for row in findings[entry["program"], entry["kernel"]]
                ),
            }
            for entry in repository.get("first", [])
        ],
    }


def _check(paths: list[Path]) -> list[dict[str, Any]]:
    """The findings of each program, those in the headers that it includes among them."""
    rows: list[dict[str, Any]] = []
    for path in paths:
        run = subprocess.run(
            [sys.executable, "-m", "warpwright.cli", "check", "--format", "json", str(path)],
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode not in (0, 1):
            raise SystemExit(f"clean_kernels: `warpwright check {path}` ended with {run.returncode}: {run.stderr}")
        rows += [{**row, "program": str(path)} for row in json.loads(run.stdout)]
    return rows


def _kernels(path: Path) -> dict[str, Counter[str]]:
    """The kernels of a program by name, and how many accesses to global and shared memory each has of each basis."""
    program = analyze(read_source(path), read_include)
    return {
        kernel.name: Counter(a.basis.value for a in kernel.accesses if a.space in (Space.GLOBAL, Space.SHARED))
        for kernel in program.defined_kernels
    }


def _findings(rows: list[dict[str, Any]], program: Path, kernel: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["program"] == str(program) and row["kernel"] == kernel]


def _short(folder: Path, file: str) -> str:
    path = Path(file)
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else path.name


def _print(result: dict[str, Any]) -> None:
    found = [step["found"] for step in result["first_steps"]]
    print(
        f"{result['name']}: {result['kernels']} kernels, {result['warned_kernels']} with a warning; "
        f"first steps found: {sum(found)} of {len(found)}; {result['findings']}"
    )
    for row in result["warnings"]:
        print(f"  {row['file']}:{row['line']} {row['kernel']} {row['severity']} {row['rule']}: {row['message']}")
    for step in result["first_steps"]:
        if not step["found"]:
            print(f"  not found: {step['program']} {step['kernel']}: {' or '.join(step['rules'])}")


if __name__ == "__main__":
    sys.exit(main())
