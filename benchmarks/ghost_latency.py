"""How long a person waits for the checked kernel of a formula in a comment, shown as ghost text, and how often it is.

    python benchmarks/ghost_latency.py [--formulas 60] [--write]

The real server on stdin and stdout, on two processors (it and all that it starts are bound to the first two). Each
formula of the catalogue, evenly spaced, stands in a comment of a document of its own; ghost text is asked for below it,
once. The first request starts the process that writes and is counted apart. `--write` records the result, with hardware
and versions, in benchmarks/results/ghost_latency.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from edit_latency import figures
from formula_catalogue import Entry, catalogue
from hardware import processor
from hover_latency import PROCESSORS, Client, answer

RESULT = Path(__file__).resolve().parent / "results" / "ghost_latency.json"
WARM = "y[i] = 2 * x[i]"
Json = dict[str, Any]


def shown(client: Client, path: Path, formula: str) -> tuple[float, bool]:
    """The seconds from the request to its answer, and whether a kernel came."""
    text = "".join(f"// {line}\n" for line in formula.splitlines())
    uri = client.open(path, text)
    position = {"line": text.count("\n"), "character": 0}
    asked = {"textDocument": {"uri": uri}, "position": position, "context": {"triggerKind": 2}}
    seconds, found = answer(client, "textDocument/inlineCompletion", asked)
    client.tell("textDocument/didClose", {"textDocument": {"uri": uri}})
    return seconds, bool(found)


def measured(chosen: list[Entry]) -> Json:
    client = Client({"inlineCompletion": {}})
    times: list[float] = []
    missed: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        first, _ = shown(client, Path(folder) / "first.cu", WARM)
        for entry in chosen:
            seconds, came = shown(client, Path(folder) / f"{entry.name}.cu", entry.text)
            if came:
                times.append(seconds)
            else:
                missed[entry.name] = round(seconds, 1)
            print(f"{entry.name:40} {seconds:6.2f} s{'' if came else '  nothing shown'}", file=sys.stderr, flush=True)
    client.end()
    return {"first_ms": round(1000 * first), "shown": figures(times), "nothing_shown_after_s": missed}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--formulas", type=int, default=60)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:PROCESSORS])
    entries = catalogue()
    count = min(options.formulas, len(entries))
    result = {
        "what": "milliseconds from a request for ghost text to the kernel of a formula, compiled and compared with it",
        "command": f"python benchmarks/ghost_latency.py --formulas {count} --write",
        "processors": PROCESSORS,
        "load_average_before": round(os.getloadavg()[0], 1),
        **measured([entries[at * len(entries) // count] for at in range(count)]),
        "hardware": processor(),
        "versions": {"python": platform.python_version(), "warpwright": version("warpwright")},
    }
    print(json.dumps(result, indent=2))
    if options.write:
        RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
