"""Can verification be fooled, and does it strangle the honest? Every pair of tests/attacks and tests/honest.

    PYTHONPATH=server:tests python3 benchmarks/harness_attacks.py --pairs attacks --backend emulator --out DIR

Each is verified on a GPU (`--backend cuda`) or by the emulator, as a user's would be. Writes
harness_<pairs>_<backend>.json with the command, the hardware and the versions: status, reason and seconds of each,
and the counts. Prints a table and exits 1 where a status or a reason is not one that the pair's file says is true.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, Literal

from hardware import processor
from support.pairs import ATTACKS, HONEST, Pair, pairs_in
from warpwright.missing import Missing
from warpwright.progress import never_cancelled
from warpwright.toolchain.find import find_toolchain
from warpwright.verify.acceptable import acceptable
from warpwright.verify.harness import find_gpu
from warpwright.verify.verify import verify

ROOT = Path(__file__).resolve().parent.parent
PASSED = ("faster", "slower", "inconclusive", "correct")


def judged(pair: Pair, backend: Literal["emulator", "cuda"]) -> dict[str, Any]:
    """Verify one pair: the row of the result."""
    started = time.monotonic()
    report = verify(pair.original, pair.candidate, kernel=pair.kernel, goal=pair.goal, backend=backend, again=True)
    seconds = time.monotonic() - started
    surprise = pair.surprise(backend, str(report.status), report.reason, [str(each.what) for each in report.uncovered])
    passed = str(report.status) in PASSED and not pair.uncovered
    if not surprise and not passed and acceptable(report, pair.goal):
        surprise = f"{report.status}, and offered all the same"
    return {
        "name": pair.name,
        "row": pair.row,
        "status": str(report.status),
        "reason": report.reason,
        "notes": list(report.notes),
        "uncovered": [each.text for each in report.uncovered],
        "cases": len(report.cases),
        "worst": {
            name: max((c.details[name] for c in report.cases if c.details.get(name) is not None), default=None)
            for name in ("max_ulp", "rel_l2")
        },
        "speedup": report.speed[0].speedup if report.speed else None,
        "seconds": round(seconds, 2),
        "surprise": surprise,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("emulator", "cuda"), required=True)
    parser.add_argument("--pairs", choices=("attacks", "honest"), required=True)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where the result is written")
    parser.add_argument("--only", default="", metavar="TEXT", help="run the pairs whose name holds TEXT")
    parser.add_argument("--seconds", type=float, default=1e9, help="leave out what is not begun by then, and say so")
    arguments = parser.parse_args()
    toolchain, gpu = find_toolchain(), find_gpu(never_cancelled)
    if isinstance(toolchain, Missing) or (arguments.backend == "cuda" and isinstance(gpu, Missing)):
        print(f"harness_attacks: {toolchain if isinstance(toolchain, Missing) else gpu}", file=sys.stderr)
        return 2
    on_gpu = arguments.backend == "cuda" and not isinstance(gpu, Missing)
    hardware = dict(gpu.details) if on_gpu and not isinstance(gpu, Missing) else {"cpu": processor()}
    folder = ATTACKS if arguments.pairs == "attacks" else HONEST
    pairs = [pair for pair in pairs_in(folder) if arguments.only in pair.name]
    command = "PYTHONPATH=server:tests python3 benchmarks/harness_attacks.py"
    result: dict[str, Any] = {
        "command": f"{command} --pairs {arguments.pairs} --backend {arguments.backend} --out DIR",
        "hardware": hardware,
        "versions": {"nvcc": toolchain.version, "python": platform.python_version(), "system": platform.system()},
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    kept = arguments.out / f"harness_{arguments.pairs}_{arguments.backend}.json"
    started = time.monotonic()
    rows: list[dict[str, Any]] = []
    counts: dict[str, int] = {}
    for pair in pairs:
        if time.monotonic() - started > arguments.seconds:
            break
        rows.append(judged(pair, arguments.backend))
        row = rows[-1]
        mark = "FAIL" if row["surprise"] else "ok  "
        print(f"{mark} {pair.name:<32} {row['status']:<13} {row['seconds']:5.1f} s  {row['reason'][:70]}")
        if row["surprise"]:
            print(f"     {row['surprise']} {row['notes']}")
        sys.stdout.flush()
        surprises = sum(bool(row["surprise"]) for row in rows)
        statuses = Counter(str(row["status"]) for row in rows)
        whole = sum(not row["uncovered"] for row in rows)
        counts = {"pairs": len(rows), "surprises": surprises, "nothing_uncovered": whole}
        counts |= {"left_out": len(pairs) - len(rows), **statuses}
        result |= {"counts": counts, "seconds": round(time.monotonic() - started, 1), "pairs": rows}
        text = json.dumps(result, indent=1).replace(f"{ROOT}/", "")  # paths as from the repository's root
        kept.write_text(text + "\n", encoding="utf-8")
    said = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())
    print(f"{said}, {time.monotonic() - started:.1f} s")
    return int(len(rows) < len(pairs) or any(row["surprise"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
