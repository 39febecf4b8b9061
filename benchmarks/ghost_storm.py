"""Edits and requests for ghost text in random order, faster than anybody types: is a stale text shown, is a request
left without an answer, does memory grow, and what comes when the process that writes is killed?

    python benchmarks/ghost_storm.py [--rounds 1000] [--seed 0] [--write]

The real server on stdin and stdout. Of each round chance makes an edit of the comment, a request below it (some are
cancelled at once), a pause, a wait for the last answer, or a SIGKILL to a process that the server has started. An
answer is stale where its first line says another formula than the words mean that stood there when it was asked for. A
request is leaked where it has no answer at the end. Memory is that of the server and of the largest of its processes,
at a third and at the end. What the server writes to its log stands on stderr.
`--write` records the result in benchmarks/results/ghost_storm.json.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from hardware import cpu_run, reported
from hover_latency import Client, answer
from warpwright.assist.readings import by_wordings

RESULT = Path(__file__).resolve().parent / "results" / "ghost_storm.json"
WORDS = (
    "relu of x", "add a and b", "sum of x", "x + y", "exp of x", "row-wise softmax of x[rows][cols]",
    "the kernel above is slow", "y[i] = 2 * x[i]", "gelu of x, half precision",
)  # fmt: skip
ACTIONS = ("edit", "ask", "ask and cancel", "pause", "wait", "kill")
WEIGHTS = (30, 45, 12, 8, 4, 1)
PAUSE_SECONDS = 0.6
PATIENCE_SECONDS = 120.0
Json = dict[str, Any]


class Storm:
    """The document, and the requests that were made: what it said at each."""

    def __init__(self, client: Client, path: Path, chance: Random) -> None:
        self.client, self.chance = client, chance
        self.words = WORDS[0]
        self.number = 0
        self.uri = client.open(path, self.text)
        self.asked: dict[int, str] = {}
        self.done: Counter[str] = Counter()

    @property
    def text(self) -> str:
        return f"// {self.words}\n"

    def act(self) -> None:
        (action,) = self.chance.choices(ACTIONS, WEIGHTS)
        self.done[action] += 1
        match action:
            case "edit":
                self.number += 1
                self.words = self.chance.choice(WORDS)
                self.client.replace(self.uri, self.number, self.text)
            case "ask" | "ask and cancel":
                asked = {"textDocument": {"uri": self.uri}, "position": {"line": 1, "character": 0}}
                kind = {"context": {"triggerKind": self.chance.choice((1, 2))}}
                number = self.client.start("textDocument/inlineCompletion", {**asked, **kind})
                self.asked[number] = self.words
                if action == "ask and cancel":
                    self.client.tell("$/cancelRequest", {"id": number})
            case "pause":
                time.sleep(self.chance.random() * PAUSE_SECONDS)
            case "wait" if self.asked:
                self.settled([*self.asked][-1:])
            case "kill":
                if children := children_of(self.client.process.pid):
                    with suppress(ProcessLookupError):
                        os.kill(self.chance.choice(children), signal.SIGKILL)
        self.hover()

    def hover(self) -> None:
        """Have what has come until now be read."""
        position = {"textDocument": {"uri": self.uri}, "position": {"line": 0, "character": 3}}
        answer(self.client, "textDocument/hover", position)

    def settled(self, requests: Iterable[int]) -> None:
        """Wait until each request has an answer, at most for a while."""
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end and not {*requests} <= self.client.kept.keys():
            time.sleep(0.1)
            self.hover()

    def figures(self) -> Json:
        answers = {number: self.client.kept[number] for number in self.asked if number in self.client.kept}
        shown = {number: each["result"]["items"][0]["insertText"] for number, each in answers.items() if items_of(each)}
        return {
            "requests": len(self.asked),
            "shown": len(shown),
            "stale": sum(not is_of(self.asked[number], text) for number, text in shown.items()),
            "leaked": len(self.asked) - len(answers),
            "actions": dict(self.done),
        }


def items_of(answer: Json) -> bool:
    return bool(answer.get("result") and answer["result"]["items"])


def is_of(words: str, text: str) -> bool:
    """Whether a text is one for these words: it begins with a formula that they mean, or is the kernel of a formula."""
    readings = by_wordings(words)
    first = text.partition("\n")[0]
    if "=" in words and not readings:
        return not first.startswith("// read as")
    return any(first.startswith(f"// read as: {each.formula.text}  #") for each in readings)


def children_of(process: int) -> list[int]:
    found = []
    for each in Path("/proc").iterdir():
        with suppress(OSError, ValueError, IndexError):
            if int((each / "stat").read_text().rpartition(")")[2].split()[1]) == process:
                found.append(int(each.name))
    return found


def resident(process: int) -> int:
    """Megabytes, 0 of a process that has ended."""
    with suppress(OSError):
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process}/status").read_text(encoding="utf-8"))
        return int(found[1]) >> 10 if found else 0
    return 0


def memory(client: Client) -> Json:
    largest = max(map(resident, children_of(client.process.pid)), default=0)
    return {"server_mb": resident(client.process.pid), "largest_child_mb": largest}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    began = time.monotonic()
    held: list[Json] = []
    with tempfile.TemporaryDirectory() as name:
        os.environ["WARPWRIGHT_CACHE_DIR"] = f"{name}/cache"
        client = Client({"inlineCompletion": {}})
        storm = Storm(client, Path(name) / "storm.cu", Random(options.seed))
        for number in range(options.rounds):
            storm.act()
            if number in (options.rounds // 3, options.rounds - 1):
                held.append(memory(client))
        storm.settled(storm.asked)
        found = storm.figures()
        children = children_of(client.process.pid)
        client.end()
        time.sleep(1)
        left = [each for each in children if resident(each)]
    result: Json = {
        "what": "ghost text under edits, requests, cancels and kills in random order",
        "command": f"python benchmarks/ghost_storm.py --rounds {options.rounds} --seed {options.seed} --write",
        **found,
        "memory_at_a_third_and_at_the_end": held,
        "processes_left": len(left),
        "seconds": round(time.monotonic() - began, 1),
        **cpu_run(load),
    }
    reported(result, RESULT if options.write else None)
    return int(bool(result["stale"] or result["leaked"] or left))


if __name__ == "__main__":
    sys.exit(main())
