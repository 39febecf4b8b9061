"""`torch-check` on operators with one silent fallback each and on sound ones: `python benchmarks/torch_fallbacks.py
[--only NAME] [--jobs N] [--out benchmarks/results]`.

The operators are in `torch_fallbacks/`: the same wrappers around a C++ loop and, where a GPU is, around a CUDA kernel,
which torch's load_inline builds first; `--build` does that alone, and launches nothing. Writes
torch_fallbacks_cuda.json or torch_fallbacks_cpu.json.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hardware import gpu_run, processor
from warpwright.verify.harness import harness_kind, harness_python
from warpwright.verify.torch_check import Asked, NotCheckedError, torch_check

HERE = Path(__file__).parent / "torch_fallbacks"
ASKS = "import torch; print(torch.cuda.device_count() if torch.cuda.is_available() else 0)"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split(":")[0])
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=86400.0, help="begin no operator later")
    parser.add_argument("--build", action="store_true")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    if arguments.build:
        kind = harness_kind()
        command = [harness_python(), "-c", f"import sys; sys.path.insert(0, {str(HERE)!r}); import operators"]
        return subprocess.run(command, env={**kind.environment, "HOME": "/tmp"}, check=False).returncode
    gpus = int(subprocess.run([sys.executable, "-c", ASKS], capture_output=True, text=True, check=True).stdout)
    seeded, sound = constants(HERE / "seeded.py"), constants(HERE / "sound.py")
    left_out = set(seeded["NEED_GPU"] if not gpus else seeded["NEED_TWO_GPUS"] if gpus == 1 else ())
    asked = [
        (name, seeded["FOUND_BY"][name] if file == "seeded.py" else (), HERE / file)
        for file, names in (("seeded.py", seeded["FOUND_BY"]), ("sound.py", sound["NAMES"]))
        for name in names
        if name not in left_out and (not arguments.only or name in arguments.only)
    ]
    until = time.monotonic() + arguments.seconds
    rows = []
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for row in pool.map(lambda each: judged(*each) if time.monotonic() < until else None, asked):
            if row is None:
                continue
            rows.append(row)
            print(f"{row['verdict']:8} {row['operator']}: {', '.join(row['faults']) or 'nothing'}", flush=True)
            if arguments.out:
                write(arguments.out, rows, sorted(left_out), gpus)
    left_out |= {name for name, *_ in asked} - {row["operator"] for row in rows}
    if arguments.out:
        write(arguments.out, rows, sorted(left_out), gpus)
    return int(any(each["verdict"] not in ("found", "passed") for each in rows))


def constants(file: Path) -> dict[str, Any]:
    """The literals of a module, which is not imported."""
    found = {}
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper():
            found[node.targets[0].id] = ast.literal_eval(node.value)
    return found


def judged(name: str, wanted: tuple[str, ...], file: Path) -> dict[str, Any]:
    """A row: `found` and `missed` of seeded operators, `passed` and `alarm` of sound ones."""
    started = time.monotonic()
    try:
        report = torch_check(Asked(str(file), name, reference="plain"), lambda *_: None, lambda: False)
    except NotCheckedError as error:
        return {"operator": name, "wanted": wanted, "verdict": "failed", "faults": [str(error)]}
    faults = {each.check: each for each in report.faults}
    hit = next((each for each in wanted if each in faults), "")
    verdict = ("found" if hit else "missed") if wanted else "alarm" if faults else "passed"
    return {
        "operator": name,
        "wanted": wanted,
        "verdict": verdict,
        "faults": {each.check: f"{each.status}: {each.said}" for each in faults.values()},
        "cause": faults[hit].cause if hit else "",
        "raises": [each.check for each in report.found if each.status == "raises"],
        "kernels": report.kernels,
        "torch": report.torch,
        "seconds": round(time.monotonic() - started, 1),
    }


def write(out: Path, rows: list[dict[str, Any]], left_out: list[str], gpus: int) -> None:
    verdicts = [each["verdict"] for each in rows]
    run = gpu_run() if gpus else {"command": " ".join(["python", *sys.argv]), "device": processor()}
    document = {
        **run,
        "gpus": gpus,
        "seeded": verdicts.count("found") + verdicts.count("missed"),
        "found": verdicts.count("found"),
        "sound": verdicts.count("passed") + verdicts.count("alarm"),
        "passed": verdicts.count("passed"),
        "failed": verdicts.count("failed"),
        "not run here": left_out,
        "operators": rows,
    }
    path = out / f"torch_fallbacks_{'cuda' if gpus else 'cpu'}.json"
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
