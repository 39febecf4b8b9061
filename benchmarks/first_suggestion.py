"""How long until the first candidate of a search that may be offered, and where the time goes.

    PYTHONPATH=server:benchmarks python3 benchmarks/first_suggestion.py [KERNEL.cu] [--kept DIR] [--out FILE]

Searches one sample for speed, on the GPU where there is one and in the emulator otherwise, in a process of its own, and
prints the stages of the first candidate that may be offered, from the start of Python to its verdict, then those of the
whole search; then the same once more with another comment in the text, as an editor asks whose processes run already.
Nothing is kept from before, unless `--kept` names a folder: the second run with it finds what the first
one left, such as compilations and what the GPU can do, but for verdicts, which are always made anew. The seconds of a
loaded machine say little: beside them stand those that processors worked, and the machine's load.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warpwright.syntax.source import Source

ROOT = Path(__file__).resolve().parent.parent
DEMO = ROOT / "csrc_samples" / "memory" / "transpose_tiled" / "kernel.cu"
_SIZES = re.compile(r" at [\w ]+ = \d+.*| \(best so far: .*")


@dataclass(frozen=True)
class Told:
    """One message of the search: seconds since the start, the candidate, if it is of one, and what it does."""

    at: float
    candidate: str
    text: str


def told(at: float, message: str) -> Told:
    """
    >>> told(1.5, "Trying pad-shared-array: Comparing at n = 31")
    Told(at=1.5, candidate='pad-shared-array', text='Comparing')
    >>> told(2, "Trying a + b: faster 2x (best so far: a, faster 1.9x)")
    Told(at=2, candidate='a + b', text='faster 2x')
    >>> told(0.1, "Looking for what makes it faster")
    Told(at=0.1, candidate='', text='Looking for what makes it faster')
    """
    found = re.fullmatch(r"Trying ([\w +-]+): (.*)", message, re.DOTALL)
    candidate, text = found.groups() if found else ("", message)
    return Told(at, candidate, _SIZES.sub("", text))


def stages(messages: list[Told], candidate: str, until: float) -> dict[str, float]:
    """Seconds by what was done for one candidate, what goes before any candidate included, in the order of their start.

    >>> said = [told(1, "Looking"), told(2, "Trying a: Compiling"), told(3, "Trying b: Compiling"),
    ...         told(4, "Trying a: Comparing at n = 1"), told(5, "Trying a: Comparing at n = 2")]
    >>> stages(said, "a", 7)
    {'Python and its modules': 1, 'Looking': 1, 'Compiling': 2, 'Comparing': 3}
    """
    first = next(each.at for each in messages if each.candidate)
    own = [each for each in messages if each.candidate == candidate or (not each.candidate and each.at <= first)]
    own = [Told(0, "", "Python and its modules"), *(each for each in own if each.at < until)]
    found: dict[str, float] = {}
    for each, following in zip(own, [*(next_.at for next_ in own[1:]), until], strict=True):
        found[each.text] = found.get(each.text, 0) + following - each.at
    return found


def both(path: Path, started: float) -> list[dict[str, Any]]:
    """Two searches in this process, which began at `started` of `time.time`."""
    from warpwright.syntax.source import Source, read_source
    from warpwright.verify import emulation, harness

    source = read_source(path)
    first = searched(source, started)
    second = searched(Source(source.path, source.data + b"// once more\n"), time.time())
    emulation.close_idle()
    harness.close_idle()
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    processors = {"processor_seconds_of_both": sum(each.ru_utime + each.ru_stime for each in used)}
    return [first | processors, second]


def searched(source: Source, started: float) -> dict[str, Any]:
    """One search, which began at `started` of `time.time`."""
    from warpwright.facts.analyze import analyze
    from warpwright.optimize.optimize import optimize
    from warpwright.optimize.rank import may_be_offered
    from warpwright.syntax.source import read_include

    messages: list[Told] = []

    def progress(message: str, share: float | None) -> None:
        messages.append(told(time.time() - started, message))

    program = analyze(source, read_include)
    (kernel,) = program.defined_kernels
    outcome = optimize(program, kernel, "speed", progress=progress)
    whole = time.time() - started
    offered: list[tuple[float, str, str]] = []
    for candidate in outcome.candidates:
        name, badge = " + ".join(candidate.rewrites), candidate.report.badge()
        if may_be_offered(candidate.report, "speed", candidate.rewrites):
            at = next((each.at for each in messages if (each.candidate, each.text) == (name, badge)), whole)
            offered.append((at, name, badge))
    at, name, badge = min(offered, default=(whole, "", outcome.reason))
    backend = next((c.report.backend for c in outcome.candidates if c.report.backend), "")
    return {
        "kernel": kernel.name,
        "backend": backend,
        "first": {
            "rewrites": name,
            "badge": badge,
            "seconds": at,
            "stages": stages(messages, name, at) if name else {},
        },
        "verdicts": {
            f"{each.candidate}: {each.text}": each.at
            for each in messages
            if any(each.text == c.report.badge() for c in outcome.candidates)
        },
        "best": list(outcome.candidates[outcome.best].rewrites) if outcome.best is not None else [],
        "whole_seconds": whole,
        "messages": [[round(each.at, 2), each.candidate, each.text] for each in messages],
        "load": os.getloadavg()[0],
        "processors": os.cpu_count(),
    }


def as_table(result: dict[str, Any]) -> str:
    first = result["first"]
    lines = [f"{result['kernel']} on {result['backend']}, {result['processors']} processors, load {result['load']:.1f}"]
    lines += [f"  {name:<58}{seconds:7.2f} s" for name, seconds in first["stages"].items()]
    lines.append(f"{'first offered: ' + first['rewrites'] + ', ' + first['badge']:<60}{first['seconds']:7.2f} s")
    lines += [f"  {name:<58.58}{at:7.2f} s" for name, at in result["verdicts"].items()]
    lines.append(f"{'the whole search: ' + ' + '.join(result['best']):<60}{result['whole_seconds']:7.2f} s")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernel", nargs="?", type=Path, default=DEMO)
    parser.add_argument("--kept", type=Path, metavar="DIR", help="where what may be kept is kept")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the figures there, too, as JSON")
    parser.add_argument("--started", type=float, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.started:
        print(json.dumps(both(arguments.kernel.resolve(), arguments.started)))
        return 0
    with tempfile.TemporaryDirectory() as own:
        kept = arguments.kept.resolve() if arguments.kept else Path(own)
        (kept / "data").mkdir(parents=True, exist_ok=True)
        for left in (kept / "data").glob("history*"):
            left.unlink()
        environment = {**os.environ, "WARPWRIGHT_CACHE_DIR": str(kept), "WARPWRIGHT_DATA_DIR": str(kept / "data")}
        command = [sys.executable, __file__, str(arguments.kernel), "--started", str(time.time())]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    results = json.loads(done.stdout)
    for title, result in zip(("In a new process", "Once more in that process"), results, strict=True):
        print(f"== {title}\n{as_table(result)}")
    print(f"{'all processors, for both':<60}{results[0]['processor_seconds_of_both']:7.2f} s")
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 0 if all(result["first"]["rewrites"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
