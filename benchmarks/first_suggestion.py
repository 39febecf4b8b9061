"""How long until the first candidate of a search that may be offered, and where the time goes.

    PYTHONPATH=server:benchmarks python3 benchmarks/first_suggestion.py [KERNEL.cu] [--kept DIR] [--out FILE]
        [--pause SECONDS]

Searches one sample for speed, on the GPU where there is one and in the emulator otherwise, in a process of its own, and
prints the stages of the first candidate that may be offered, from the start of Python to its verdict, then those of the
whole search; then the same once more in that process, with another comment in the text; then what a user of an editor
sees, who opens the file in a new server and asks for "Optimize" `--pause` seconds after its findings are there.
Nothing is kept from before, not by the editor either, unless `--kept` names a folder: the second run with it finds what
the first one left, such as compilations and what the GPU can do, but for verdicts, which are always made anew. The
seconds of a loaded machine say little: beside them stand those that processors worked, and the machine's load.
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


def changes(messages: list[Told]) -> list[Told]:
    """Without what says of a candidate what was last said of it.

    >>> [each.at for each in changes([Told(1, "a", "x"), Told(2, "b", "x"), Told(3, "a", "x"), Told(4, "a", "y")])]
    [1, 2, 4]
    """
    last: dict[str, str] = {}
    kept: list[Told] = []
    for each in messages:
        if last.get(each.candidate) != each.text:
            kept.append(each)
        last[each.candidate] = each.text
    return kept


def both(path: Path, started: float) -> list[dict[str, Any]]:
    """Two searches in this process, which began at `started` of `time.time`, as `warpwright optimize` begins."""
    from warpwright.verify import harness

    harness.prepare()
    from warpwright.syntax.source import Source, read_source
    from warpwright.verify import emulation

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
    offered = [
        (" + ".join(each.rewrites), each.report.badge())
        for each in outcome.candidates
        if may_be_offered(each.report, "speed", each.rewrites)
    ]
    badges = [each.report.badge() for each in outcome.candidates]
    backend = next((each.report.backend for each in outcome.candidates if each.report.backend), "")
    best = list(outcome.candidates[outcome.best].rewrites) if outcome.best is not None else []
    return result_of(kernel.name, backend, messages, offered, badges, best or [outcome.reason], whole)


def in_editor(path: Path, pause: float) -> dict[str, Any]:
    """One search in a new server that has the file open; seconds are those since it was asked for."""
    from edit_latency import Server

    server, uri = Server({}), path.as_uri()
    opened = time.perf_counter()
    item = {"uri": uri, "languageId": "cuda-cpp", "version": 0, "text": path.read_text(encoding="utf-8")}
    server.tell("textDocument/didOpen", {"textDocument": item})
    shown, _ = server.wait(lambda message: message.get("method") == "textDocument/publishDiagnostics")
    time.sleep(pause)
    messages: list[Told] = []
    asked = time.perf_counter()
    command = {"command": "warpwright.propose", "arguments": [{"uri": uri}], "workDoneToken": "search"}
    number = server.start("workspace/executeCommand", command)

    def is_answer(message: dict[str, Any]) -> bool:
        if message.get("method") == "$/progress" and "message" in message["params"]["value"]:
            messages.append(told(time.perf_counter() - asked, message["params"]["value"]["message"]))
        return bool(message.get("id") == number)

    whole, answer = server.wait(is_answer)
    server.end()
    outcome, offer = answer["result"]["outcome"], answer["result"]["offer"] or {"choices": []}
    tried = outcome["candidates"]
    offered = [(" + ".join(tried[each["candidate"]]["rewrites"]), each["badge"]) for each in offer["choices"]]
    badges = [each["report"]["badge"] for each in tried]
    backend = next((each["report"]["backend"] for each in tried if each["report"]["backend"]), "")
    best = tried[outcome["best"]]["rewrites"] if outcome["best"] is not None else [outcome["reason"]]
    found = result_of(outcome["kernel"], backend, messages, offered, badges, best, whole - asked)
    return found | {"findings_seconds": shown - opened, "pause_seconds": pause}


def result_of(
    kernel: str,
    backend: str,
    messages: list[Told],
    offered: list[tuple[str, str]],
    badges: list[str],
    best: list[str],
    whole: float,
) -> dict[str, Any]:
    """The figures of a search that took `whole` seconds; `offered` are candidates that may be, with their badges,
    `badges` those of all."""

    def said(name: str, badge: str) -> float:
        return next((each.at for each in messages if (each.candidate, each.text) == (name, badge)), whole)

    at, name, badge = min(((said(*each), *each) for each in offered), default=(whole, "", " + ".join(best)))
    return {
        "kernel": kernel,
        "backend": backend,
        "first": {
            "rewrites": name,
            "badge": badge,
            "seconds": at,
            "stages": stages(messages, name, at) if name else {},
        },
        "verdicts": {f"{each.candidate}: {each.text}": each.at for each in messages if each.text in badges},
        "best": best,
        "whole_seconds": whole,
        "messages": [[round(each.at, 2), each.candidate, each.text] for each in changes(messages)],
        "load": os.getloadavg()[0],
        "processors": os.cpu_count(),
    }


def _kept_in(folder: Path) -> dict[str, str]:
    """Variables that have all kept in a folder, in which no verdict is."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    for left in (folder / "data").glob("history*"):
        left.unlink()
    return {"WARPWRIGHT_CACHE_DIR": str(folder), "WARPWRIGHT_DATA_DIR": str(folder / "data")}


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
    parser.add_argument(
        "--pause",
        type=float,
        default=10.0,
        metavar="SECONDS",
        help="between a file's findings and the editor's question (10)",
    )
    parser.add_argument("--started", type=float, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.started:
        print(json.dumps(both(arguments.kernel.resolve(), arguments.started)))
        return 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as own:
        kept = arguments.kept.resolve() if arguments.kept else Path(own)
        command = [sys.executable, __file__, str(arguments.kernel), "--started", str(time.time())]
        environment = {**os.environ, **_kept_in(kept)}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        os.environ.update(_kept_in(kept / "editor"))
        results = [*json.loads(done.stdout), in_editor(arguments.kernel.resolve(), arguments.pause)]
    asked = f"In an editor, asked {arguments.pause:g} s after a file's findings"
    for title, result in zip(("In a new process", "Once more in that process", asked), results, strict=True):
        print(f"== {title}\n{as_table(result)}")
    print(f"{'all processors, for the first two':<60}{results[0]['processor_seconds_of_both']:7.2f} s")
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 0 if all(result["first"]["rewrites"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
