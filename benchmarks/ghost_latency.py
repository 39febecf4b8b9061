"""How long a person waits for the checked kernel of a comment, in words or as a formula, shown as ghost text, how often
one is shown, and how long it takes where the same was shown before.

    python benchmarks/ghost_latency.py [--formulas 60] [--write]

The real server on stdin and stdout, on two processors (it and all that it starts are bound to the first two). Words are
the requests below; formulas are those of the catalogue, evenly spaced. Each
stands in a comment of a document of its own. Ghost text is asked for below it as an editor does after a pause, once,
and then in a second document with the same comment. No model is asked. The first request starts the process that writes
and is counted apart. Beside the seconds that passed stand those that processors worked, of the server and all that it
started: on a machine that is busy with other work they tell more. `--write` records the result, with hardware and the
load of the machine, in
benchmarks/results/ghost_latency.json.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from edit_latency import figures
from formula_catalogue import catalogue
from hardware import cpu_run, reported, tree_seconds
from hover_latency import PROCESSORS, Client, answer

RESULT = Path(__file__).resolve().parent / "results" / "ghost_latency.json"
LIMIT_SECONDS = 120.0
"""More than the default, so that a busy machine cuts nothing short."""
WARM = "y[i] = 2 * x[i]"
WORDS = (
    "row-wise softmax of x[rows][cols]",
    "layer norm of x[rows][cols] with gamma and beta",
    "rms norm of x[rows][cols], half precision",
    "matmul of a and b",
    "matmul, then add bias, then gelu, half precision",
    "relu of x",
    "gelu of x[rows][cols], bf16",
    "add a and b",
    "row sums of x, then relu",
    "mean of each row of x[rows][cols]",
    "maximum of each row of x[rows][cols]",
    "argmax of each row of x",
    "sum of all elements of x",
    "dot product of a and b",
    "transpose of x[rows][cols]",
    "histogram of bins",
    "cumulative sum of x",
    "log softmax of x[rows][cols]",
    "silu of x, in place",
    "logsumexp of each row of x",
    "x * sigmoid(x)",
    "torch.softmax(x, dim=-1)",
    "F.gelu(x @ w + b)",
    "exp of x[n]",
    "embedding of ids",
    "cross entropy of logits",
    "variance of each row of x[rows][cols]",
    "cosine similarity of a and b",
    "saxpy of x and y",
    "column sums of x[rows][cols]",
)
"""What people ask for most, as they write it."""
Json = dict[str, Any]


def shown(client: Client, path: Path, formula: str) -> tuple[float, float, bool]:
    """The seconds from the request to its answer, those of processors, and whether a kernel came."""
    text = "".join(f"// {line}\n" for line in formula.splitlines())
    uri = client.open(path, text)
    position = {"line": text.count("\n"), "character": 0}
    asked = {"textDocument": {"uri": uri}, "position": position, "context": {"triggerKind": 2}}
    began = tree_seconds(client.process.pid)
    seconds, found = answer(client, "textDocument/inlineCompletion", asked)
    client.tell("textDocument/didClose", {"textDocument": {"uri": uri}})
    return seconds, tree_seconds(client.process.pid) - began, bool(found)


def measured(chosen: dict[str, str]) -> Json:
    """Figures of comments by name: the seconds to a kernel, and to the same kernel once more."""
    client = Client({"inlineCompletion": {}})
    client.patience_seconds = LIMIT_SECONDS + 60
    client.tell("workspace/didChangeConfiguration", {"settings": {"warpwright": {"ghostTextSeconds": LIMIT_SECONDS}}})
    times: list[float] = []
    worked: list[float] = []
    again: list[float] = []
    missed: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first, _, _ = shown(client, folder / "first.cu", WARM)
        for number, (entry, text) in enumerate(chosen.items()):
            seconds, busy, came = shown(client, folder / f"{number}.cu", text)
            if came:
                times.append(seconds)
                worked.append(busy)
                again.append(shown(client, folder / f"{number}_again.cu", text)[0])
            else:
                missed[entry] = round(seconds, 1)
            print(
                f"{entry:60} {seconds:6.2f} s, {busy:5.2f} s of processors{'' if came else '  nothing shown'}",
                file=sys.stderr,
                flush=True,
            )
    client.end()
    return {
        "first_ms": round(1000 * first),
        "shown": figures(times),
        "shown_processors": figures(worked),
        "shown_before": figures(again),
        "nothing_shown_after_s": missed,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--formulas", type=int, default=60)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:PROCESSORS])
    entries = catalogue()
    count = min(options.formulas, len(entries))
    formulas = [entries[at * len(entries) // count] for at in range(count)]
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as cache:
        os.environ["WARPWRIGHT_CACHE_DIR"] = cache
        found = {
            "words": measured({each: each for each in WORDS}),
            "formulas": measured({each.name: each.text for each in formulas}),
        }
    result = {
        "what": "milliseconds from a request for ghost text, after a pause in typing, to the kernel of a comment, "
        "compiled and compared with its formula; and to that of the same comment in another document",
        "command": f"python benchmarks/ghost_latency.py --formulas {count} --write",
        "processors": PROCESSORS,
        **found,
        **cpu_run(load),
    }
    reported(result, RESULT if options.write else None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
