"""Public torch extensions: what the rules say of them, and whether `torch-check` passes their operators.

    python benchmarks/torch_public.py rules CHECKOUTS [--only OWNER/NAME] [--out FILE]
    python benchmarks/torch_public.py calls [--only OPERATOR] [--out FILE]

CHECKOUTS has a folder OWNER+NAME for each repository of torch_public/judged.toml, at its commit. For `calls` the
packages of torch_public/operators.py are installed beside torch; what is not installed is left out, and the result says
so.
"""

from __future__ import annotations

import argparse
import collections
import importlib.util
import json
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hardware import processor
from warpwright import __version__
from warpwright.cuda.extension.near import is_of_extension, unit_near
from warpwright.facts.model import Program
from warpwright.rules.base import Severity
from warpwright.rules.registry import run_rules
from warpwright.syntax.source import Source
from warpwright.verify.torch_check import Asked, NotCheckedError, torch_check

HERE = Path(__file__).parent / "torch_public"
ALARMS = (Severity.ERROR, Severity.WARNING)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    rules, calls = kinds.add_parser("rules"), kinds.add_parser("calls")
    rules.add_argument("checkouts", type=Path)
    for each in (rules, calls):
        each.add_argument("--only", action="append", default=[], metavar="NAME")
        each.add_argument("--out", type=Path, metavar="FILE")
    options = parser.parse_args()
    documents = judged(options.checkouts, options.only) if options.kind == "rules" else called(options.only)
    for found in documents:
        if options.out:
            versions = {"warpwright": __version__, "device": processor()}
            document = {"command": " ".join(["python", *sys.argv]), **versions, **found}
            options.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0


def judged(checkouts: Path, only: list[str]) -> Iterator[dict[str, Any]]:
    rows = []
    for name, known in tomllib.loads((HERE / "judged.toml").read_text(encoding="utf-8")).items():
        folder = checkouts / name.replace("/", "+")
        if (only and name not in only) or not folder.is_dir():
            continue
        commit = subprocess.run(
            ["git", "-C", str(folder), "rev-parse", "HEAD"], capture_output=True, text=True, check=True
        ).stdout.strip()
        if commit != known["commit"]:
            sys.exit(f"{name} is at {commit}, and {known['commit']} was read: check that out")
        rows.append({"repository": name, "commit": commit, **of_checkout(folder, known.get("false", {}))})
        last = rows[-1]
        print(f"{name}: {last['files']} files, {last['alarms']} alarms, {len(last['false'])} of them false", flush=True)
    alarms, false = sum(each["alarms"] for each in rows), sum(len(each["false"]) for each in rows)
    print(f"{len(rows)} repositories, {alarms} alarms, {false} known to be false")
    yield {"repositories": len(rows), "alarms": alarms, "known to be false": false, "rows": rows}


def of_checkout(folder: Path, false: dict[str, str]) -> dict[str, Any]:
    files, found, alarms = 0, collections.Counter[str](), []
    for path in sorted(folder.rglob("*")):
        if path.suffix not in (".cu", ".cpp", ".cc", ".py") or {"build", "third_party"} & set(path.parts):
            continue
        if path.suffix != ".cu" and not is_of_extension(path):
            continue
        source = Source(str(path), path.read_bytes())
        files += 1
        program = Program(source, {source.path: source}, ())
        for finding in run_rules(program, select=("torch",), unit=unit_near(source)):
            found[f"{finding.rule} ({finding.severity})"] += 1
            if finding.severity in ALARMS:
                place = f"{path.relative_to(folder)}:{finding.span.line} {finding.rule}"
                alarms.append(f"{place}: {finding.headline}")
    wrong = {place: why for place, why in false.items() if any(each.startswith(place + ":") for each in alarms)}
    return {
        "files": files,
        "alarms": len(alarms),
        "false": wrong,
        "findings": dict(sorted(found.items())),
        "said": alarms,
    }


def called(only: list[str]) -> Iterator[dict[str, Any]]:
    """After each operator, what was found so far."""
    sys.path.insert(0, str(HERE))
    operators = __import__("operators")
    rows, left_out = [], []
    for name, package in operators.PACKAGES.items():
        if only and name not in only:
            continue
        if importlib.util.find_spec(package) is None:
            left_out.append(f"{package}: {name}")
            continue
        started = time.monotonic()
        arguments = operators.ARGUMENTS.get(name, "get_inputs")
        asked = Asked(str(HERE / "operators.py"), name, arguments=arguments, reference=f"plain_{name}")
        try:
            report = torch_check(asked, lambda *_: None, lambda: False)
        except NotCheckedError as error:
            rows.append({"operator": name, "package": package, "verdict": "failed", "faults": [str(error)]})
        else:
            faults = {each.check: f"{each.status}: {each.said}" for each in report.faults}
            row = {
                "operator": name,
                "package": package,
                "verdict": "faults" if faults else "passed",
                "faults": faults,
                "raises": [each.check for each in report.found if each.status == "raises"],
                "kernels": report.kernels,
                "torch": report.torch,
            }
            rows.append(row)
        rows[-1]["seconds"] = round(time.monotonic() - started, 1)
        rows[-1]["read"] = operators.READ.get(name, "")
        print(f"{rows[-1]['verdict']:7} {package} {name}: {rows[-1]['faults'] or 'nothing'}", flush=True)
        passed = sum(each["verdict"] == "passed" for each in rows)
        about = {"sources": operators.SOURCES, "not installed": left_out}
        yield {"operators": len(rows), "passed": passed, **about, "rows": rows}


if __name__ == "__main__":
    sys.exit(main())
